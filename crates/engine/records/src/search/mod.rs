//! Full-text search: the terms of items, kept in the transaction that changes them.
//!
//! The service cuts text into terms itself, so that both databases find the same. Each term carries its collection: a
//! list of postings never holds items of another one, and a word that is everywhere elsewhere costs nothing here.
//!
//! [Match keys](crate::shape::Kind::match_keys) are terms too, because full-text indexes gather what is new and write it in
//! order, while each key in an ordinary index would change a page of its own.

pub mod table;

use crate::rows::{ItemRow, live_by_ids};
use crate::shape::Shape;
use fields::terms::Terms;
use fields::words::{field_texts, searchable};
use fields::{Data, Record};
use model::{ItemId, Result};
use store::{Read, Tx};

/// Bytes of a digest: of a million records with ten keys each, one in a hundred thousand look-ups finds a record that has
/// another key.
const DIGEST_BYTES: usize = 5;

/// The text of an item that search looks at: its searchable fields, in order.
pub fn texts<'a>(shape: &'a Shape, record: Record<'a>) -> Vec<&'a str> {
    searchable(shape).flat_map(|field| field_texts(field, record)).collect()
}

/// The terms by which search finds an item; `None` for one that has none.
pub(crate) fn terms(shape: &Shape, record: Record<'_>) -> Option<Terms> {
    terms_of(shape, &texts(shape, record), &(shape.kind.match_keys)(record.data))
}

fn terms_of(shape: &Shape, texts: &[&str], match_keys: &[String]) -> Option<Terms> {
    Some(Terms::of(shape.collection, texts, &digests(match_keys))).filter(|terms| !terms.is_empty())
}

/// What stands for match keys in the index. Other keys may have the same digest, so who finds a record by one must compare
/// it.
fn digests(match_keys: &[String]) -> Vec<String> {
    let digest = |key: &String| {
        let digest = ring::digest::digest(&ring::digest::SHA256, key.as_bytes());
        digest.as_ref().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
    };
    match_keys.iter().map(digest).collect()
}

/// Makes search right after an item changed from `old` to `new`; `None` is an item that is not there or in the trash.
///
/// # Errors
/// When the database fails.
pub fn reindex(tx: &mut Tx, shape: &Shape, old: Option<Record<'_>>, new: Option<Record<'_>>) -> Result<()> {
    let texts_of = |record: Option<_>| record.map(|record| texts(shape, record)).unwrap_or_default();
    let keys_of = |record: Option<Record<'_>>| {
        record.map(|record| (shape.kind.match_keys)(record.data)).unwrap_or_default()
    };
    let (texts, match_keys) = (texts_of(new), keys_of(new));
    // Cutting text into terms is dear, and so are match keys. Most changes are to something else, and of what was there
    // before only that is asked.
    if texts_of(old) == texts && keys_of(old) == match_keys {
        return Ok(());
    }
    if let Some(record) = old {
        table::delete(tx, ItemId(record.id()))?;
    }
    let terms = terms_of(shape, &texts, &match_keys);
    new.zip(terms).map_or(Ok(()), |(record, terms)| table::insert(tx, ItemId(record.id()), &terms))
}

/// Stores the terms of a live item anew, whatever they were.
///
/// # Errors
/// When the database fails.
pub(crate) fn rebuild(tx: &mut Tx, shape: &Shape, record: Record<'_>) -> Result<()> {
    table::delete(tx, ItemId(record.id()))?;
    terms(shape, record).map_or(Ok(()), |terms| table::insert(tx, ItemId(record.id()), &terms))
}

/// Live records that have a match key in common with a record of these values, which may be among them: the `most` with the
/// least ids, in their order.
///
/// # Errors
/// When the database fails.
pub fn sharing(read: &mut Read, shape: &Shape, data: &Data, most: usize) -> Result<Vec<ItemRow>> {
    let match_keys = (shape.kind.match_keys)(data);
    if match_keys.is_empty() {
        return Ok(Vec::new());
    }
    let ids = table::with_any(read, shape.collection, &digests(&match_keys), most)?;
    live_by_ids(read, shape, &ids)
}
