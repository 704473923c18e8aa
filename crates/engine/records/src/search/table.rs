//! The full-text tables: FTS5 on SQLite, a `tsvector` on PostgreSQL.

use super::Terms;
use Order::{Newest, Oldest};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use fields::terms::{fts5_any, tsquery_any};
use fields::words::Words;
use model::{CollectionId, ItemId, Result};
use store::{Cached, CachedChange, Read, Rows, Tx};

/// The table.
pub(crate) const TABLE: &str = "item_search";

/// Stores the terms of an item, which has none.
///
/// # Errors
/// When the database fails.
pub(super) fn insert(tx: &mut Tx, item: ItemId, terms: &Terms) -> Result<()> {
    if tx.is_postgres() {
        let row = [(item, terms)];
        let rows = Rows::of(&row).big_int("item_id", |(item, _)| *item);
        return rows.cast("terms", "tsvector", |(_, terms)| terms.tsvector()).insert(tx, TABLE);
    }
    set_on_sqlite(tx, item, terms);
    Ok(())
}

/// The same, on SQLite.
pub(crate) fn set_on_sqlite(tx: &mut Tx, item: ItemId, terms: &Terms) {
    tx.set_full_text(TABLE, item.0, Some(terms.fts5()), true);
}

/// Takes an item out of search. One that is not there is as good.
///
/// # Errors
/// When the database fails.
pub fn delete(tx: &mut Tx, item: ItemId) -> Result<()> {
    if tx.is_postgres() {
        let delete = diesel::sql_query("DELETE FROM item_search WHERE item_id = $1");
        CachedChange(delete.bind::<BigInt, _>(item.0)).run(tx.connection())?;
    } else {
        tx.set_full_text(TABLE, item.0, None, false);
    }
    Ok(())
}

/// The items that have one of these match keys: the `most` with the least ids, in their order.
pub(super) fn with_any(
    read: &mut Read,
    collection: CollectionId,
    keys: &[String],
    most: usize,
) -> Result<Vec<i64>> {
    let terms = if read.is_postgres() { tsquery_any(collection, keys) } else { fts5_any(collection, keys) };
    ids(read, terms, Oldest, most)
}

/// The items that have these words: the newest `most`, in the order of their ids downwards.
///
/// # Errors
/// When the database fails.
pub fn with_words(read: &mut Read, collection: CollectionId, words: &Words, most: usize) -> Result<Vec<i64>> {
    let terms = if read.is_postgres() { words.tsquery(collection) } else { words.fts5(collection) };
    ids(read, terms, Newest, most)
}

/// Which items come first.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// Those with the least ids.
    Oldest,
    /// Those with the greatest ids.
    Newest,
}

/// The ids of the first `most` items that are found by terms.
fn ids(read: &mut Read, terms: String, order: Order, most: usize) -> Result<Vec<i64>> {
    read.write_full_text()?;
    let direction = match order {
        Oldest => "",
        Newest => " DESC",
    };
    // `OFFSET 0` has PostgreSQL gather hits first, or its planner would go through all items in the order of their ids. Of the newest
    // it may: where many items have the words, it ends soon.
    let gathered = match order {
        Oldest => " OFFSET 0",
        Newest => "",
    };
    let (before, after) = if read.is_postgres() {
        let hits = "item_id FROM (SELECT item_id FROM item_search WHERE terms @@ ";
        (hits, format!("::tsquery{gathered}) AS hits ORDER BY item_id{direction} LIMIT {most}"))
    } else {
        (
            "rowid FROM item_search WHERE item_search MATCH ",
            format!(" ORDER BY rowid{direction} LIMIT {most}"),
        )
    };
    // The columns are read by their places, because looking for their names takes longer than finding the row.
    let rows = sql::<BigInt>(before).bind::<Text, _>(terms).sql(&after);
    Ok(Cached(diesel::select(rows)).load(read.connection())?)
}
