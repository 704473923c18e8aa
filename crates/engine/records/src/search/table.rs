//! The full-text tables: FTS5 on SQLite, a `tsvector` on PostgreSQL.

use super::Terms;
use Order::{Any, Behind, Newest};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Text};
use fields::terms::{fts5_any, tsquery_any};
use fields::words::Words;
use model::{CollectionId, Error, ItemId, Result};
use roaring::RoaringTreemap;
use store::{AnyConnection, Cached, CachedChange, PgConnection, Read, Tx};

/// So many ids are read from SQLite at a time where all are.
const LISTED: usize = 1 << 16;

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
pub fn with_words(read: &mut Read, collection: CollectionId, words: &Words, most: usize) -> Result<Vec<i64>> {
    let terms = written(read, collection, words);
    ids(read, terms, Newest, most)
}

/// The items that have these words: `most` of them, in any order.
///
/// # Errors
/// When the database fails.
pub fn some_with_words(
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
pub fn all_with_words(read: &mut Read, collection: CollectionId, words: &Words) -> Result<RoaringTreemap> {
    let terms = written(read, collection, words);
    if let AnyConnection::Postgres(connection) = read.connection() {
        return all_on_postgres(connection, terms);
    }
    let (mut all, mut last) = (RoaringTreemap::new(), 0);
    loop {
        let some = ids(read, terms.clone(), Behind(last), LISTED)?;
        last = some.last().copied().unwrap_or(last);
        let is_last = some.len() < LISTED;
        all.append(some.into_iter().map(i64::cast_unsigned)).map_err(Error::internal)?;
        if is_last {
            return Ok(all);
        }
    }
}

/// All items that PostgreSQL finds. It sends them in blocks of those that differ in the last 16 bits alone, two bytes for each.
/// An array would have twelve, and its client keeps as much memory as the largest row took.
fn all_on_postgres(connection: &mut PgConnection, terms: String) -> Result<RoaringTreemap> {
    let blocks = sql::<Binary>(
        "int8send(item_id >> 16) || string_agg(int2send(((item_id & 65535) - 32768)::int2), '') \
         FROM (SELECT item_id FROM item_search WHERE terms @@ ",
    );
    let blocks = blocks.bind::<Text, _>(terms).sql("::tsquery OFFSET 0) AS hits GROUP BY item_id >> 16");
    let mut blocks: Vec<Vec<u8>> = Cached(diesel::select(blocks)).load(connection)?;
    blocks.sort_unstable();
    let mut all = RoaringTreemap::new();
    for block in blocks {
        let Some((first, last_bits)) = block.split_first_chunk() else { continue };
        let first = u64::from_be_bytes(*first) << 16;
        let id = |bits: &[u8; 2]| first | u64::from(u16::from_be_bytes(*bits) ^ 0x8000);
        let mut ids: Vec<u64> = last_bits.as_chunks().0.iter().map(id).collect();
        ids.sort_unstable();
        all.append(ids).map_err(Error::internal)?;
    }
    Ok(all)
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
