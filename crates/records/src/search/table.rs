//! The full-text tables: FTS5 on SQLite, a `tsvector` on PostgreSQL.

use super::Terms;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{ItemId, Result};
use store::{AnyConnection, CachedChange, SqliteConnection, Tx};

/// The FTS5 table, as far as diesel must know it for statements that are prepared once.
mod fts5 {
    diesel::table! {
        item_search (rowid) {
            rowid -> BigInt,
            terms -> Text,
        }
    }
}
use fts5::item_search;

pub(super) fn insert(tx: &mut Tx, item: ItemId, terms: &Terms) -> Result<()> {
    match tx.connection() {
        AnyConnection::Sqlite(connection) => {
            insert_on_sqlite(connection, item, &terms.fts5())?;
        }
        AnyConnection::Postgres(connection) => {
            let insert =
                diesel::sql_query("INSERT INTO item_search (item_id, terms) VALUES ($1, $2::tsvector)")
                    .bind::<BigInt, _>(item.0)
                    .bind::<Text, _>(terms.tsvector());
            CachedChange(insert).run(connection)?;
        }
    }
    Ok(())
}

/// Inserts the terms of an item, as FTS5 takes them.
///
/// # Errors
/// When the database fails.
pub(crate) fn insert_on_sqlite(connection: &mut SqliteConnection, item: ItemId, terms: &str) -> Result<()> {
    diesel::insert_into(item_search::table)
        .values((item_search::rowid.eq(item.0), item_search::terms.eq(terms)))
        .execute(connection)?;
    Ok(())
}

/// Takes an item out of search. One that is not there is as good.
///
/// # Errors
/// When the database fails.
pub fn delete(tx: &mut Tx, item: ItemId) -> Result<()> {
    match tx.connection() {
        AnyConnection::Sqlite(connection) => {
            diesel::delete(item_search::table.find(item.0)).execute(connection)?;
        }
        AnyConnection::Postgres(connection) => {
            let delete = diesel::sql_query("DELETE FROM item_search WHERE item_id = $1");
            CachedChange(delete.bind::<BigInt, _>(item.0)).run(connection)?;
        }
    }
    Ok(())
}
