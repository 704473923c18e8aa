//! The words of messages, for search. They are stored in the transaction that writes the message.

use super::row::{MessageRow, MessageType};
use crate::schema::message_terms;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Text};
use fields::terms::tokens;
use model::Result;
use std::collections::BTreeSet;
use store::{AnyConnection, CachedChange, Tx};

/// The most words of a message: text behind them is not found.
const MOST: usize = 500;

/// Makes a new message findable.
///
/// # Errors
/// When the database fails.
pub(crate) fn index(tx: &mut Tx, row: &MessageRow) -> Result<()> {
    insert(tx, row, None)
}

/// Makes a message that was edited or deleted, or whose voice was transcribed, findable by what it says now.
///
/// # Errors
/// When the database fails.
pub(crate) fn reindex(tx: &mut Tx, row: &MessageRow, transcript: Option<&str>) -> Result<()> {
    diesel::delete(message_terms::table.filter(message_terms::message_id.eq(row.id)))
        .execute(tx.connection())?;
    insert(tx, row, transcript)
}

fn insert(tx: &mut Tx, row: &MessageRow, transcript: Option<&str>) -> Result<()> {
    if row.message_type == MessageType::Reaction || row.deleted_at.is_some() {
        return Ok(());
    }
    let texts = [Some(row.content.as_str()), transcript];
    let terms: BTreeSet<String> = texts.into_iter().flatten().flat_map(tokens).take(MOST).collect();
    if terms.is_empty() {
        return Ok(());
    }
    match tx.connection() {
        AnyConnection::Sqlite(connection) => {
            let rows: Vec<_> = terms
                .into_iter()
                .map(|term| {
                    (
                        message_terms::message_id.eq(row.id),
                        message_terms::term.eq(term),
                        message_terms::workspace_id.eq(row.workspace_id),
                    )
                })
                .collect();
            diesel::insert_into(message_terms::table).values(rows).execute(connection)?;
        }
        AnyConnection::Postgres(connection) => {
            let terms: Vec<String> = terms.into_iter().collect();
            let insert = diesel::sql_query(
                "INSERT INTO message_terms (message_id, term, workspace_id) \
                 SELECT $1, term, $2 FROM unnest($3) AS term",
            );
            let insert = insert
                .bind::<BigInt, _>(row.id.0)
                .bind::<BigInt, _>(row.workspace_id.0)
                .bind::<Array<Text>, _>(terms);
            CachedChange(insert).run(connection)?;
        }
    }
    Ok(())
}
