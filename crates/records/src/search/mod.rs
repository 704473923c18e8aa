//! Full-text search: the terms of items, kept in the transaction that changes them.
//!
//! The service cuts text into terms itself, so that both databases find the same. Each term carries its collection: a
//! list of postings never holds items of another one, and a word that is everywhere elsewhere costs nothing here.

pub mod table;

use crate::shape::Shape;
use fields::FieldType;
use fields::Record;
use fields::terms::Terms;
use model::{ItemId, Result};
use serde_json::Value;
use store::Tx;

/// The text of an item that search looks at: its searchable fields, in order.
pub fn texts(shape: &Shape, record: Record<'_>) -> Vec<String> {
    let mut texts = Vec::new();
    for field in shape.fields.iter().filter(|field| field.kind.is_searchable()) {
        let label = |key: &str| match field.options.choice(key) {
            Some((_, choice)) => choice.label.clone(),
            None => key.to_owned(),
        };
        match (field.kind, record.value(field)) {
            (FieldType::Select, Some(Value::String(key))) => texts.push(label(key)),
            (FieldType::MultiSelect, Some(Value::Array(keys))) => {
                texts.extend(keys.iter().filter_map(Value::as_str).map(label));
            }
            (_, Some(Value::String(text))) => texts.push(text.clone()),
            _ => {}
        }
    }
    texts
}

/// Makes search right after an item changed from `old` to `new`; `None` is an item that is not there or in the trash.
///
/// # Errors
/// When the database fails.
pub fn reindex(tx: &mut Tx, shape: &Shape, old: Option<Record<'_>>, new: Option<Record<'_>>) -> Result<()> {
    let texts = |record: Option<Record<'_>>| record.map(|record| texts(shape, record)).unwrap_or_default();
    let (before, after) = (texts(old), texts(new));
    // Cutting text into terms is dear, and most changes are to something else.
    if before == after {
        return Ok(());
    }
    let terms = |texts: &[String]| Terms::of(shape.collection, texts);
    let (before, after) = (terms(&before), terms(&after));
    if before == after {
        return Ok(());
    }
    if let Some(record) = old.filter(|_| !before.is_empty()) {
        table::delete(tx, ItemId(record.id()))?;
    }
    match new.filter(|_| !after.is_empty()) {
        Some(record) => table::insert(tx, ItemId(record.id()), &after),
        None => Ok(()),
    }
}

/// Stores the terms of a live item anew, whatever they were.
///
/// # Errors
/// When the database fails.
pub fn rebuild(tx: &mut Tx, shape: &Shape, record: Record<'_>) -> Result<()> {
    table::delete(tx, ItemId(record.id()))?;
    let terms = Terms::of(shape.collection, &texts(shape, record));
    if terms.is_empty() { Ok(()) } else { table::insert(tx, ItemId(record.id()), &terms) }
}
