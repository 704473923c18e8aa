//! What follows a contact that is merged into another, and is deleted with one that is deleted permanently: its conversations
//! with all that was said. And the files that messages need.

use super::broadcasts::BroadcastRecipients;
use super::conversation::Conversation;
use super::forget;
use super::row::MessageDirection;
use crate::schema::{conversations, message_attachments, message_outbox, messages};
use crate::viewers;
use diesel::prelude::*;
use model::{ContactId, ConversationId, FileId, MessageId, Result, WorkspaceId};
use ports::{ContactReferences, FileReferences, FileUse, FileUses, Left};
use std::sync::Arc;
use store::{Read, Tx};

/// The word for messages among what refers to files.
pub(crate) const MESSAGE: &str = "message";

/// Messages that wait to be sent with a file.
pub(crate) struct MessageFiles;

impl FileReferences for MessageFiles {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, file: FileId, most: i64) -> Result<Vec<FileUse>> {
        let waiting: Vec<MessageId> = message_attachments::table
            .inner_join(
                message_outbox::table.on(message_outbox::message_id.eq(message_attachments::message_id)),
            )
            .filter(message_attachments::file_id.eq(file))
            .filter(message_attachments::workspace_id.eq(workspace))
            .order(message_outbox::message_id)
            .limit(most)
            .select(message_outbox::message_id)
            .load(read.connection())?;
        Ok(waiting.into_iter().map(|id| FileUse { r#type: MESSAGE, id: id.to_string() }).collect())
    }
}

/// Conversations and messages, with the files that contacts sent.
pub(crate) struct MessageReferences {
    /// What refers to files, because those that something else needs stay.
    pub(crate) file_uses: FileUses,
    /// The recipients of broadcasts, which lose the messages that are deleted.
    pub(crate) broadcasts: Arc<dyn BroadcastRecipients>,
}

impl ContactReferences for MessageReferences {
    fn tables(&self) -> &'static [&'static str] {
        &["conversations", "messages", "message_attachments"]
    }

    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()> {
        let of = |contact: ContactId| {
            conversations::table
                .filter(conversations::contact_id.eq(contact))
                .filter(conversations::workspace_id.eq(workspace))
                .select(Conversation::as_select())
        };
        let moving: Vec<Conversation> = of(from).load(tx.connection())?;
        if moving.is_empty() {
            return Ok(());
        }
        let own: Vec<Conversation> = of(to).load(tx.connection())?;
        diesel::update(messages::table)
            .filter(messages::contact_id.eq(from))
            .filter(messages::workspace_id.eq(workspace))
            .set(messages::contact_id.eq(to))
            .execute(tx.connection())?;
        diesel::update(message_attachments::table)
            .filter(message_attachments::contact_id.eq(from))
            .filter(message_attachments::workspace_id.eq(workspace))
            .set(message_attachments::contact_id.eq(to))
            .execute(tx.connection())?;
        for conversation in moving {
            match own.iter().find(|own| own.channel_id == conversation.channel_id) {
                Some(own) => unite(tx, own, &conversation)?,
                None => take_over(tx, &conversation, to)?,
            }
        }
        Ok(())
    }

    fn files(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contact: ContactId,
        after: FileId,
        most: i64,
    ) -> Result<Vec<FileId>> {
        let files: Vec<Option<FileId>> = message_attachments::table
            .filter(message_attachments::contact_id.eq(contact))
            .filter(message_attachments::workspace_id.eq(workspace))
            .filter(message_attachments::file_id.gt(after))
            .order(message_attachments::file_id)
            .select(message_attachments::file_id)
            .distinct()
            .limit(most)
            .load(read.connection())?;
        Ok(files.into_iter().flatten().collect())
    }

    fn forget(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<Left> {
        forget::forget(tx, &self.file_uses, &*self.broadcasts, workspace, contact)
    }
}

/// Gives a conversation to the contact that remains.
fn take_over(tx: &mut Tx, conversation: &Conversation, to: ContactId) -> Result<()> {
    let row = conversations::table.find(conversation.id);
    diesel::update(row).set(conversations::contact_id.eq(to)).execute(tx.connection())?;
    if conversation.reply_run_id.is_some() {
        ask_again(tx, conversation.id)?;
    }
    Ok(())
}

/// Lets an answer that is being made be made anew: it was begun for another contact, of whom it may not be known whether a
/// person has taken over, and does not know all that was asked.
fn ask_again(tx: &mut Tx, conversation: ConversationId) -> Result<()> {
    let now = tx.now();
    diesel::update(conversations::table.find(conversation))
        .set((conversations::reply_due_at.eq(now), conversations::reply_run_upto.eq(MessageId(0))))
        .execute(tx.connection())?;
    Ok(())
}

/// The last message before the first one that a conversation has not answered yet. `None` where it has nothing to answer.
fn answered_to(tx: &mut Tx, conversation: &Conversation) -> Result<Option<MessageId>> {
    if conversation.reply_due_at.is_none() && conversation.reply_run_id.is_none() {
        return Ok(None);
    }
    let first: Option<MessageId> = messages::table
        .filter(messages::conversation_id.eq(conversation.id))
        .filter(messages::direction.eq(MessageDirection::Inbound))
        .filter(messages::id.gt(conversation.reply_upto))
        .select(diesel::dsl::min(messages::id))
        .get_result(tx.connection())?;
    Ok(first.map(|first| MessageId(first.0 - 1)))
}

/// Moves what was said in a conversation into another one of the same channel, and deletes it.
fn unite(tx: &mut Tx, into: &Conversation, from: &Conversation) -> Result<()> {
    let asked = (answered_to(tx, into)?, answered_to(tx, from)?);
    diesel::update(messages::table.filter(messages::conversation_id.eq(from.id)))
        .set(messages::conversation_id.eq(into.id))
        .execute(tx.connection())?;
    diesel::update(message_outbox::table.filter(message_outbox::conversation_id.eq(from.id)))
        .set(message_outbox::conversation_id.eq(into.id))
        .execute(tx.connection())?;
    diesel::update(crate::schema::held_message_events::table)
        .filter(crate::schema::held_message_events::conversation_id.eq(from.id))
        .set(crate::schema::held_message_events::conversation_id.eq(into.id))
        .execute(tx.connection())?;
    let now = tx.now();
    // What either asked is answered. What the other was answered meanwhile may be before that and be answered once more.
    let upto = match asked {
        (Some(one), Some(other)) => one.min(other),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => into.reply_upto.max(from.reply_upto),
    };
    diesel::update(conversations::table.find(into.id))
        .set((
            conversations::last_message_id.eq(into.last_message_id.max(from.last_message_id)),
            conversations::last_message_at.eq(into.last_message_at.max(from.last_message_at)),
            conversations::last_inbound_at.eq(into.last_inbound_at.max(from.last_inbound_at)),
            conversations::last_outbound_at.eq(into.last_outbound_at.max(from.last_outbound_at)),
            conversations::unread_count.eq(into.unread_count + from.unread_count),
            conversations::reply_since.eq(into.reply_since.or(from.reply_since)),
            conversations::reply_due_at.eq(into.reply_due_at.max(from.reply_due_at)),
            conversations::reply_upto.eq(upto),
            conversations::version.eq(conversations::version + 1),
            conversations::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    if from.reply_run_id.is_some() || (into.reply_run_id.is_some() && from.reply_due_at.is_some()) {
        ask_again(tx, into.id)?;
    }
    viewers::delete_conversation(tx, from.id)
}
