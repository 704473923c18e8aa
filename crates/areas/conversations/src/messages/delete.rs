//! Deleting messages with all that belongs to them.

use super::broadcasts::BroadcastRecipients;
use crate::schema::{
    files_without_message as left, message_attachments as attachments, message_statuses as statuses,
    message_terms as terms, messages as table,
};
use diesel::prelude::*;
use model::{FileId, MessageId, Result, Timestamp, WorkspaceId};
use store::{Tx, each};

/// Deletes messages, which are locked and of which nothing is still to be done. Files that contacts sent stay for as long as
/// the business keeps those.
pub(crate) fn delete(tx: &mut Tx, broadcasts: &dyn BroadcastRecipients, ids: &[MessageId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    leave_files(tx, ids)?;
    remove(tx, broadcasts, ids)
}

/// The same, but for the files: the caller sees to them.
pub(super) fn remove(tx: &mut Tx, broadcasts: &dyn BroadcastRecipients, ids: &[MessageId]) -> Result<()> {
    diesel::delete(attachments::table.filter(attachments::message_id.eq_any(ids)))
        .execute(tx.connection())?;
    diesel::delete(statuses::table.filter(statuses::message_id.eq_any(ids))).execute(tx.connection())?;
    diesel::delete(terms::table.filter(terms::message_id.eq_any(ids))).execute(tx.connection())?;
    broadcasts.messages_deleted(tx, ids)?;
    diesel::delete(table::table.filter(table::id.eq_any(ids))).execute(tx.connection())?;
    Ok(())
}

fn leave_files(tx: &mut Tx, ids: &[MessageId]) -> Result<()> {
    let received: Vec<(Option<FileId>, WorkspaceId, Timestamp)> = attachments::table
        .filter(attachments::message_id.eq_any(ids))
        .filter(attachments::file_id.is_not_null())
        .filter(attachments::provider_media_id.is_not_null())
        .select((attachments::file_id, attachments::workspace_id, attachments::created_at))
        .load(tx.connection())?;
    let rows: Vec<_> = received
        .into_iter()
        .filter_map(|(file, workspace, at)| {
            Some((left::file_id.eq(file?), left::workspace_id.eq(workspace), left::received_at.eq(at)))
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    each!(tx.connection(), |connection| diesel::insert_into(left::table).values(rows).execute(connection))?;
    Ok(())
}
