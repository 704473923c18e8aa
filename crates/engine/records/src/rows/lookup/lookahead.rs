//! Looking up the records of many rows at once: each row by itself would be a round trip or more on PostgreSQL.

use crate::rows::keys::{IndexedDigest, digest_of_value};
use crate::shape::{IndexKind, Shape};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Text};
use fields::Field;
use model::{IndexId, ItemId, RawMembers, Result};
use serde_json::Value;
use std::collections::HashMap;
use store::{Read, Rows};

/// Who has what was looked up; `None` is nobody.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    keys: HashMap<String, Option<ItemId>>,
    digests: HashMap<IndexedDigest, Option<ItemId>>,
}

impl Ahead {
    /// Looks up whoever has one of these keys or values.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn look(
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
    pub(crate) fn holder_of_key(&self, key: &str) -> Option<Option<ItemId>> {
        self.keys.get(key).copied()
    }

    /// Who has a value that a unique index knows, where it was looked up.
    pub(crate) fn holder(&self, digest: &IndexedDigest) -> Option<Option<ItemId>> {
        self.digests.get(digest).copied()
    }

    /// Notes that a record was created which has what was looked up for its row.
    pub(crate) fn note(&mut self, key: Option<&str>, digests: &[IndexedDigest], id: ItemId) {
        if let Some(holder) = key.and_then(|key| self.keys.get_mut(key)) {
            *holder = Some(id);
        }
        for digest in digests {
            if let Some(holder) = self.digests.get_mut(digest) {
                *holder = Some(id);
            }
        }
    }

    /// Whether nothing was looked up.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.digests.is_empty()
    }
}

/// The live records that have values in fields that must be unique, in the order of the values.
///
/// # Errors
/// When the database fails.
pub fn holders_of_values(
    read: &mut Read,
    shape: &Shape,
    values: &[(&Field, &Value)],
) -> Result<Vec<Option<ItemId>>> {
    let digest = |(field, value): &(&Field, &Value)| digest_of_value(shape, field, value);
    let digests: Vec<Option<IndexedDigest>> = values.iter().map(digest).collect();
    let known = digests.iter().flatten().cloned().collect();
    let ahead = Ahead::look(read, shape, Vec::new(), known)?;
    Ok(digests.iter().map(|digest| ahead.holder(digest.as_ref()?).flatten()).collect())
}

/// Whether a change of a record has changed what must be unique.
///
/// # Errors
/// When what is stored is damaged.
pub(crate) fn unique_values_differ(shape: &Shape, old: &str, new: &str) -> Result<bool> {
    let (old, new) = (RawMembers::of(old)?, RawMembers::of(new)?);
    let unique = shape.indexes.iter().filter(|index| index.kind == IndexKind::Unique);
    let mut names = unique.flat_map(|index| &index.parts).filter_map(|part| part.subject.name(shape));
    Ok(names.any(|name| old.get(name) != new.get(name)))
}

#[derive(QueryableByName)]
struct HolderOfKey {
    #[diesel(sql_type = Text)]
    external_key: String,
    #[diesel(sql_type = BigInt)]
    id: ItemId,
}

/// The live items with these external keys.
fn holders_of_keys(read: &mut Read, shape: &Shape, keys: &[String]) -> Result<Vec<(String, ItemId)>> {
    let wanted = Rows::of(keys).text("k", |key| key).given_big_int("collection", shape.collection);
    // The condition that keys are not null is that of their index.
    let found: Vec<HolderOfKey> = wanted.load(
        read,
        "SELECT items.external_key, items.id FROM {wanted} CROSS JOIN items
        WHERE items.collection_id = {collection} AND items.external_key = wanted.k
            AND items.external_key IS NOT NULL AND items.trashed_at IS NULL",
    )?;
    Ok(found.into_iter().map(|found| (found.external_key, found.id)).collect())
}

#[derive(QueryableByName)]
struct HolderOfDigest {
    #[diesel(sql_type = BigInt)]
    index_id: IndexId,
    #[diesel(sql_type = Binary)]
    h: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    item_id: ItemId,
}

/// The live items that unique indexes know by these digests. A list of indexes and one of digests would have PostgreSQL
/// read each index whole.
fn holders_of_digests(read: &mut Read, digests: &[IndexedDigest]) -> Result<Vec<(IndexedDigest, ItemId)>> {
    let wanted =
        Rows::of(digests).big_int("i", |(index, _)| *index).binary("h", |(_, digest)| digest.as_slice());
    let found: Vec<HolderOfDigest> = wanted.load(
        read,
        "SELECT item_unique.index_id, item_unique.h, item_unique.item_id FROM {wanted} CROSS JOIN item_unique
        WHERE item_unique.index_id = wanted.i AND item_unique.h = wanted.h",
    )?;
    Ok(found.into_iter().map(|found| ((found.index_id, found.h), found.item_id)).collect())
}
