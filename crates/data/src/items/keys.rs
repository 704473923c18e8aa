//! What an item contributes to the indexes of its collection, and keeping it so.

use super::row::{Data, ItemRow};
use crate::key;
use crate::shape::{Field, Index, IndexKind, Part, Shape, Subject, System};
use crate::text;
use diesel::prelude::*;
use model::{Code, Error, IndexId, ItemId, JsonText, Result};
use serde_json::Value;
use store::schema::{item_keys, item_unique};
use store::{Read, Tx, each};

/// An item with its values parsed, for whoever makes keys of it.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The row.
    pub row: &'a ItemRow,
    /// Its values.
    pub data: &'a Data,
}

impl Facts<'_> {
    /// The value of a field; `None` where it has none.
    pub fn value(&self, field: &Field) -> Option<&Value> {
        self.data.get(&field.key)
    }

    /// The text of a system column; `None` where it has none, and for columns that hold no text.
    pub fn system_text(&self, system: System) -> Option<String> {
        match system {
            System::Position => Some(self.row.place()),
            System::ExternalKey => self.row.external_key.clone(),
            System::CreatedBy => creator(&self.row.created_by),
            System::Id | System::Version | System::CreatedAt | System::UpdatedAt => None,
        }
    }

    /// Appends the key of one part.
    pub fn push_part(&self, shape: &Shape, part: Part, out: &mut Vec<u8>) {
        let row = self.row;
        match part.subject {
            Subject::Field(id) => match shape.field_by_id(id) {
                Some(field) => key::push_field(out, field, self.value(field), part.desc),
                None => out.push(key::NOTHING),
            },
            Subject::System(System::Id) => key::push_integer(out, row.id.0, part.desc),
            Subject::System(System::Version) => key::push_integer(out, row.version, part.desc),
            Subject::System(System::CreatedAt) => key::push_integer(out, row.created_at.millis(), part.desc),
            Subject::System(System::UpdatedAt) => key::push_integer(out, row.updated_at.millis(), part.desc),
            Subject::System(system) => {
                key::push_text(out, self.system_text(system).as_deref(), part.desc);
            }
        }
    }

    /// The keys that it has in an index: one, or one for each element of a set. Empty for a unique index.
    pub fn keys(&self, shape: &Shape, index: &Index) -> Vec<Vec<u8>> {
        match index.kind {
            IndexKind::Unique => Vec::new(),
            IndexKind::Set => {
                let field = index.parts.first().and_then(|part| match part.subject {
                    Subject::Field(id) => shape.field_by_id(id),
                    Subject::System(_) => None,
                });
                field.map(|field| key::elements(field, self.value(field))).unwrap_or_default()
            }
            IndexKind::Single | IndexKind::Composite => {
                let mut out = Vec::with_capacity(24);
                for part in &index.parts {
                    // A single index is walked in both directions, so its one part is never inverted.
                    let desc = part.desc && index.kind == IndexKind::Composite;
                    self.push_part(shape, Part { desc, ..*part }, &mut out);
                }
                if index.kind == IndexKind::Composite {
                    let desc = index.parts.last().is_some_and(|part| part.desc);
                    key::push_id(&mut out, self.row.id.0, desc);
                }
                vec![out]
            }
        }
    }

    /// The digest by which a unique index knows it; `None` where a value is missing, because then it clashes with none.
    pub fn digest(&self, shape: &Shape, index: &Index) -> Option<Vec<u8>> {
        digest(shape, index, self.data)
    }
}

/// The digest by which a unique index knows an item with these values; `None` where one is missing.
pub fn digest(shape: &Shape, index: &Index, data: &Data) -> Option<Vec<u8>> {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    for part in &index.parts {
        let Subject::Field(id) = part.subject else { return None };
        let text = match data.get(&shape.field_by_id(id)?.key)? {
            Value::String(text) if text.is_empty() => return None,
            Value::String(text) => Value::from(text::nfc(text).into_owned()).to_string(),
            other => other.to_string(),
        };
        digest.update(text.as_bytes());
        digest.update(b"\n");
    }
    Some(digest.finish().as_ref().to_vec())
}

/// Who created an item, as `type:id`; `created_by` is what its row says.
pub fn creator(created_by: &JsonText) -> Option<String> {
    let actor: model::Actor = created_by.parse().ok()?;
    Some(format!("{}:{}", actor.kind.as_str(), actor.id))
}

// Without `DEFAULT` for what is absent the statement has one shape, and diesel knows it by its type.
#[derive(Insertable)]
#[diesel(table_name = item_keys, treat_none_as_default_value = false)]
struct KeyRow {
    index_id: IndexId,
    k: Vec<u8>,
    item_id: ItemId,
}

/// Makes the indexes right after an item changed from `old` to `new`; `None` is an item that is not there or in the
/// trash.
///
/// # Errors
/// `duplicate_value` with `details.existing_id` where another live item has what must be unique.
pub fn reindex(tx: &mut Tx, shape: &Shape, old: Option<Facts<'_>>, new: Option<Facts<'_>>) -> Result<()> {
    let mut rows = Vec::new();
    for index in shape.indexes.iter().filter(|index| index.is_maintained()) {
        if index.kind == IndexKind::Unique {
            reindex_unique(tx, shape, index, old, new)?;
            continue;
        }
        let of = |facts: Option<Facts<'_>>| facts.map(|facts| facts.keys(shape, index)).unwrap_or_default();
        let (before, after) = (of(old), of(new));
        if let Some(facts) = old {
            for key in before.iter().filter(|key| !after.contains(key)) {
                diesel::delete(item_keys::table.find((index.id, key, facts.row.id)))
                    .execute(tx.connection())?;
            }
        }
        if let Some(facts) = new {
            let fresh = after.into_iter().filter(|key| !before.contains(key));
            rows.extend(fresh.map(|k| KeyRow { index_id: index.id, k, item_id: facts.row.id }));
        }
    }
    insert_keys(tx, rows)
}

fn insert_keys(tx: &mut Tx, rows: Vec<KeyRow>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    match tx.connection() {
        // One statement that is prepared once is the quickest here, and one that takes all rows there.
        store::AnyConnection::Sqlite(connection) => {
            for row in rows {
                diesel::insert_into(item_keys::table).values(row).execute(connection)?;
            }
        }
        store::AnyConnection::Postgres(connection) => {
            diesel::insert_into(item_keys::table).values(rows).execute(connection)?;
        }
    }
    Ok(())
}

fn reindex_unique(
    tx: &mut Tx,
    shape: &Shape,
    index: &Index,
    old: Option<Facts<'_>>,
    new: Option<Facts<'_>>,
) -> Result<()> {
    let before = old.and_then(|facts| facts.digest(shape, index));
    let after = new.and_then(|facts| facts.digest(shape, index));
    if before == after {
        return Ok(());
    }
    if let (Some(digest), Some(facts)) = (before, old) {
        let row = item_unique::table.find((index.id, digest)).filter(item_unique::item_id.eq(facts.row.id));
        diesel::delete(row).execute(tx.connection())?;
    }
    let (Some(digest), Some(facts)) = (after, new) else { return Ok(()) };
    let row = (
        item_unique::index_id.eq(index.id),
        item_unique::h.eq(&digest),
        item_unique::item_id.eq(facts.row.id),
    );
    let inserted = each!(tx.connection(), |connection| diesel::insert_into(item_unique::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    if inserted > 0 {
        return Ok(());
    }
    let holder = holder(tx, index.id, &digest)?;
    Err(duplicate(shape, index, holder))
}

/// The live item that a unique index knows by `digest`.
///
/// # Errors
/// When the database fails.
pub fn holder(read: &mut Read, index: IndexId, digest: &[u8]) -> Result<Option<ItemId>> {
    let found = item_unique::table
        .filter(item_unique::index_id.eq(index))
        .filter(item_unique::h.eq(digest))
        .select(item_unique::item_id)
        .get_result(read.connection());
    Ok(found.optional()?)
}

fn duplicate(shape: &Shape, index: &Index, holder: Option<ItemId>) -> Error {
    let names: Vec<&str> = index.parts.iter().filter_map(|part| part.subject.name(shape)).collect();
    let param = format!("data.{}", names.first().copied().unwrap_or_default());
    let message =
        format!("Another item has the same value of `{}`, which must be unique.", names.join("`, `"));
    Error::new(Code::DuplicateValue, message)
        .param(param)
        .with("details", serde_json::json!({ "existing_id": holder, "fields": names }))
}
