//! Old messages. Those that are still to be sent, read, published or answered stay until that is done.

use super::{expect_time, until};
use crate::messages::{BroadcastRecipients, Conversation, MessageDirection, delete};
use crate::schema::{
    conversations, held_message_events as held, message_attachments as attachments, message_outbox as outbox,
    messages as table,
};
use diesel::dsl::max;
use diesel::prelude::*;
use jobs::{JobContext, JobError};
use model::{BroadcastId, ChannelId, ConversationId, MessageId, Result, Timestamp, WorkspaceId};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use store::{Read, Tx, for_no_key_update_skip_locked, for_update_skip_locked};

/// The most messages of one transaction.
const PIECE: i64 = 200;

/// A message that is old.
type Old = (MessageId, ConversationId, Option<BroadcastId>, Timestamp);

/// Deletes the messages of a workspace that were written before `horizon`.
///
/// # Errors
/// When the database fails. What was deleted stays so.
pub(super) async fn expire(
    job: &JobContext,
    broadcasts: &Arc<dyn BroadcastRecipients>,
    workspace: WorkspaceId,
    horizon: Timestamp,
) -> Result<(), JobError> {
    let own = job.db.read(move |read| channels::ids(read, workspace)).await?;
    for channel in own {
        let mut next = Some(MessageId(0));
        while let Some(after) = next {
            expect_time(job)?;
            let broadcasts = broadcasts.clone();
            next = job.db.write(move |tx| piece(tx, &*broadcasts, channel, horizon, after)).await?;
        }
    }
    Ok(())
}

/// A channel's next messages, oldest first.
#[diesel::dsl::auto_type(no_type_alias)]
fn oldest(channel: ChannelId, after: MessageId) -> _ {
    table::table.filter(table::channel_id.eq(channel)).filter(table::id.gt(after)).order(table::id).select((
        table::id,
        table::conversation_id,
        table::broadcast_id,
        table::created_at,
    ))
}

/// Deletes some of a channel's messages behind `after`. Gives where to continue; `None` at the end of what is old.
fn piece(
    tx: &mut Tx,
    broadcasts: &dyn BroadcastRecipients,
    channel: ChannelId,
    horizon: Timestamp,
    after: MessageId,
) -> Result<Option<MessageId>> {
    let rows: Vec<Old> = oldest(channel, after).limit(PIECE).load(tx.connection())?;
    let old = until(rows, horizon, |(.., written_at)| *written_at);
    let Some((last, ..)) = old.last().copied() else { return Ok(None) };
    let is_full = i64::try_from(old.len()).is_ok_and(|many| many == PIECE);
    let of = held_conversations(tx, &old)?;
    let ids = old.iter().filter(|(_, of_message, ..)| of.contains_key(of_message)).map(|(id, ..)| *id);
    let free = free(tx, ids.collect())?;
    let needed = needed(tx, broadcasts, &old, &of, &free)?;
    let ids: Vec<MessageId> = free.into_iter().filter(|id| !needed.contains(id)).collect();
    delete(tx, broadcasts, &ids)?;
    let gone: HashSet<MessageId> = ids.into_iter().collect();
    let touched: BTreeSet<ConversationId> =
        old.iter().filter(|(id, ..)| gone.contains(id)).map(|(_, of_message, ..)| *of_message).collect();
    for conversation in touched.iter().filter_map(|id| of.get(id)) {
        bring_up_to_date(tx, conversation, &gone)?;
    }
    Ok(is_full.then_some(last))
}

/// The conversations of messages, but for those that others are changing. Nobody changes them until the transaction ends.
fn held_conversations(tx: &mut Tx, old: &[Old]) -> Result<HashMap<ConversationId, Conversation>> {
    let ids: BTreeSet<ConversationId> = old.iter().map(|(_, conversation, ..)| *conversation).collect();
    let rows = conversations::table.filter(conversations::id.eq_any(ids)).order(conversations::id);
    let rows: Vec<Conversation> =
        for_no_key_update_skip_locked(rows.select(Conversation::as_select())).load(tx.connection())?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// Those of messages that nobody else changes, nor refers to anew, until the transaction ends.
fn free(tx: &mut Tx, ids: Vec<MessageId>) -> Result<Vec<MessageId>> {
    let rows = table::table.filter(table::id.eq_any(ids)).order(table::id).select(table::id);
    Ok(for_update_skip_locked(rows).load(tx.connection())?)
}

/// Those of messages with which something is still to be done.
fn needed(
    read: &mut Read,
    broadcasts: &dyn BroadcastRecipients,
    old: &[Old],
    of: &HashMap<ConversationId, Conversation>,
    ids: &[MessageId],
) -> Result<HashSet<MessageId>> {
    let queued = outbox::table.filter(outbox::message_id.eq_any(ids)).select(outbox::message_id);
    let unpublished = held::table.filter(held::message_id.eq_any(ids)).select(held::message_id);
    let unread = attachments::table
        .filter(attachments::message_id.eq_any(ids))
        .filter(attachments::next_attempt_at.is_not_null())
        .select(attachments::message_id);
    let mut needed: HashSet<MessageId> = HashSet::new();
    needed.extend(queued.load::<MessageId>(read.connection())?);
    needed.extend(unpublished.load::<MessageId>(read.connection())?);
    needed.extend(unread.load::<MessageId>(read.connection())?);
    let named: BTreeSet<BroadcastId> = old.iter().filter_map(|(_, _, broadcast, _)| *broadcast).collect();
    let unfinished = broadcasts.unfinished(read, named)?;
    let is_unanswered = |conversation: &Conversation, id: MessageId| {
        (conversation.reply_due_at.is_some() || conversation.reply_run_id.is_some())
            && id > conversation.reply_upto
    };
    needed.extend(old.iter().filter_map(|(id, conversation, broadcast, _)| {
        let is_of_broadcast = broadcast.is_some_and(|broadcast| unfinished.contains(&broadcast));
        let is_asked = of.get(conversation).is_some_and(|conversation| is_unanswered(conversation, *id));
        (is_of_broadcast || is_asked).then_some(*id)
    }));
    Ok(needed)
}

/// Lets a conversation say what is left of it. Without its last message it keeps its place in lists.
fn bring_up_to_date(tx: &mut Tx, conversation: &Conversation, gone: &HashSet<MessageId>) -> Result<()> {
    let of = || table::table.filter(table::conversation_id.eq(conversation.id));
    let unread: Vec<MessageId> = of()
        .filter(table::direction.eq(MessageDirection::Inbound))
        .order(table::id.desc())
        .limit(conversation.unread_count)
        .select(table::id)
        .load(tx.connection())?;
    let unread = i64::try_from(unread.len()).unwrap_or(i64::MAX);
    let is_last_gone = gone.contains(&conversation.last_message_id);
    if !is_last_gone && unread == conversation.unread_count {
        return Ok(());
    }
    let newest: Option<MessageId> = of().select(max(table::id)).get_result(tx.connection())?;
    let last = newest.filter(|_| is_last_gone).unwrap_or(conversation.last_message_id);
    let now = tx.now();
    diesel::update(conversations::table.find(conversation.id))
        .set((
            conversations::last_message_id.eq(last),
            conversations::unread_count.eq(unread),
            conversations::version.eq(conversations::version + 1),
            conversations::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diesel::debug_query;
    use diesel::sqlite::Sqlite;
    use testkit::{Kind, TestDb, expect_indexes};

    #[tokio::test]
    async fn sqlite_finds_old_messages_by_their_index() {
        let data = TestDb::new(Kind::Sqlite);
        let query = oldest(ChannelId(1), MessageId(0));
        let query = debug_query::<Sqlite, _>(&query).to_string();
        expect_indexes(&data, [(query, "messages_by_channel")]).await;
    }
}
