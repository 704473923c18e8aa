//! Unique fields and unique keys: the indexes that they stand on.

use super::table;
use crate::rows::{ItemRow, digests};
use crate::schema::items;
use crate::shape::{Index, IndexKind, IndexOrigin, IndexStatus, Shape};
use diesel::prelude::*;
use fields::{Part, Subject};
use model::{Code, CollectionId, Error, FieldError, FieldId, IndexId, ItemId, Result};
use serde_json::{Value, json};
use std::collections::HashMap;
use store::{Read, Rows, Tx};

/// Up to so many items are checked and indexed while the caller waits; more by a job.
const MOST_AT_ONCE: i64 = 20_000;

/// The most clashes that an error tells of.
const MOST_EXAMPLES: usize = 5;

/// Checks the names of unique keys and gives the fields they mean.
///
/// # Errors
/// What is wrong with them, below `settings.unique_keys`.
pub fn keys(shape: &Shape, keys: &[Vec<String>]) -> Result<Vec<Vec<FieldId>>, FieldError> {
    let mut sets: Vec<Vec<FieldId>> = Vec::new();
    for (place, names) in keys.iter().enumerate() {
        let param = format!("settings.unique_keys[{place}]");
        if !(1..=3).contains(&names.len()) {
            return Err(FieldError::new(param, "must have 1 to 3 fields"));
        }
        let mut set = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let field = shape.field(name);
            let wrong = match field {
                None => Some("is not a field of this collection"),
                Some(field)
                    if field.family().is_set()
                        || field.kind.is_computed()
                        || field.kind == fields::FieldType::Json =>
                {
                    Some("is of a type whose values cannot be unique")
                }
                Some(field) if set.contains(&field.id) => Some("is named twice"),
                Some(_) => None,
            };
            if let Some(rule) = wrong {
                return Err(FieldError::new(format!("{param}[{at}]"), rule));
            }
            set.extend(field.map(|field| field.id));
        }
        if sets.contains(&set) {
            return Err(FieldError::new(param, "must not repeat an earlier entry"));
        }
        sets.push(set);
    }
    Ok(sets)
}

/// What must be unique: each set of fields, and where a caller said so.
fn wanted(shape: &Shape) -> Result<Vec<(Vec<FieldId>, String)>> {
    let fields = shape.fields.iter().filter(|field| field.unique);
    let mut wanted: Vec<_> = fields.map(|field| (vec![field.id], "unique".to_owned())).collect();
    let sets = keys(shape, &shape.settings.unique_keys)
        .map_err(|error| Error::internal(format!("a stored unique key is damaged: {}", error.message)))?;
    for (place, set) in sets.into_iter().enumerate() {
        if !wanted.iter().any(|(other, _)| *other == set) {
            wanted.push((set, format!("settings.unique_keys[{place}]")));
        }
    }
    Ok(wanted)
}

/// Makes the unique indexes those that fields and settings ask for, after a change. `shape` is that after the change;
/// `true` where indexes changed, so that it is out of date. `except` names fields whose items are about to be
/// converted: their indexes follow when that is done.
///
/// # Errors
/// `duplicate_value` where items clash already, `limit_reached`.
pub fn settle(tx: &mut Tx, shape: &Shape, except: &[FieldId]) -> Result<bool> {
    let changed = make_right(tx, shape, except)?;
    if changed {
        table::refuse_too_many(tx, shape.collection, 0)?;
    }
    Ok(changed)
}

/// The same, however many indexes there are.
fn make_right(tx: &mut Tx, shape: &Shape, except: &[FieldId]) -> Result<bool> {
    let mut wanted = wanted(shape)?;
    wanted.retain(|(fields, _)| !fields.iter().any(|field| except.contains(field)));
    let (mut kept, mut changed) = (Vec::new(), false);
    for row in table::rows(tx, shape.collection)? {
        if row.kind != IndexKind::Unique || row.origin != IndexOrigin::Unique {
            continue;
        }
        let parts: Vec<Part> = row.parts.parse()?;
        let place = wanted.iter().position(|(fields, _)| *fields == fields_of(&parts));
        match place {
            Some(place) => {
                wanted.swap_remove(place);
                kept.push(row);
            }
            None if kept.iter().any(|old| row.takes_place_of(old)) => {}
            None => {
                table::drop(tx, &row)?;
                changed = true;
            }
        }
    }
    for (fields, param) in &wanted {
        make(tx, shape, fields, param)?;
        changed = true;
    }
    Ok(changed)
}

/// Makes the unique indexes that are missing after values were converted. It is too late to refuse: where items clash
/// the index has failed, and where other indexes took its place meanwhile there is one more.
pub(crate) fn settle_after(tx: &mut Tx, shape: &Shape) -> Result<()> {
    let refused = match tx.savepoint(|tx| make_right(tx, shape, &[])) {
        Err(error) if error.code() == Code::DuplicateValue => error,
        other => return other.map(std::mem::drop),
    };
    let there: Vec<Vec<FieldId>> = table::rows(tx, shape.collection)?
        .iter()
        .filter(|row| row.kind == IndexKind::Unique)
        .map(|row| Ok(fields_of(&row.parts.parse::<Vec<Part>>()?)))
        .collect::<Result<_>>()?;
    for (fields, _) in wanted(shape)?.into_iter().filter(|(fields, _)| !there.contains(fields)) {
        let parts = parts_of(&fields);
        let (kind, origin) = (IndexKind::Unique, IndexOrigin::Unique);
        let row = table::insert(tx, shape, kind, &parts, origin, IndexStatus::Failed, 0)?;
        table::explain(tx, row.id, refused.message())?;
    }
    Ok(())
}

fn parts_of(fields: &[FieldId]) -> Vec<Part> {
    fields.iter().map(|field| Part { subject: Subject::Field(*field), desc: false }).collect()
}

fn fields_of(parts: &[Part]) -> Vec<FieldId> {
    let field = |part: &Part| match part.subject {
        Subject::Field(id) => Some(id),
        Subject::System(_) => None,
    };
    parts.iter().filter_map(field).collect()
}

fn make(tx: &mut Tx, shape: &Shape, fields: &[FieldId], param: &str) -> Result<()> {
    let parts = parts_of(fields);
    let (kind, origin) = (IndexKind::Unique, IndexOrigin::Unique);
    if crate::count::live_up_to(tx, shape.collection, MOST_AT_ONCE)? > MOST_AT_ONCE {
        table::begin(tx, shape, kind, &parts, origin)?;
        return Ok(());
    }
    let row = table::insert(tx, shape, kind, &parts, origin, IndexStatus::Ready, 0)?;
    fill(tx, shape, &Index::of(&row)?, param)
}

struct Entry {
    index_id: IndexId,
    h: Vec<u8>,
    item_id: ItemId,
}

/// Writes the entries of all live items.
///
/// # Errors
/// `duplicate_value` with the items that clash.
fn fill(tx: &mut Tx, shape: &Shape, index: &Index, param: &str) -> Result<()> {
    let mut holders: HashMap<Vec<u8>, ItemId> = HashMap::new();
    let mut clashes: Vec<(ItemId, ItemId, Vec<Value>)> = Vec::new();
    let mut after = ItemId(0);
    loop {
        let rows = live_after(tx, shape.collection, after)?;
        let Some(last) = rows.last() else { break };
        after = last.id;
        let mut entries = Vec::new();
        for row in &rows {
            let data = row.values()?;
            let record = row.record(&data);
            for digest in digests(shape, index, record.data) {
                if let Some(first) = holders.get(&digest) {
                    let field = |part: &Part| match part.subject {
                        Subject::Field(id) => {
                            shape.field_by_id(id).and_then(|field| record.value(field)).cloned()
                        }
                        Subject::System(_) => None,
                    };
                    clashes.push((*first, row.id, index.parts.iter().filter_map(field).collect()));
                    continue;
                }
                holders.insert(digest.clone(), row.id);
                entries.push(Entry { index_id: index.id, h: digest, item_id: row.id });
            }
        }
        if clashes.is_empty() {
            insert(tx, &entries)?;
        }
    }
    if clashes.is_empty() { Ok(()) } else { Err(refusal(shape, index, &clashes, param)) }
}

fn insert(tx: &mut Tx, entries: &[Entry]) -> Result<()> {
    Rows::of(entries)
        .big_int("index_id", |entry| entry.index_id)
        .binary("h", |entry| entry.h.as_slice())
        .big_int("item_id", |entry| entry.item_id)
        .insert(tx, "item_unique")
}

fn refusal(shape: &Shape, index: &Index, clashes: &[(ItemId, ItemId, Vec<Value>)], param: &str) -> Error {
    let names: Vec<&str> = index.parts.iter().filter_map(|part| part.subject.name(shape)).collect();
    let examples: Vec<Value> = clashes
        .iter()
        .take(MOST_EXAMPLES)
        .map(|(first, second, values)| json!({ "values": values, "item_ids": [first, second] }))
        .collect();
    let (count, noun, names_text) = (clashes.len(), shape.kind.noun, names.join("`, `"));
    let message = format!("{count} {noun}s have the same value of `{names_text}` as another {noun}.");
    Error::new(Code::DuplicateValue, message).param(param).with(
        "details",
        json!({
            "fields": names, "count": clashes.len(), "examples": examples,
            "existing_id": clashes.first().map(|(first, ..)| first),
        }),
    )
}

fn live_after(read: &mut Read, collection: CollectionId, after: ItemId) -> Result<Vec<ItemRow>> {
    Ok(items::table
        .filter(items::collection_id.eq(collection))
        .filter(items::trashed_at.is_null())
        .filter(items::id.gt(after))
        .order(items::id)
        .limit(1_000)
        .select(ItemRow::as_select())
        .load(read.connection())?)
}
