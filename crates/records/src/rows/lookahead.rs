//! Looking up the records of many rows at once: each row by itself would be a round trip or more on PostgreSQL.

use super::find::holders_of_keys;
use super::keys::{IndexedDigest, holders_of_digests};
use crate::shape::{IndexKind, Shape};
use model::{ItemId, RawMembers, Result};
use std::collections::HashMap;
use store::Read;

/// Who has what was looked up; `None` is nobody.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    keys: HashMap<String, Option<ItemId>>,
    digests: HashMap<IndexedDigest, Option<ItemId>>,
}

impl Ahead {
    /// Looks up whoever has one of these keys or values.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn look(
        read: &mut Read,
        shape: &Shape,
        keys: Vec<String>,
        digests: Vec<IndexedDigest>,
    ) -> Result<Self> {
        let mut ahead = Self::default();
        if !keys.is_empty() {
            let holders = holders_of_keys(read, shape, &keys)?;
            ahead.keys = keys.into_iter().map(|key| (key, None)).collect();
            ahead.keys.extend(holders.into_iter().map(|(key, holder)| (key, Some(holder))));
        }
        if !digests.is_empty() {
            let holders = holders_of_digests(read, &digests)?;
            ahead.digests = digests.into_iter().map(|digest| (digest, None)).collect();
            let found = holders.into_iter().filter(|(digest, _)| ahead.digests.contains_key(digest));
            let found: Vec<_> = found.map(|(digest, holder)| (digest, Some(holder))).collect();
            ahead.digests.extend(found);
        }
        Ok(ahead)
    }

    /// Who has an external key, where it was looked up.
    pub(super) fn holder_of_key(&self, key: &str) -> Option<Option<ItemId>> {
        self.keys.get(key).copied()
    }

    /// Who has a value that a unique index knows, where it was looked up.
    pub(super) fn holder(&self, digest: &IndexedDigest) -> Option<Option<ItemId>> {
        self.digests.get(digest).copied()
    }

    /// Notes that a record was created which has what was looked up for its row.
    pub(super) fn note(&mut self, key: Option<&str>, digests: Vec<IndexedDigest>, id: ItemId) {
        if let Some(holder) = key.and_then(|key| self.keys.get_mut(key)) {
            *holder = Some(id);
        }
        for digest in digests {
            if let Some(holder) = self.digests.get_mut(&digest) {
                *holder = Some(id);
            }
        }
    }

    /// Whether nothing was looked up.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.digests.is_empty()
    }
}

/// Whether a change of a record has changed what must be unique.
///
/// # Errors
/// When what is stored is damaged.
pub(super) fn unique_values_differ(shape: &Shape, old: &str, new: &str) -> Result<bool> {
    let (old, new) = (RawMembers::of(old)?, RawMembers::of(new)?);
    let unique = shape.indexes.iter().filter(|index| index.kind == IndexKind::Unique);
    let mut names = unique.flat_map(|index| &index.parts).filter_map(|part| part.subject.name(shape));
    Ok(names.any(|name| old.get(name) != new.get(name)))
}
