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
