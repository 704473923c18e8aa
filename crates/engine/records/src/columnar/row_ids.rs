//! The ids of the items of a segment.

use super::segment::decode_ids;
use std::sync::Arc;

/// Ids in ascending order. Those that follow each other without a gap, as those of an import do, take no memory of their own.
#[derive(Debug, Clone)]
pub enum RowIds {
    /// Those from one id on.
    Run {
        /// The first id.
        first: i64,
        /// How many there are.
        count: usize,
    },
    /// Any.
    List(Arc<[i64]>),
}

impl RowIds {
    /// No ids.
    pub const NONE: Self = Self::Run { first: 0, count: 0 };

    /// The ids that [`encode_ids`](super::segment::encode_ids) wrote.
    pub fn read(bytes: &[u8]) -> Self {
        let ids = decode_ids(bytes);
        let next = ids.iter().skip(1);
        let is_run = ids.iter().zip(next).all(|(id, next)| id.checked_add(1) == Some(*next));
        match ids.first() {
            Some(first) if is_run => Self::Run { first: *first, count: ids.len() },
            _ => Self::List(ids.into()),
        }
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        match self {
            Self::Run { count, .. } => *count,
            Self::List(ids) => ids.len(),
        }
    }

    /// The bytes of memory that they take.
    pub fn size(&self) -> usize {
        match self {
            Self::Run { .. } => 0,
            Self::List(ids) => size_of_val(&**ids),
        }
    }

    /// The id of a row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::Run { first, count } if row < *count => i64::try_from(row).ok()?.checked_add(*first),
            Self::Run { .. } => None,
            Self::List(ids) => ids.get(row).copied(),
        }
    }

    /// The first id.
    #[inline]
    pub fn first(&self) -> Option<i64> {
        self.get(0)
    }

    /// The last id.
    #[inline]
    pub fn last(&self) -> Option<i64> {
        self.get(self.count().checked_sub(1)?)
    }

    /// How many are less than an id.
    pub fn before(&self, id: i64) -> usize {
        match self {
            Self::Run { first, count } => {
                usize::try_from(id.saturating_sub(*first)).map_or(0, |before| before.min(*count))
            }
            Self::List(ids) => ids.partition_point(|other| *other < id),
        }
    }

    /// The row of an id.
    pub fn row_of(&self, id: i64) -> Option<usize> {
        let row = self.before(id);
        (self.get(row)? == id).then_some(row)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        (0..self.count()).filter_map(|row| self.get(row))
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::encode_ids;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_as_lists(first in prop_oneof![1..9_i64, Just(i64::MAX - 3)], gap in 1..3_i64, count in 0..4_usize, other in any::<i64>(), near in 0..15_i64) {
            let ids: Vec<i64> = std::iter::successors(Some(first), |id| id.checked_add(gap)).take(count).collect();
            let read = RowIds::read(&encode_ids(&ids));
            let list = RowIds::List(ids.clone().into());
            prop_assert_eq!(read.size() == 0, gap == 1 || ids.len() < 2);
            for ids_of in [&read, &list] {
                prop_assert_eq!(ids_of.iter().collect::<Vec<_>>(), ids.clone());
                prop_assert_eq!((ids_of.first(), ids_of.last()), (ids.first().copied(), ids.last().copied()));
                for id in [other, near, i64::MAX, i64::MIN] {
                    prop_assert_eq!(ids_of.before(id), ids.partition_point(|one| *one < id));
                    prop_assert_eq!(ids_of.row_of(id), ids.binary_search(&id).ok());
                }
            }
        }
    }
}
