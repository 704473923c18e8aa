//! Ranges of keys.

use crate::key;

/// Keys from `from` up to, and without, `to`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The first.
    pub from: Vec<u8>,
    /// The first behind.
    pub to: Vec<u8>,
}

impl Range {
    /// All keys of values.
    pub fn values() -> Self {
        Self { from: vec![key::VALUE], to: vec![key::NOTHING] }
    }

    /// The keys of records without a value.
    pub fn nothing() -> Self {
        Self { from: vec![key::NOTHING], to: vec![key::NOTHING + 1] }
    }

    /// One key.
    pub fn of(key: Vec<u8>) -> Self {
        let to = behind(&key);
        Self { from: key, to }
    }

    /// All keys that begin so.
    pub fn under(prefix: Vec<u8>) -> Self {
        let mut to = prefix.clone();
        while let Some(last) = to.pop() {
            if last < u8::MAX {
                to.push(last + 1);
                break;
            }
        }
        Self { from: prefix, to }
    }

    /// The same keys of texts as an index has them, where long texts are cut: perhaps some more.
    #[must_use]
    pub fn of_cut_texts(&self) -> Self {
        let cut = |bound: &Vec<u8>| {
            let mut cut = bound.clone();
            let is_cut = is_long_text(bound) && key::cut_text(&mut cut, 0, key::MOST_TEXT, false);
            (cut, is_cut)
        };
        let ((from, _), (to, is_cut)) = (cut(&self.from), cut(&self.to));
        Self { from, to: if is_cut { behind(&to) } else { to } }
    }

    /// Whether a bound is a text that is longer than an index has it.
    pub fn has_long_texts(&self) -> bool {
        is_long_text(&self.from) || is_long_text(&self.to)
    }

    /// Whether the text of a key in an index that was cut may lie in the range, and may not.
    pub fn splits(&self, cut: &[u8]) -> bool {
        let is_alike = |bound: &[u8]| cut.split_last().is_some_and(|(_, start)| bound.starts_with(start));
        is_alike(&self.from) || is_alike(&self.to)
    }

    /// Whether a key is one of them.
    pub fn has(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && key < self.to.as_slice()
    }

    /// Whether it is one key.
    pub fn is_one(&self) -> bool {
        self.to.strip_suffix(&[0]) == Some(self.from.as_slice())
    }

    /// Whether there can be none.
    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    /// What is in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { from: self.from.clone().max(other.from.clone()), to: self.to.clone().min(other.to.clone()) }
    }
}

/// Whether a bound is the key of a text, or what is just behind it, that is longer than an index has it.
fn is_long_text(bound: &[u8]) -> bool {
    // Behind a text that an index has whole there are its end and perhaps the zero that stands for "just behind".
    let end = bound.get(key::MOST_TEXT + 1..).unwrap_or_default();
    bound.first() == Some(&key::VALUE) && end.iter().any(|byte| *byte != 0)
}

/// The least key behind `key`.
pub fn behind(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

/// Puts ranges in order and joins those that touch.
pub fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.from <= last.to => last.to = last.to.clone().max(range.to),
            _ => joined.push(range),
        }
    }
    joined
}
