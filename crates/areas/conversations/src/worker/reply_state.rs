//! What conversations know of their answers: which run makes one, and up to which message all was answered.

use crate::messages::{MessageDirection, MessageType};
use crate::schema::{conversations as table, messages as rows};
use diesel::dsl::max;
use diesel::prelude::*;
use model::{ConversationId, MessageId, Result, RunId};
use std::collections::HashMap;
use store::{Read, Rows, Tx, lock_row};

/// A run that answers a conversation from now on.
pub(super) struct Begun {
    pub(super) conversation: ConversationId,
    pub(super) run: RunId,
    /// The last message that it answers.
    pub(super) upto: MessageId,
    /// The contact's epoch.
    pub(super) epoch: i64,
    /// Whether the contact wrote nothing more, so that no other answer is due.
    pub(super) is_last: bool,
}

/// An answer that is not being made any more.
pub(super) struct Ended {
    pub(super) conversation: ConversationId,
    /// The last message that was answered, or is not to be.
    pub(super) upto: MessageId,
    /// Whether no other answer is due.
    pub(super) is_last: bool,
}

/// Locks conversations in the order of their contacts, so that no message comes in until the transaction ends.
pub(super) fn lock(tx: &mut Tx, ids: &[ConversationId]) -> Result<()> {
    let ids = table::table.filter(table::id.eq_any(ids)).order(table::contact_id).select(table::id);
    lock_row!(tx, ids, for_no_key_update);
    Ok(())
}

/// The last messages that the contacts of conversations wrote, of those that are answered.
pub(super) fn last_inbound(
    read: &mut Read,
    ids: &[ConversationId],
) -> Result<HashMap<ConversationId, MessageId>> {
    let last = rows::table
        .filter(rows::conversation_id.eq(table::id))
        .filter(rows::direction.eq(MessageDirection::Inbound))
        .filter(rows::message_type.ne_all([
            MessageType::Reaction,
            MessageType::System,
            MessageType::Unsupported,
        ]))
        .filter(rows::deleted_at.is_null())
        .select(max(rows::id))
        .single_value();
    let found: Vec<(ConversationId, Option<MessageId>)> =
        table::table.filter(table::id.eq_any(ids)).select((table::id, last)).load(read.connection())?;
    Ok(found.into_iter().filter_map(|(id, last)| Some((id, last?))).collect())
}

/// Notes which runs answer conversations, which are locked.
pub(super) fn begin(tx: &mut Tx, all: &[Begun]) -> Result<()> {
    Rows::of(all)
        .big_int("id", |begun| begun.conversation)
        .text("run_id", |begun| &begun.run)
        .big_int("upto", |begun| begun.upto)
        .big_int("epoch", |begun| begun.epoch)
        .bool("is_last", |begun| begun.is_last)
        .execute(
            tx,
            "UPDATE conversations SET reply_run_id = begun.run_id, reply_run_upto = begun.upto, reply_epoch = begun.epoch,
                reply_due_at = CASE WHEN begun.is_last THEN NULL ELSE reply_due_at END,
                reply_since = CASE WHEN begun.is_last THEN NULL ELSE reply_since END
            FROM {begun} WHERE conversations.id = begun.id",
        )?;
    Ok(())
}

/// Notes that no answers are being made any more in conversations, which are locked.
pub(super) fn end(tx: &mut Tx, all: &[Ended]) -> Result<()> {
    Rows::of(all)
        .big_int("id", |ended| ended.conversation)
        .big_int("upto", |ended| ended.upto)
        .bool("is_last", |ended| ended.is_last)
        .execute(
            tx,
            "UPDATE conversations SET reply_upto = ended.upto,
                reply_run_id = NULL, reply_run_upto = NULL, reply_epoch = NULL,
                reply_due_at = CASE WHEN ended.is_last THEN NULL ELSE reply_due_at END,
                reply_since = CASE WHEN ended.is_last THEN NULL ELSE reply_since END
            FROM {ended} WHERE conversations.id = ended.id",
        )?;
    Ok(())
}

/// Notes that messages up to one were answered, or are not to be, in conversations that are locked first. What came after
/// them is due by itself.
pub(super) fn answered(tx: &mut Tx, upto: &[(ConversationId, MessageId)]) -> Result<()> {
    let ids: Vec<ConversationId> = upto.iter().map(|(id, _)| *id).collect();
    lock(tx, &ids)?;
    let last = last_inbound(tx, &ids)?;
    let ended = |(conversation, upto): &(ConversationId, MessageId)| {
        let is_last = last.get(conversation).is_none_or(|last| last <= upto);
        Ended { conversation: *conversation, upto: *upto, is_last }
    };
    end(tx, &upto.iter().map(ended).collect::<Vec<_>>())
}
