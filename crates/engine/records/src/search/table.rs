//! The full-text tables: FTS5 on SQLite, a `tsvector` on PostgreSQL.

use super::Terms;
use Order::{Newest, Oldest};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use fields::terms::{fts5_any, tsquery_any};
use fields::words::Words;
use model::{CollectionId, ItemId, Result};
use store::{AnyConnection, Cached, CachedChange, Read, Tx};

/// The table.
const TABLE: &str = "item_search";

/// Stores the terms of an item, which has none.
///
/// # Errors
/// When the database fails.
pub(super) fn insert(tx: &mut Tx, item: ItemId, terms: &Terms) -> Result<()> {
    if let AnyConnection::Postgres(connection) = tx.connection() {
        let insert = diesel::sql_query("INSERT INTO item_search (item_id, terms) VALUES ($1, $2::tsvector)")
            .bind::<BigInt, _>(item.0)
            .bind::<Text, _>(terms.tsvector());
        CachedChange(insert).run(connection)?;
    } else {
        insert_on_sqlite(tx, item, terms);
    }
    Ok(())
}

/// The same, on SQLite.
pub(crate) fn insert_on_sqlite(tx: &mut Tx, item: ItemId, terms: &Terms) {
    tx.set_full_text(TABLE, item.0, Some(terms.fts5()), true);
}

/// Takes an item out of search. One that is not there is as good.
///
/// # Errors
/// When the database fails.
pub fn delete(tx: &mut Tx, item: ItemId) -> Result<()> {
    if let AnyConnection::Postgres(connection) = tx.connection() {
        let delete = diesel::sql_query("DELETE FROM item_search WHERE item_id = $1");
        CachedChange(delete.bind::<BigInt, _>(item.0)).run(connection)?;
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
    let terms = match read.connection() {
        AnyConnection::Sqlite(_) => fts5_any(collection, keys),
        AnyConnection::Postgres(_) => tsquery_any(collection, keys),
    };
    ids(read, terms, Oldest, most)
}

/// The items that have these words: the newest `most`, in the order of their ids downwards.
///
/// # Errors
/// When the database fails.
pub fn with_words(read: &mut Read, collection: CollectionId, words: &Words, most: usize) -> Result<Vec<i64>> {
    let terms = written(read, collection, words);
    ids(read, terms, Newest, most)
}

/// Words as this database asks for them.
fn written(read: &mut Read, collection: CollectionId, words: &Words) -> String {
    match read.connection() {
        AnyConnection::Sqlite(_) => words.fts5(collection),
        AnyConnection::Postgres(_) => words.tsquery(collection),
    }
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
    // The columns are read by their places, because looking for their names takes longer than finding the row.
    let found = match read.connection() {
        AnyConnection::Sqlite(connection) => {
            let rows =
                sql::<BigInt>("rowid FROM item_search WHERE item_search MATCH ").bind::<Text, _>(terms);
            let rows = rows.sql(&format!(" ORDER BY rowid{direction} LIMIT {most}"));
            Cached(diesel::select(rows)).load(connection)?
        }
        AnyConnection::Postgres(connection) => {
            // `OFFSET 0` has hits gathered first, or the planner would go through all items in the order of their ids. Of
            // the newest it may: where many items have the words, it ends soon.
            let gathered = match order {
                Oldest => " OFFSET 0",
                Newest => "",
            };
            let rows = sql::<BigInt>("item_id FROM (SELECT item_id FROM item_search WHERE terms @@ ");
            let rows = rows.bind::<Text, _>(terms);
            let rows =
                rows.sql(&format!("::tsquery{gathered}) AS hits ORDER BY item_id{direction} LIMIT {most}"));
            Cached(diesel::select(rows)).load(connection)?
        }
    };
    Ok(found)
}
