//! Conversion of ranges of values to ranges of index keys.

use fields::filter::Range;
use fields::key;

/// Converts ranges of values to ranges of an index's keys, in scan order. In a composite index the ranges may contain
/// further keys at their ends, because the parts after the value follow in the key. The items are tested anyway.
pub(crate) fn in_index(
    prefix: &[u8],
    values: &[Range],
    desc: bool,
    is_single: bool,
    reverse: bool,
) -> Vec<Range> {
    let (mut nothing, mut known): (Vec<Range>, Vec<Range>) = (Vec::new(), Vec::new());
    for range in values {
        let (below, above) = (range.and(&Range::values()), range.and(&Range::nothing()));
        if !below.is_empty() {
            known.push(if is_single { below } else { stretched(prefix, &below, desc) });
        }
        if !above.is_empty() {
            nothing.push(Range::under([prefix, &[key::NOTHING]].concat()));
        }
    }
    // The widened ranges may overlap. Join them, so that no key is scanned twice.
    let mut known = fields::filter::joined(known);
    if reverse {
        known.reverse();
    }
    known.extend(nothing);
    known
}

/// Returns the keys after `prefix` whose next part is in a range, and possibly some at its ends.
fn stretched(prefix: &[u8], range: &Range, desc: bool) -> Range {
    // A trailing zero means "just after this value". Without it the bound is the value itself.
    let bare = |bound: &[u8]| bound.strip_suffix(&[0]).unwrap_or(bound).to_vec();
    let from = bare(&range.from);
    let is_open = range.to.first() != Some(&key::VALUE);
    let to = bare(&range.to);
    let under = |part: &[u8]| Range::under([prefix, part].concat());
    let turned = |mut part: Vec<u8>| {
        key::invert(&mut part, 1);
        part
    };
    match (desc, is_open) {
        (false, true) => Range { from: under(&from).from, to: under(&[key::VALUE]).to },
        (false, false) => Range { from: under(&from).from, to: under(&to).to },
        (true, true) => Range { from: under(&[key::VALUE]).from, to: under(&turned(from)).to },
        (true, false) => Range { from: under(&turned(to)).from, to: under(&turned(from)).to },
    }
}
