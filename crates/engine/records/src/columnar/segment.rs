//! A segment of a columnar index: some items in the order of their ids, and for each column a dictionary of the entries
//! that occur, in order, and for each item the place of its entry.
//!
//! A condition is tested once for each distinct entry, and a range of values is a range of places. A column is read from
//! its bytes where they are; nothing is unpacked.

use fields::key;
use std::collections::BTreeMap;

/// The most items that a segment is written with. One that has grown to twice as many is divided.
pub const ROWS: usize = 1_000;

/// Bytes before the dictionary: rows, distinct entries, length of an entry, and whether the last one is "no value".
const HEAD: usize = 7;

/// The ids of a segment as bytes: the first one, and how far each is from the one before.
pub fn encode_ids(ids: &[i64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + ids.len());
    let mut before = 0;
    for id in ids {
        let mut step = id.wrapping_sub(before).unsigned_abs();
        before = *id;
        loop {
            let low = u8::try_from(step & 0x7f).unwrap_or_default();
            step >>= 7;
            if step == 0 {
                out.push(low);
                break;
            }
            out.push(low | 0x80);
        }
    }
    out
}

/// The ids that [`encode_ids`] wrote.
pub fn decode_ids(bytes: &[u8]) -> Vec<i64> {
    let mut ids = Vec::with_capacity(bytes.len());
    let (mut before, mut step, mut shift) = (0_i64, 0_u64, 0);
    for byte in bytes {
        step |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
        shift += 7;
        if byte & 0x80 == 0 {
            before = before.wrapping_add_unsigned(step);
            ids.push(before);
            (step, shift) = (0, 0);
        }
    }
    ids
}

/// A column as bytes; `entries` are those of the items, in their order.
pub fn encode<'a>(entries: impl ExactSizeIterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let mut distinct: BTreeMap<&[u8], u16> = entries.clone().map(|entry| (entry, 0)).collect();
    for (code, place) in (0..).zip(distinct.values_mut()) {
        *place = code;
    }
    let (rows, count) = (entries.len(), distinct.len());
    let ends_in_nothing = distinct.last_key_value().is_some_and(|(entry, _)| *entry == [key::NOTHING]);
    let stored: Vec<&[u8]> = distinct.keys().take(count - usize::from(ends_in_nothing)).copied().collect();
    let first = stored.first().map_or(0, |entry| entry.len());
    let fixed = stored.iter().all(|entry| entry.len() == first);
    let mut out =
        Vec::with_capacity(HEAD + stored.iter().map(|entry| entry.len() + 4).sum::<usize>() + rows * 2);
    for number in [rows, count, if fixed { first } else { 0 }] {
        out.extend_from_slice(&u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes());
    }
    out.push(u8::from(ends_in_nothing));
    if !fixed {
        let mut end = 0_u32;
        for entry in &stored {
            end = end.saturating_add(u32::try_from(entry.len()).unwrap_or(u32::MAX));
            out.extend_from_slice(&end.to_le_bytes());
        }
    }
    stored.iter().for_each(|entry| out.extend_from_slice(entry));
    for entry in entries {
        let code = distinct.get(entry).copied().unwrap_or_default().to_le_bytes();
        out.extend_from_slice(if count <= 256 { &code[..1] } else { &code });
    }
    out
}

/// A column, read where its bytes are.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    distinct: usize,
    ends_in_nothing: bool,
    /// The length of all entries; 0 where each has its own.
    length: usize,
    ends: &'a [u8],
    entries: &'a [u8],
    /// For each item the place of its entry.
    pub codes: Codes<'a>,
}

/// The places of entries.
#[derive(Debug, Clone, Copy)]
pub enum Codes<'a> {
    /// One byte each.
    Narrow(&'a [u8]),
    /// Two bytes each.
    Wide(&'a [[u8; 2]]),
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)))
}

#[inline]
fn end_at(ends: &[u8], place: usize) -> Option<usize> {
    let end = u32::from_le_bytes(*ends.get(place * 4..)?.first_chunk()?);
    usize::try_from(end).ok()
}

// What `query` asks for each row or entry is inlined there, for it would be a call into another crate.
impl<'a> Column<'a> {
    /// Reads the bytes that [`encode`] wrote, of which the places of entries are not [checked](Self::is_whole); `None` where
    /// they are damaged.
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        let (rows, distinct, length) = (number(bytes, 0)?, number(bytes, 2)?, number(bytes, 4)?);
        let ends_in_nothing = *bytes.get(6)? != 0;
        let stored = distinct.checked_sub(usize::from(ends_in_nothing))?;
        let rest = bytes.get(HEAD..)?;
        let (ends, rest) = rest.split_at_checked(if length == 0 { stored * 4 } else { 0 })?;
        let size = match stored.checked_sub(1) {
            None => 0,
            Some(last) if length == 0 => end_at(ends, last)?,
            Some(_) => stored * length,
        };
        let (entries, codes) = rest.split_at_checked(size)?;
        let codes = if distinct <= 256 { Codes::Narrow(codes) } else { Codes::Wide(codes.as_chunks().0) };
        let column = Self { distinct, ends_in_nothing, length, ends, entries, codes };
        (column.rows() == rows).then_some(column)
    }

    /// Whether each item has one of the entries. Columns are checked once, when they are read.
    pub fn is_whole(&self) -> bool {
        self.codes().all(|code| code < self.distinct)
    }

    /// How many items there are.
    #[inline]
    pub fn rows(&self) -> usize {
        match self.codes {
            Codes::Narrow(codes) => codes.len(),
            Codes::Wide(codes) => codes.len(),
        }
    }

    /// How many entries there are.
    #[inline]
    pub fn distinct(&self) -> usize {
        self.distinct
    }

    /// How many entries are values: all but that of items without one.
    #[inline]
    pub fn values(&self) -> usize {
        self.distinct - usize::from(self.ends_in_nothing)
    }

    /// The place of the entry of items without a value, which is the last one; `None` where all have one.
    #[inline]
    pub fn nothing(&self) -> Option<usize> {
        self.distinct.checked_sub(1).filter(|_| self.ends_in_nothing)
    }

    /// An entry by its place.
    #[inline]
    pub fn entry(&self, code: usize) -> &'a [u8] {
        if self.ends_in_nothing && code + 1 == self.distinct {
            return &[key::NOTHING];
        }
        let (from, to) = if self.length == 0 {
            let from = code.checked_sub(1).and_then(|before| end_at(self.ends, before));
            (from.unwrap_or(0), end_at(self.ends, code).unwrap_or(0))
        } else {
            (code * self.length, (code + 1) * self.length)
        };
        self.entries.get(from..to).unwrap_or_default()
    }

    /// All entries that are values, one behind the other.
    #[inline]
    pub fn entries(&self) -> &'a [u8] {
        self.entries
    }

    /// The place of the entry that a place among [all bytes](Self::entries) is in, and where it ends.
    pub fn entry_around(&self, at: usize) -> Option<(usize, usize)> {
        let (mut from, mut to) = (0, self.values());
        if let Some(code) = at.checked_div(self.length) {
            return (code < to).then_some((code, (code + 1) * self.length));
        }
        while from < to {
            let middle = from.midpoint(to);
            if end_at(self.ends, middle)? <= at { from = middle + 1 } else { to = middle }
        }
        Some((from, end_at(self.ends, from)?))
    }

    /// The place of an item's entry.
    #[inline]
    pub fn code(&self, row: usize) -> usize {
        match self.codes {
            Codes::Narrow(codes) => codes.get(row).copied().map_or(0, usize::from),
            Codes::Wide(codes) => codes.get(row).map_or(0, |code| usize::from(u16::from_le_bytes(*code))),
        }
    }

    /// The places of all items' entries.
    #[inline]
    pub fn codes(&self) -> impl Iterator<Item = usize> {
        let (narrow, wide) = match self.codes {
            Codes::Narrow(codes) => (codes, Default::default()),
            Codes::Wide(codes) => (Default::default(), codes),
        };
        let wide = wide.iter().map(|code| usize::from(u16::from_le_bytes(*code)));
        narrow.iter().map(|code| usize::from(*code)).chain(wide)
    }

    /// Hands the places of some items' entries to `each`, with the place of each item in `rows`.
    pub fn each_code(&self, rows: &[usize], mut each: impl FnMut(usize, usize)) {
        let rows = rows.iter().enumerate();
        match self.codes {
            Codes::Narrow(codes) => rows
                .filter_map(|(place, row)| Some((place, usize::from(*codes.get(*row)?))))
                .for_each(|(place, code)| each(place, code)),
            Codes::Wide(codes) => rows
                .filter_map(|(place, row)| Some((place, usize::from(u16::from_le_bytes(*codes.get(*row)?)))))
                .for_each(|(place, code)| each(place, code)),
        }
    }

    /// The place of the first entry, of those that are values, for which `is_before` no longer holds.
    pub fn partition(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut from, mut to) = (0, self.values());
        while from < to {
            let middle = from.midpoint(to);
            if is_before(self.entry(middle)) { from = middle + 1 } else { to = middle }
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_read_back(entries in prop::collection::vec(prop_oneof![
            Just(vec![key::NOTHING]),
            prop::collection::vec(any::<u8>(), 1..12).prop_map(|mut entry| { entry[0] = key::VALUE; entry }),
            (0..2_000_i64).prop_map(|number| { let mut key = Vec::new(); key::push_integer(&mut key, number, false); key }),
        ], 0..600)) {
            let bytes = encode(entries.iter().map(Vec::as_slice));
            let column = Column::of(&bytes).unwrap();
            let read: Vec<&[u8]> = (0..entries.len()).map(|row| column.entry(column.code(row))).collect();
            prop_assert_eq!(read, entries.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let sorted: Vec<&[u8]> = (0..column.distinct()).map(|code| column.entry(code)).collect();
            prop_assert!(sorted.is_sorted());
            let mut end = 0;
            for (code, entry) in sorted.iter().enumerate().take(column.nothing().unwrap_or(sorted.len())) {
                for at in [end, end + entry.len() - 1] {
                    prop_assert_eq!(column.entry_around(at), Some((code, end + entry.len())));
                }
                end += entry.len();
            }
            prop_assert_eq!((end, column.entry_around(end)), (column.entries().len(), None));
            prop_assert_eq!(column.codes().count(), entries.len());
        }

        #[test]
        fn ids_read_back(mut ids in prop::collection::btree_set(1..i64::MAX, 0..50)) {
            ids.insert(i64::MAX);
            let ids: Vec<i64> = ids.into_iter().collect();
            prop_assert_eq!(decode_ids(&encode_ids(&ids)), ids);
        }

        #[test]
        fn damage_is_seen_or_harmless(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(column) = Column::of(&bytes).filter(Column::is_whole) {
                column.codes().for_each(|code| drop(column.entry(code).to_vec()));
            }
            decode_ids(&bytes);
        }
    }
}
