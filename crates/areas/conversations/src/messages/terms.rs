//! The words of messages, for search. They are stored in the transaction that writes the message.

use super::row::{MessageRow, MessageType};
use crate::schema::{message_attachments, message_terms, messages};
use diesel::prelude::*;
use fields::terms::tokens;
use jobs::{Job, JobContext, JobError};
use model::{MessageId, Result, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::{Rows, Tx};

/// The most words of a message: text behind them is not found. Writing without spaces has a word with each letter.
const MOST: usize = 4_096;
/// The job that makes all messages findable anew.
const REINDEX: &str = "channels.words";
/// Messages that are looked at in one transaction.
const SLICE: i64 = 200;
/// Slices of one job. What is left is a job of its own, so that no more than this is done again after a crash.
const SLICES: usize = 50;

/// The job that makes messages findable anew that were stored when words were cut in another way.
pub(crate) fn job() -> Job {
    Job::after(
        REINDEX,
        "an update that changes how words are found",
        "makes older messages findable by their words",
        reindex_all,
    )
}

/// Messages up to this one are done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Done {
    after: MessageId,
}

async fn reindex_all(job: JobContext) -> Result<(), JobError> {
    let Done { mut after } = job.payload.parse().map_err(JobError::give_up)?;
    for number in 1.. {
        let is_last = number >= SLICES || job.soft.is_cancelled();
        let next = job.db.write(move |tx| {
            let next = reindex_slice(tx, after)?;
            if let Some(after) = next.filter(|_| is_last) {
                let now = tx.now();
                tx.enqueue(None, REINDEX, Some(&format!("{REINDEX}:{after}")), &Done { after }, now)?;
            }
            Ok(next)
        });
        match next.await? {
            Some(next) if !is_last => after = next,
            _ => break,
        }
    }
    Ok(())
}

/// Makes the messages behind one findable; gives the last of them, unless there are no more.
fn reindex_slice(tx: &mut Tx, after: MessageId) -> Result<Option<MessageId>> {
    let rows: Vec<(MessageRow, Option<String>)> = messages::table
        .left_join(message_attachments::table.on(message_attachments::message_id.eq(messages::id)))
        .filter(messages::id.gt(after))
        .order(messages::id)
        .limit(SLICE)
        .select((MessageRow::as_select(), message_attachments::transcript.nullable()))
        .load(tx.connection())?;
    for (row, transcript) in &rows {
        let transcript = transcript.as_deref();
        // Nothing has changed for plain letters.
        if !row.content.is_ascii() || transcript.is_some_and(|transcript| !transcript.is_ascii()) {
            reindex(tx, row, transcript)?;
        }
    }
    let is_full = rows.len() >= usize::try_from(SLICE).unwrap_or(usize::MAX);
    Ok(rows.last().map(|(row, _)| row.id).filter(|_| is_full))
}

/// Makes new messages findable.
pub(crate) fn index(tx: &mut Tx, rows: &[MessageRow]) -> Result<()> {
    insert(tx, rows.iter().flat_map(|row| terms(row, None)).collect())
}

/// Makes a message that was edited or deleted, or whose voice was transcribed, findable by what it says now.
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
    Rows::of(&terms)
        .big_int("message_id", |(_, message, _)| *message)
        .text("term", |(.., term)| term)
        .big_int("workspace_id", |(workspace, ..)| *workspace)
        .insert(tx, "message_terms")
}
