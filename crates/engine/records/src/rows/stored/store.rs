//! Storing new items with their keys, unique values, terms and activity entries, many at a time.

use super::new_rows::{KeyRow, NewRows, Stored};
use crate::Author;
use crate::activity::{Action, short_actor, short_source};
use crate::columnar;
use crate::rows::row::ItemRow;
use crate::search::table::{TABLE, set_on_sqlite};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use fields::terms::Terms;
use model::{Error, ItemId, JsonText, Result};
use store::{Cached, OnConflict, Rows, Tx, insert_all};

/// Stores new items, which is one round trip to PostgreSQL. Whoever loses a race for an external key or for a unique value finds
/// fewer rows stored than it gave.
///
/// # Errors
/// When the database fails.
pub(crate) fn store(tx: &mut Tx, new: &NewRows<'_>) -> Result<Stored> {
    let is_postgres = tx.is_postgres();
    let unique = Rows::of(&new.unique)
        .big_int("index_id", |unique| unique.index_id)
        .binary("h", |unique| unique.h.as_slice())
        .big_int("item_id", |unique| unique.item_id);
    // SQLite has its terms in a full-text table, which is written at the end of the transaction.
    let tsvectors: &[(ItemId, Terms)] = if is_postgres { &new.terms } else { &[] };
    let tsvectors =
        Rows::of(tsvectors)
            .big_int("item_id", |(item, _)| *item)
            .cast("terms", "tsvector", |(_, terms)| terms.tsvector());
    let entries: Vec<Entry<'_>> = new.items.iter().zip(&new.entries).zip(&new.authors).collect();
    let index = columnar::of(new.shape).map(|index| index.id);
    let changes = Rows::of(&new.items).big_int("index_id", |_| index).big_int("item_id", |row| row.id);
    let (items, keys, entries) = (item_rows(&new.items), key_rows(&new.keys), entry_rows(&entries));
    let mut insertions = vec![
        items.insertion("items", OnConflict::Ignore),
        unique.insertion("item_unique", OnConflict::Ignore),
        keys.insertion("item_keys", OnConflict::Fail),
        tsvectors.insertion(TABLE, OnConflict::Fail),
        entries.insertion("item_activity", OnConflict::Fail),
    ];
    if index.is_some() {
        insertions.push(changes.insertion("item_changes", OnConflict::Fail));
    }
    let inserted = insert_all(tx, &insertions)?;
    if !is_postgres {
        for (item, terms) in &new.terms {
            set_on_sqlite(tx, *item, terms);
        }
    }
    let stored = |place: usize| inserted.get(place).copied().unwrap_or(0);
    Ok(Stored { items: stored(0), digests: stored(1) })
}

/// A row, its activity entry, and who created it.
type Entry<'a> = ((&'a ItemRow, &'a JsonText), &'a &'a Author);

fn item_rows(rows: &[ItemRow]) -> Rows<'_, ItemRow> {
    Rows::of(rows)
        .big_int("id", |row| row.id)
        .big_int("workspace_id", |row| row.workspace_id)
        .big_int("collection_id", |row| row.collection_id)
        .text("data", |row| &row.data)
        .text("title", |row| row.title.as_str())
        .text("computed_errors", |row| row.computed_errors.as_ref())
        .text("position", |row| row.position.as_deref())
        .text("external_key", |row| row.external_key.as_deref())
        .big_int("comment_count", |_| 0)
        .big_int("version", |_| 1)
        .text("created_by", |row| &row.created_by)
        .text("updated_by", |row| &row.updated_by)
        .time("created_at", |row| row.created_at)
        .time("updated_at", |row| row.updated_at)
}

fn entry_rows<'a>(entries: &'a [Entry<'a>]) -> Rows<'a, Entry<'a>> {
    Rows::of(entries)
        .big_int("item_id", |((row, _), _)| row.id)
        .text("changed", |((_, entry), _)| *entry)
        .text("actor", |(_, author)| short_actor(&author.cause.actor))
        .text("source", |(_, author)| short_source(&author.source))
        .text("operation_id", |(_, author)| author.operation.as_deref())
        .big_int("workspace_id", |((row, _), _)| row.workspace_id)
        .big_int("collection_id", |((row, _), _)| row.collection_id)
        .text("action", |_| Action::Created)
        .time("created_at", |((row, _), _)| row.created_at)
}

/// Keys as rows of `item_keys`, which had better be in the order of their index.
pub(crate) fn key_rows(rows: &[KeyRow]) -> Rows<'_, KeyRow> {
    Rows::of(rows)
        .big_int("index_id", |row| row.index_id)
        .binary("k", |row| row.k.as_slice())
        .big_int("item_id", |row| row.item_id)
}

/// Ids for new items, in ascending order: on SQLite those that it would give them.
///
/// # Errors
/// When the database fails.
pub(crate) fn fresh_ids(tx: &mut Tx, number: usize) -> Result<Vec<ItemId>> {
    #[derive(QueryableByName)]
    struct Fresh {
        #[diesel(sql_type = BigInt)]
        id: i64,
    }
    if tx.is_postgres() {
        let number = i64::try_from(number).map_err(Error::internal)?;
        let ids = diesel::sql_query("SELECT nextval('items_id_seq') AS id FROM generate_series(1, $1)");
        let ids: Vec<Fresh> = Cached(ids.bind::<BigInt, _>(number)).load(tx.connection())?;
        let mut ids: Vec<ItemId> = ids.into_iter().map(|fresh| ItemId(fresh.id)).collect();
        ids.sort_unstable();
        return Ok(ids);
    }
    let greatest = diesel::sql_query("SELECT seq AS id FROM sqlite_sequence WHERE name = 'items'");
    let greatest: Option<Fresh> = Cached(greatest).get_result(tx.connection()).optional()?;
    let first = greatest.map_or(1, |greatest| greatest.id.saturating_add(1));
    Ok((first..).take(number).map(ItemId).collect())
}
