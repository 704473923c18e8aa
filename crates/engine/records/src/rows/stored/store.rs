//! Storing new items on SQLite: rows of each table many by a statement.

use super::new_rows::{KeyRow, NewRows, Stored};
use crate::activity::{Action, short_actor, short_source};
use crate::columnar;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, Text, Timestamp};
use model::{Error, ItemId, JsonText, Result};
use store::{Cached, SqliteConnection, insert_rows};

/// Stores new items, but for their terms.
///
/// # Errors
/// When the database fails.
pub(crate) fn store(new: &NewRows<'_>, connection: &mut SqliteConnection) -> Result<Stored> {
    let number = |rows: usize| i64::try_from(rows).map_err(Error::internal);
    let items = number(store_rows(new, connection)?)?;
    let digests = number(insert_rows(
        connection,
        "INSERT OR IGNORE INTO item_unique (index_id, h, item_id)",
        "(?, ?, ?)",
        &new.unique,
        |statement, unique| {
            let statement = statement.bind::<BigInt, _>(unique.index_id);
            statement.bind::<Binary, _>(unique.h.as_slice()).bind::<BigInt, _>(unique.item_id)
        },
    )?)?;
    insert_keys(connection, &new.keys)?;
    store_entries(new, connection)?;
    if let Some(index) = columnar::of(new.shape).map(|index| index.id) {
        let insert = "INSERT OR FAIL INTO item_changes (index_id, item_id)";
        insert_rows(connection, insert, "(?, ?)", &new.items, |statement, row| {
            statement.bind::<BigInt, _>(index).bind::<BigInt, _>(row.id)
        })?;
    }
    Ok(Stored { items, digests })
}

/// Inserts new keys, which had better be in the order of their index.
///
/// # Errors
/// When the database fails.
pub(crate) fn insert_keys(connection: &mut SqliteConnection, rows: &[KeyRow]) -> Result<()> {
    let insert = "INSERT OR FAIL INTO item_keys (index_id, k, item_id)";
    insert_rows(connection, insert, "(?, ?, ?)", rows, |statement, row| {
        let statement = statement.bind::<BigInt, _>(row.index_id);
        statement.bind::<Binary, _>(row.k.as_slice()).bind::<BigInt, _>(row.item_id)
    })?;
    Ok(())
}

fn store_rows(new: &NewRows<'_>, connection: &mut SqliteConnection) -> Result<usize> {
    let insert = "INSERT OR IGNORE INTO items (id, workspace_id, collection_id, data, title, computed_errors, \
                  position, external_key, created_by, updated_by, created_at, updated_at, comment_count, version)";
    let places = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 1)";
    insert_rows(connection, insert, places, &new.items, |statement, row| {
        statement
            .bind::<BigInt, _>(row.id)
            .bind::<BigInt, _>(row.workspace_id)
            .bind::<BigInt, _>(row.collection_id)
            .bind::<Text, _>(row.data.as_str())
            .bind::<Text, _>(row.title.as_str())
            .bind::<Nullable<Text>, _>(row.computed_errors.as_ref().map(JsonText::as_str))
            .bind::<Nullable<Text>, _>(row.position.as_deref())
            .bind::<Nullable<Text>, _>(row.external_key.as_deref())
            .bind::<Text, _>(row.created_by.as_str())
            .bind::<Text, _>(row.updated_by.as_str())
            .bind::<Timestamp, _>(row.created_at)
            .bind::<Timestamp, _>(row.updated_at)
    })
}

fn store_entries(new: &NewRows<'_>, connection: &mut SqliteConnection) -> Result<()> {
    let insert = "INSERT OR FAIL INTO item_activity (workspace_id, collection_id, item_id, action, changed, actor, \
                  source, operation_id, created_at)";
    let entries: Vec<_> = new.items.iter().zip(&new.entries).zip(&new.authors).collect();
    insert_rows(
        connection,
        insert,
        "(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        &entries,
        |statement, ((row, entry), author)| {
            statement
                .bind::<BigInt, _>(row.workspace_id)
                .bind::<BigInt, _>(row.collection_id)
                .bind::<BigInt, _>(row.id)
                .bind::<Text, _>(Action::Created)
                .bind::<Text, _>(entry.as_str())
                .bind::<Text, _>(short_actor(&author.cause.actor))
                .bind::<Text, _>(short_source(&author.source))
                .bind::<Nullable<Text>, _>(author.operation.as_deref())
                .bind::<Timestamp, _>(row.created_at)
        },
    )?;
    Ok(())
}

/// Ids for new items, in ascending order: those that SQLite would give them.
///
/// # Errors
/// When the database fails.
pub(crate) fn fresh_ids(connection: &mut SqliteConnection, number: usize) -> Result<Vec<ItemId>> {
    #[derive(QueryableByName)]
    struct Greatest {
        #[diesel(sql_type = BigInt)]
        seq: i64,
    }
    let greatest = diesel::sql_query("SELECT seq FROM sqlite_sequence WHERE name = 'items'");
    let greatest: Option<Greatest> = Cached(greatest).get_result(connection).optional()?;
    let first = greatest.map_or(1, |greatest| greatest.seq.saturating_add(1));
    Ok((first..).take(number).map(ItemId).collect())
}
