//! The full-text tables: FTS5 on SQLite, a `tsvector` on PostgreSQL.

use super::Terms;
use Order::{Any, Behind, Newest};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Text};
use fields::terms::{fts5_any, tsquery_any};
use fields::words::Words;
use model::{CollectionId, Error, ItemId, Result};
use roaring::RoaringTreemap;
use store::{AnyConnection, Cached, CachedChange, Read, Tx};

/// So many ids are read at a time where all are.
const LISTED: usize = 1 << 20;

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
    ids(read, terms, Behind(0), most)
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
    let terms = written(read, collection, words);
    ids(read, terms, Newest, most)
}

/// The items that have these words: `most` of them, in any order.
///
/// # Errors
/// When the database fails.
pub(crate) fn some_with_words(
    read: &mut Read,
    collection: CollectionId,
    words: &Words,
    most: usize,
) -> Result<Vec<i64>> {
    let terms = written(read, collection, words);
    ids(read, terms, Any, most)
}

/// All items that have these words.
///
/// # Errors
/// When the database fails.
pub(crate) fn all_with_words(
    read: &mut Read,
    collection: CollectionId,
    words: &Words,
) -> Result<RoaringTreemap> {
    let (mut all, mut last) = (RoaringTreemap::new(), 0);
    loop {
        let some = listed(read, collection, words, last)?;
        last = some.last().copied().unwrap_or(last);
        let is_last = some.len() < LISTED;
        all.append(some.into_iter().map(i64::cast_unsigned)).map_err(Error::internal)?;
        if is_last {
            return Ok(all);
        }
    }
}

/// The first of the items that have these words and whose ids are greater than `behind`.
fn listed(read: &mut Read, collection: CollectionId, words: &Words, behind: i64) -> Result<Vec<i64>> {
    let terms = written(read, collection, words);
    let AnyConnection::Postgres(connection) = read.connection() else {
        return ids(read, terms, Behind(behind), LISTED);
    };
    // A row for each would take the client five times the memory.
    let select = "coalesce(array_agg(item_id), '{}') FROM (SELECT item_id FROM (SELECT item_id FROM item_search WHERE terms @@ ";
    let select = sql::<Array<BigInt>>(select)
        .bind::<Text, _>(terms)
        .sql("::tsquery OFFSET 0) AS hits WHERE item_id > ");
    let select =
        select.bind::<BigInt, _>(behind).sql(&format!(" ORDER BY item_id LIMIT {LISTED}) AS listed"));
    Ok(Cached(diesel::select(select)).get_result(connection)?)
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
    /// Those with the least ids behind this one.
    Behind(i64),
    /// Those with the greatest ids.
    Newest,
    /// Those that are found first.
    Any,
}

/// The ids of the first `most` items that are found by terms.
fn ids(read: &mut Read, terms: String, order: Order, most: usize) -> Result<Vec<i64>> {
    read.write_full_text()?;
    // The columns are read by their places, because looking for their names takes longer than finding the row. Ids are bound, for
    // each text is kept prepared.
    let found = match read.connection() {
        AnyConnection::Sqlite(connection) => {
            let (behind, id, order) = match order {
                Behind(id) => (" AND rowid > ", id, " ORDER BY rowid"),
                Newest => (" AND rowid <= ", i64::MAX, " ORDER BY rowid DESC"),
                Any => (" AND rowid <= ", i64::MAX, ""),
            };
            let rows =
                sql::<BigInt>("rowid FROM item_search WHERE item_search MATCH ").bind::<Text, _>(terms);
            let rows = rows.sql(behind).bind::<BigInt, _>(id).sql(&format!("{order} LIMIT {most}"));
            Cached(diesel::select(rows)).load(connection)?
        }
        // `OFFSET 0` has hits gathered first, or the planner would go through all items in the order of their ids.
        AnyConnection::Postgres(connection) => {
            let (behind, id, order) = match order {
                Behind(id) => ("::tsquery OFFSET 0) AS hits WHERE item_id > ", id, " ORDER BY item_id"),
                Newest => ("::tsquery) AS hits WHERE item_id <= ", i64::MAX, " ORDER BY item_id DESC"),
                Any => ("::tsquery) AS hits WHERE item_id <= ", i64::MAX, ""),
            };
            let rows = "item_id FROM (SELECT item_id FROM item_search WHERE terms @@ ";
            let rows = sql::<BigInt>(rows).bind::<Text, _>(terms).sql(behind).bind::<BigInt, _>(id);
            Cached(diesel::select(rows.sql(&format!("{order} LIMIT {most}")))).load(connection)?
        }
    };
    Ok(found)
}
