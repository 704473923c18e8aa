//! The words of messages, for search. They are stored in the transaction that writes the message.

use super::row::{MessageRow, MessageType};
use crate::schema::message_terms;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Text};
use fields::terms::tokens;
use model::{MessageId, Result, WorkspaceId};
use std::collections::BTreeSet;
use store::{AnyConnection, CachedChange, Tx};

/// The most words of a message: text behind them is not found.
const MOST: usize = 500;
/// The most words of one statement on SQLite.
const AT_ONCE: usize = 1_000;

/// Makes new messages findable.
///
/// # Errors
/// When the database fails.
pub(crate) fn index(tx: &mut Tx, rows: &[MessageRow]) -> Result<()> {
    insert(tx, rows.iter().flat_map(|row| terms(row, None)).collect())
}

/// Makes a message that was edited or deleted, or whose voice was transcribed, findable by what it says now.
///
/// # Errors
/// When the database fails.
pub(crate) fn reindex(tx: &mut Tx, row: &MessageRow, transcript: Option<&str>) -> Result<()> {
    diesel::delete(message_terms::table.filter(message_terms::message_id.eq(row.id)))
        .execute(tx.connection())?;
    insert(tx, terms(row, transcript).collect())
}

/// A word of a message.
type Term = (WorkspaceId, MessageId, String);

fn terms(row: &MessageRow, transcript: Option<&str>) -> impl Iterator<Item = Term> {
    let is_found = row.message_type != MessageType::Reaction && row.deleted_at.is_none();
    let texts = [Some(row.content.as_str()), transcript];
    let texts = texts.into_iter().flatten().filter(|_| is_found);
    let terms: BTreeSet<String> = texts.flat_map(tokens).take(MOST).collect();
    let (workspace, message) = (row.workspace_id, row.id);
    terms.into_iter().map(move |term| (workspace, message, term))
}

fn insert(tx: &mut Tx, terms: Vec<Term>) -> Result<()> {
    if terms.is_empty() {
        return Ok(());
    }
    match tx.connection() {
        AnyConnection::Sqlite(connection) => {
            let row = |(workspace, message, term)| {
                (
                    message_terms::message_id.eq(message),
                    message_terms::term.eq(term),
                    message_terms::workspace_id.eq(workspace),
                )
            };
            let rows: Vec<_> = terms.into_iter().map(row).collect();
            for rows in rows.chunks(AT_ONCE) {
                diesel::insert_into(message_terms::table).values(rows).execute(connection)?;
            }
        }
        AnyConnection::Postgres(connection) => {
            let (mut workspaces, mut messages, mut words) = (Vec::new(), Vec::new(), Vec::new());
            for (workspace, message, term) in terms {
                workspaces.push(workspace.0);
                messages.push(message.0);
                words.push(term);
            }
            let insert = diesel::sql_query(
                "INSERT INTO message_terms (message_id, term, workspace_id) SELECT * FROM unnest($1, $2, $3)",
            );
            let insert = insert
                .bind::<Array<BigInt>, _>(messages)
                .bind::<Array<Text>, _>(words)
                .bind::<Array<BigInt>, _>(workspaces);
            CachedChange(insert).run(connection)?;
        }
    }
    Ok(())
}
