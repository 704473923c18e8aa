//! Ranges of the keys of an index that hold ranges of values.

use fields::filter::Range;
use fields::key;

/// Ranges of values as ranges of an index's keys, in the order in which they are scanned. In a composite index they may
/// hold a little more: what stands behind the value decides, and the item is tested anyway.
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
    // Stretched ranges may touch: nothing is scanned twice.
    let mut known = fields::filter::joined(known);
    if reverse {
        known.reverse();
    }
    known.extend(nothing);
    known
}

/// The keys behind `prefix` whose part has a value in a range, and perhaps some at its ends.
fn stretched(prefix: &[u8], range: &Range, desc: bool) -> Range {
    // A zero at the end stands for "just behind": without it the bound is that value itself.
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
