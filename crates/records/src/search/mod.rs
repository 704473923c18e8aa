//! Full-text search: the terms of items, kept in the transaction that changes them.
//!
//! The service cuts text into terms itself, so that both databases find the same. Each term carries its collection: a
//! list of postings never holds items of another one, and a word that is everywhere elsewhere costs nothing here.

pub mod table;

use crate::shape::Shape;
use fields::Record;
use fields::terms::Terms;
use fields::words::{field_texts, searchable};
use model::{ItemId, Result};
use store::Tx;

/// The text of an item that search looks at: its searchable fields, in order.
pub fn texts<'a>(shape: &'a Shape, record: Record<'a>) -> Vec<&'a str> {
    searchable(shape).flat_map(|field| field_texts(field, record)).collect()
}

/// The terms by which search finds an item; `None` for one that has none.
pub(crate) fn terms(shape: &Shape, record: Record<'_>) -> Option<Terms> {
    Some(Terms::of(shape.collection, &texts(shape, record))).filter(|terms| !terms.is_empty())
}

/// Makes search right after an item changed from `old` to `new`; `None` is an item that is not there or in the trash.
///
/// # Errors
/// When the database fails.
pub fn reindex(tx: &mut Tx, shape: &Shape, old: Option<Record<'_>>, new: Option<Record<'_>>) -> Result<()> {
    let before = old.map(|record| texts(shape, record)).unwrap_or_default();
    let after = new.map(|record| texts(shape, record)).unwrap_or_default();
    // Cutting text into terms is dear, and most changes are to something else.
    if before == after {
        return Ok(());
    }
    let terms = |texts: &[&str]| Terms::of(shape.collection, texts);
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
pub(crate) fn rebuild(tx: &mut Tx, shape: &Shape, record: Record<'_>) -> Result<()> {
    table::delete(tx, ItemId(record.id()))?;
    terms(shape, record).map_or(Ok(()), |terms| table::insert(tx, ItemId(record.id()), &terms))
}
