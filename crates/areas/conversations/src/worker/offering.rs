//! Offering what contacts wrote, when they pause, to those who take messages: before an agent answers, and before what no agent
//! answers is left to people. What a taker writes, and the note that the messages were offered, are one transaction.

use super::replies::unanswered;
use super::{Worker, reply_state};
use crate::messages::{Conversation, Detail, MessageRow, files_of_all, readable, transcripts};
use crate::schema::conversations as table;
use channels::work::leased;
use diesel::prelude::*;
use model::{ChannelId, ContactId, ConversationId, JsonText, MessageId, Result};
use ports::{ContactCard, IncomingMessage, IncomingMessages};
use std::collections::{BTreeSet, HashSet};
use store::{Read, Tx};

/// The most conversations of one round.
const MOST: i64 = 100;

impl Worker {
    /// Offers what is due, but for conversations for which runs are being started.
    pub(super) async fn offer_due(&self, asking: &HashSet<ConversationId>) -> Result<()> {
        if self.parts.areas.takers.is_empty() {
            return Ok(());
        }
        let channel = self.channel.id;
        let asking: Vec<ConversationId> = asking.iter().copied().collect();
        let due = self.parts.db.read(move |read| not_offered(read, channel, &asking)).await?;
        for (conversation, contact) in due {
            if let Err(error) = self.offer(conversation, contact).await {
                tracing::error!(channel = %channel, %conversation, ?error, "messages could not be offered");
                // Neither an agent nor a person is asked before those who could not decide.
                self.put_off(conversation).await?;
            }
        }
        Ok(())
    }

    async fn offer(&self, conversation: ConversationId, contact: ContactId) -> Result<()> {
        let (channel, epoch, areas) = (self.channel.id, self.lease.epoch, self.parts.areas.clone());
        let offer = move |tx: &mut Tx| {
            let Some(channel) = leased(tx, channel, epoch)? else { return Ok(()) };
            let workspace = channel.workspace_id;
            let cards = areas.people.lock(tx, workspace, &BTreeSet::from([contact]))?;
            reply_state::lock(tx, &[conversation])?;
            let Some(due) = Due::of(tx, conversation, contact)? else { return Ok(()) };
            due.note(tx)?;
            let messages = due.messages(tx)?;
            let card = cards.into_iter().next().filter(|card| !card.is_blocked);
            let (Some(card), Some(last)) = (card, messages.last()) else { return Ok(()) };
            let upto = last.id;
            let incoming = due.incoming(tx, card, &messages)?;
            if areas.takers.offer(tx, workspace, &incoming)? {
                reply_state::end(tx, &[reply_state::Ended { conversation, upto, is_last: true }])?;
            }
            Ok(())
        };
        self.parts.db.write(offer).await
    }
}

/// Conversations that are due with messages that were not offered, and their contacts.
fn not_offered(
    read: &mut Read,
    channel: ChannelId,
    asking: &[ConversationId],
) -> Result<Vec<(ConversationId, ContactId)>> {
    let now = read.now();
    Ok(table::table
        .filter(table::channel_id.eq(channel))
        .filter(table::reply_due_at.le(now))
        .filter(table::id.ne_all(asking))
        .filter(table::offered_upto.lt(table::last_message_id))
        .order(table::reply_due_at)
        .limit(MOST)
        .select((table::id, table::contact_id))
        .load(read.connection())?)
}

/// A conversation that is due, and locked.
struct Due {
    conversation: Conversation,
    offered: MessageId,
}

impl Due {
    /// `None` if it is no longer due, or that of another contact by now.
    fn of(tx: &mut Tx, id: ConversationId, contact: ContactId) -> Result<Option<Self>> {
        let now = tx.now();
        let found: Option<(Conversation, MessageId)> = table::table
            .find(id)
            .filter(table::contact_id.eq(contact))
            .filter(table::reply_due_at.le(now))
            .select((Conversation::as_select(), table::offered_upto))
            .get_result(tx.connection())
            .optional()?;
        Ok(found.map(|(conversation, offered)| Self { conversation, offered }))
    }

    /// Notes that all of its messages were offered.
    fn note(&self, tx: &mut Tx) -> Result<()> {
        diesel::update(table::table.find(self.conversation.id))
            .set(table::offered_upto.eq(self.conversation.last_message_id))
            .execute(tx.connection())?;
        Ok(())
    }

    /// What the contact wrote since the last answer and since the last offer.
    fn messages(&self, read: &mut Read) -> Result<Vec<MessageRow>> {
        let mut messages = unanswered(read, &self.conversation)?;
        messages.retain(|row| row.id > self.offered);
        Ok(messages)
    }

    fn incoming(
        &self,
        read: &mut Read,
        contact: ContactCard,
        messages: &[MessageRow],
    ) -> Result<IncomingMessages> {
        let transcripts = transcripts(read, messages)?;
        let files = files_of_all(read, messages)?;
        let message = |row: &MessageRow| {
            let detail: Option<Detail> = row.detail.as_ref().map(JsonText::parse).transpose()?;
            let text = readable(row, transcripts.get(&row.id).map(String::as_str))?;
            Ok(IncomingMessage {
                id: row.id,
                text,
                reply_id: detail.and_then(|detail| detail.reply_id),
                files: files.get(&row.id).cloned().unwrap_or_default(),
                at: row.created_at,
            })
        };
        Ok(IncomingMessages {
            channel: self.conversation.channel_id,
            conversation: self.conversation.id,
            contact,
            messages: messages.iter().map(message).collect::<Result<_>>()?,
        })
    }
}
