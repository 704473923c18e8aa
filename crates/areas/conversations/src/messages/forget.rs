//! What was said with a contact that was deleted permanently, and the files that it sent.

use super::broadcasts::BroadcastRecipients;
use super::delete::remove;
use crate::schema::{
    conversations, files_without_message as left, held_message_events as held,
    message_attachments as attachments, message_outbox as outbox, messages as table,
};
use crate::viewers;
use diesel::dsl::exists;
use diesel::prelude::*;
use model::{ChannelId, Code, ContactId, ConversationId, FileId, MessageId, Result, WorkspaceId};
use ports::{FileUses, Left};
use std::collections::BTreeSet;
use store::{Tx, for_update};

/// The most messages of one transaction.
const PIECE: i64 = 100;

/// Deletes a part of what was said with a contact, a conversation after the other, and gives how much is left. What waits to
/// be sent is not sent; messages that are being sent, and files that are being read, are waited for.
pub(super) fn forget(
    tx: &mut Tx,
    uses: &FileUses,
    broadcasts: &dyn BroadcastRecipients,
    workspace: WorkspaceId,
    contact: ContactId,
) -> Result<Left> {
    let mut left = Left::Nothing;
    let of: Vec<(ConversationId, ChannelId)> = conversations::table
        .filter(conversations::contact_id.eq(contact))
        .filter(conversations::workspace_id.eq(workspace))
        .order(conversations::channel_id)
        .select((conversations::id, conversations::channel_id))
        .load(tx.connection())?;
    for (conversation, channel) in of {
        // Whoever sends, receives or reports messages shares the channel.
        channels::hold(tx, channel)?;
        withdraw(tx, broadcasts, conversation)?;
        let busy = busy(tx, conversation)?;
        let ids = next(tx, conversation, &busy)?;
        if !ids.is_empty() {
            let files = received(tx, &ids)?;
            remove(tx, broadcasts, &ids)?;
            files.into_iter().try_for_each(|file| trash_unused(tx, uses, workspace, file))?;
            return Ok(Left::More);
        }
        if busy.is_empty() {
            viewers::delete_conversation(tx, conversation)?;
        } else {
            left = Left::Busy;
        }
    }
    Ok(left)
}

/// Takes the messages of a conversation out of the outbox that are not being sent, and publishes nothing of what the contact
/// wrote. It is not answered, as no contact is that does not exist.
fn withdraw(tx: &mut Tx, broadcasts: &dyn BroadcastRecipients, conversation: ConversationId) -> Result<()> {
    let waiting: Vec<MessageId> = diesel::delete(outbox::table)
        .filter(outbox::conversation_id.eq(conversation))
        .filter(outbox::claimed_epoch.is_null())
        .returning(outbox::message_id)
        .get_results(tx.connection())?;
    broadcasts.contact_deleted(tx, &waiting)?;
    diesel::delete(held::table.filter(held::conversation_id.eq(conversation))).execute(tx.connection())?;
    Ok(())
}

/// Messages that are being sent, and those whose files are being read.
fn busy(tx: &mut Tx, conversation: ConversationId) -> Result<Vec<MessageId>> {
    let mut busy: Vec<MessageId> = outbox::table
        .filter(outbox::conversation_id.eq(conversation))
        .select(outbox::message_id)
        .load(tx.connection())?;
    let reading = attachments::table
        .inner_join(table::table.on(table::id.eq(attachments::message_id)))
        .filter(table::conversation_id.eq(conversation))
        .filter(attachments::next_attempt_at.is_not_null())
        .select(table::id);
    busy.extend(reading.load::<MessageId>(tx.connection())?);
    Ok(busy)
}

/// The next messages of a conversation that are not busy, locked.
fn next(tx: &mut Tx, conversation: ConversationId, busy: &[MessageId]) -> Result<Vec<MessageId>> {
    let next = table::table
        .filter(table::conversation_id.eq(conversation))
        .filter(table::id.ne_all(busy))
        .order(table::id)
        .limit(PIECE)
        .select(table::id);
    Ok(for_update(next).load(tx.connection())?)
}

/// The files that came with messages of a contact.
fn received(tx: &mut Tx, ids: &[MessageId]) -> Result<BTreeSet<FileId>> {
    let files: Vec<Option<FileId>> = attachments::table
        .filter(attachments::message_id.eq_any(ids))
        .filter(attachments::file_id.is_not_null())
        .filter(attachments::provider_media_id.is_not_null())
        .select(attachments::file_id)
        .load(tx.connection())?;
    Ok(files.into_iter().flatten().collect())
}

/// Locks a file, if its bytes are there.
pub(crate) fn is_locked(tx: &mut Tx, workspace: WorkspaceId, file: FileId) -> Result<bool> {
    match files::locked(tx, workspace, file) {
        Err(gone) if gone.code() == Code::NotFound => Ok(false),
        row => row.map(|_| true),
    }
}

/// Moves a file to the trash, unless something needs it.
pub(crate) fn trash_unused(tx: &mut Tx, uses: &FileUses, workspace: WorkspaceId, file: FileId) -> Result<()> {
    // Whoever comes to refer to the file waits for this transaction (`files::held`).
    is_locked(tx, workspace, file)?;
    let attached = attachments::table.filter(attachments::file_id.eq(file));
    let is_attached: bool = diesel::select(exists(attached)).get_result(tx.connection())?;
    if is_attached || !uses.of(tx, workspace, file, 1)?.is_empty() {
        return Ok(());
    }
    diesel::delete(left::table.find(file)).execute(tx.connection())?;
    files::trash(tx, workspace, file)?;
    Ok(())
}
