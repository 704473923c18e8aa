//! The full-text tables: FTS5 on SQLite, a `tsvector` on PostgreSQL.

use super::Terms;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use fields::terms::{fts5_any, tsquery_any};
use fields::words::Words;
use model::{CollectionId, ItemId, Result};
use store::{AnyConnection, Cached, CachedChange, Read, Tx, each};

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
    let (sql, terms) = match read.connection() {
        AnyConnection::Sqlite(_) => {
            let rows = "SELECT rowid AS id FROM item_search WHERE item_search MATCH $1 ORDER BY rowid LIMIT";
            (format!("{rows} {most}"), fts5_any(collection, keys))
        }
        // Hits are gathered first, or the planner would go through all items in the order of their ids.
        AnyConnection::Postgres(_) => {
            let hits =
                "WITH hits AS MATERIALIZED (SELECT item_id FROM item_search WHERE terms @@ $1::tsquery)";
            let sql = format!("{hits} SELECT item_id AS id FROM hits ORDER BY item_id LIMIT {most}");
            (sql, tsquery_any(collection, keys))
        }
    };
    ids(read, sql, terms)
}

/// The items that have these words: the newest `most`, in the order of their ids downwards.
///
/// # Errors
/// When the database fails.
pub(crate) fn with_words(
    read: &mut Read,
    collection: CollectionId,
    words: &Words,
    most: usize,
) -> Result<Vec<i64>> {
    let (sql, terms) = match read.connection() {
        AnyConnection::Sqlite(_) => {
            let rows =
                "SELECT rowid AS id FROM item_search WHERE item_search MATCH $1 ORDER BY rowid DESC LIMIT";
            (format!("{rows} {most}"), words.fts5(collection))
        }
        AnyConnection::Postgres(_) => {
            let rows = "SELECT item_id AS id FROM item_search WHERE terms @@ $1::tsquery ORDER BY item_id DESC LIMIT";
            (format!("{rows} {most}"), words.tsquery(collection))
        }
    };
    ids(read, sql, terms)
}

/// The ids that a statement of this database finds by terms.
fn ids(read: &mut Read, sql: String, terms: String) -> Result<Vec<i64>> {
    #[derive(QueryableByName)]
    struct Hit {
        #[diesel(sql_type = BigInt)]
        id: i64,
    }
    read.write_full_text()?;
    let found = Cached(diesel::sql_query(sql).bind::<Text, _>(terms));
    let hits: Vec<Hit> = each!(read.connection(), |connection| found.load(connection))?;
    Ok(hits.into_iter().map(|hit| hit.id).collect())
}
