//! What an item contributes to the indexes of its collection, and keeping it so.

use super::stored::new_rows::KeyRow;
use super::stored::store::key_rows;
use crate::columnar::table;
use crate::schema::{item_keys, item_unique};
use crate::shape::{Index, IndexKind, KeyFormat, Shape};
use diesel::prelude::*;
use fields::Data;
use fields::key;
use fields::{Field, Part, Record, Subject};
use model::{Code, Error, IndexId, ItemId, Result};
use serde_json::Value;
use store::{Read, Tx, each};

/// The keys that an item has in an index: one, or one for each element of a set. Empty for a unique or columnar
/// index.
pub(crate) fn index_keys(record: Record<'_>, shape: &Shape, index: &Index) -> Vec<Vec<u8>> {
    match index.kind {
        IndexKind::Unique | IndexKind::Columnar => Vec::new(),
        IndexKind::Set => {
            let field = index.parts.first().and_then(|part| match part.subject {
                Subject::Field(id) => shape.field_by_id(id),
                Subject::System(_) => None,
            });
            field.map(|field| key::elements(field, record.value(field))).unwrap_or_default()
        }
        IndexKind::Single | IndexKind::Composite => {
            let mut out = Vec::with_capacity(24);
            for part in &index.parts {
                // A single index is scanned in both directions, so its one part is never inverted.
                let desc = part.desc && index.kind == IndexKind::Composite;
                // What stands behind the beginning of a text would be in no order.
                if record.push_indexed_part(shape, Part { desc, ..*part }, &mut out) {
                    break;
                }
            }
            if index.kind == IndexKind::Composite {
                let desc = index.parts.last().is_some_and(|part| part.desc);
                key::push_id(&mut out, record.id(), desc);
            }
            vec![out]
        }
    }
}

/// How a unique index knows a value.
pub(super) type IndexedDigest = (IndexId, Vec<u8>);

/// How many bytes of values a key of a unique index begins with, at most.
const PREFIX: usize = 24;

/// How many bytes of the hash follow them: too many for two values to have the same by chance.
const HASH: usize = 16;

/// What a unique index knows an item with these values by; `None` where one is missing.
pub fn digest(shape: &Shape, index: &Index, data: &Data) -> Option<Vec<u8>> {
    let mut key = Vec::with_capacity(PREFIX + HASH);
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    for part in &index.parts {
        let Subject::Field(id) = part.subject else { return None };
        let field = shape.field_by_id(id)?;
        let identity = fields::identity(field, data.get(&field.key)?)?;
        let text = identity.to_string();
        hash.update(text.as_bytes());
        hash.update(b"\n");
        let text = identity.as_str().unwrap_or(&text);
        key.extend(text.bytes().take(PREFIX - key.len()));
    }
    let hash = hash.finish();
    Some(match index.key_format {
        KeyFormat::Hashed => hash.as_ref().to_vec(),
        KeyFormat::Prefixed => {
            key.extend(hash.as_ref().iter().take(HASH));
            key
        }
    })
}

/// The digests by which a unique index knows a record: that of its own value, and those of its aliases.
pub(crate) fn digests(shape: &Shape, index: &Index, data: &Data) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = digest(shape, index, data).into_iter().collect();
    let aliases = shape.kind.aliases.and_then(|key| data.get(key));
    if let (Some(aliases), [Part { subject: Subject::Field(id), .. }]) = (aliases, index.parts.as_slice())
        && let Some(field) = shape.field_by_id(*id)
    {
        for alias in aliases.get(&field.key).and_then(Value::as_array).into_iter().flatten() {
            let alias = Data::from_iter([(field.key.clone(), alias.clone())]);
            all.extend(digest(shape, index, &alias).filter(|digest| !all.contains(digest)));
        }
    }
    all
}

/// Makes the indexes right after an item changed from `old` to `new`; `None` is an item that is not there or in the
/// trash.
///
/// # Errors
/// `duplicate_value` with `details.existing_id` where another live item has what must be unique.
pub fn reindex(tx: &mut Tx, shape: &Shape, old: Option<Record<'_>>, new: Option<Record<'_>>) -> Result<()> {
    let mut rows = Vec::new();
    for index in shape.indexes.iter().filter(|index| index.is_maintained()) {
        if index.kind == IndexKind::Unique {
            reindex_unique(tx, shape, index, old, new)?;
            continue;
        }
        if index.kind == IndexKind::Columnar {
            let changed = new.or(old).map(|record| ItemId(record.id()));
            changed.map_or(Ok(()), |item| table::record_change(tx, index.id, item))?;
            continue;
        }
        let of = |record: Option<Record<'_>>| {
            record.map(|record| index_keys(record, shape, index)).unwrap_or_default()
        };
        let (before, after) = (of(old), of(new));
        if let Some(record) = old {
            for key in before.iter().filter(|key| !after.contains(key)) {
                diesel::delete(item_keys::table.find((index.id, key, ItemId(record.id()))))
                    .execute(tx.connection())?;
            }
        }
        if let Some(record) = new {
            let fresh = after.into_iter().filter(|key| !before.contains(key));
            rows.extend(fresh.map(|k| KeyRow { index_id: index.id, k, item_id: ItemId(record.id()) }));
        }
    }
    insert_keys(tx, &rows)
}

/// Inserts new keys.
fn insert_keys(tx: &mut Tx, rows: &[KeyRow]) -> Result<()> {
    key_rows(rows).insert(tx, "item_keys")
}

fn reindex_unique(
    tx: &mut Tx,
    shape: &Shape,
    index: &Index,
    old: Option<Record<'_>>,
    new: Option<Record<'_>>,
) -> Result<()> {
    let of = |record: Option<Record<'_>>| {
        record.map(|record| digests(shape, index, record.data)).unwrap_or_default()
    };
    let (before, after) = (of(old), of(new));
    if let Some(record) = old {
        for digest in before.iter().filter(|digest| !after.contains(digest)) {
            let row = item_unique::table.find((index.id, digest));
            diesel::delete(row.filter(item_unique::item_id.eq(ItemId(record.id()))))
                .execute(tx.connection())?;
        }
    }
    let Some(record) = new else { return Ok(()) };
    for digest in after.iter().filter(|digest| !before.contains(digest)) {
        let row = (
            item_unique::index_id.eq(index.id),
            item_unique::h.eq(digest),
            item_unique::item_id.eq(ItemId(record.id())),
        );
        let inserted = each!(tx.connection(), |connection| diesel::insert_into(item_unique::table)
            .values(row)
            .on_conflict_do_nothing()
            .execute(connection))?;
        if inserted == 0 {
            let holder = holder(tx, index.id, digest)?;
            return Err(duplicate(shape, index, holder));
        }
    }
    Ok(())
}

/// The live item that a unique index knows by `digest`.
///
/// # Errors
/// When the database fails.
pub fn holder(read: &mut Read, index: IndexId, digest: &[u8]) -> Result<Option<ItemId>> {
    let found = each!(read.connection(), |connection| item_unique::table
        .filter(item_unique::index_id.eq(index))
        .filter(item_unique::h.eq(digest))
        .select(item_unique::item_id)
        .get_result(connection));
    Ok(found.optional()?)
}

/// The live record that has a value in a field that must be unique.
///
/// # Errors
/// When the database fails.
pub fn holder_of_value(
    read: &mut Read,
    shape: &Shape,
    field: &Field,
    value: &Value,
) -> Result<Option<ItemId>> {
    match digest_of_value(shape, field, value) {
        Some((index, digest)) => holder(read, index, &digest),
        None => Ok(None),
    }
}

/// The place of a value in the unique index of its field alone; `None` where there is none.
pub(super) fn digest_of_value(shape: &Shape, field: &Field, value: &Value) -> Option<IndexedDigest> {
    let only = [Part { subject: Subject::Field(field.id), desc: false }];
    let index = shape.indexes.iter().find(|index| index.kind == IndexKind::Unique && index.parts == only)?;
    let data = Data::from_iter([(field.key.clone(), value.clone())]);
    Some((index.id, digest(shape, index, &data)?))
}

/// The refusal of a value that another item has.
pub(super) fn duplicate(shape: &Shape, index: &Index, holder: Option<ItemId>) -> Error {
    let names: Vec<&str> = index.parts.iter().filter_map(|part| part.subject.name(shape)).collect();
    let param = shape.param(names.first().copied().unwrap_or_default());
    let (noun, names_text) = (shape.kind.noun, names.join("`, `"));
    let message = format!("Another {noun} has the same value of `{names_text}`, which must be unique.");
    Error::new(Code::DuplicateValue, message)
        .param(param)
        .with("details", serde_json::json!({ "existing_id": holder, "fields": names }))
}
