//! Sending what runs answered. Whether an answer may still be sent is decided in the transaction that sends it, so that none
//! follows the message of a person who took over.

use super::replies::is_passing;
use super::{Worker, reply_state, together_or_each};
use crate::messages::{
    self, Conversation, LONGEST_TEXT, MessageSenderType, MessageType, Outgoing, Priority, Sender,
};
use crate::schema::conversations as table;
use channels::work::{Work, leased};
use channels::{ChannelRow, NewChannelError, note_error};
use diesel::prelude::*;
use model::{AgentId, ContactId, ConversationId, MessageId, Result, RunId, Timestamp};
use ports::{ContactCard, People, RunEnd};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use store::Tx;

/// The most messages that one answer becomes.
const MAX_PARTS: usize = 5;

/// A run that has ended.
pub(super) struct EndedRun {
    pub(super) run: RunId,
    pub(super) end: RunEnd,
}

impl Worker {
    /// How a run has ended, also where that cannot be read any more.
    ///
    /// # Errors
    /// What another attempt may succeed with.
    pub(super) fn end_of(&self, run: &RunId, end: Result<RunEnd>) -> Result<RunEnd> {
        match end {
            Err(error) if !is_passing(&error) => {
                tracing::warn!(channel = %self.channel.id, %run, %error, "the run of an answer is gone");
                Ok(RunEnd { status: "failed", agent: AgentId(0), output: None, leads_to: None })
            }
            end => end,
        }
    }

    /// Sends the answers of runs, unless they came too late: in one transaction, or, where that fails, each in its own.
    pub(super) async fn deliver(&self, ended: &[Arc<EndedRun>]) -> Result<()> {
        let result = together_or_each(ended, |some| self.deliver_together(some)).await;
        self.signals.notify(Work::Outbox);
        result
    }

    async fn deliver_together(&self, ended: Vec<Arc<EndedRun>>) -> Result<()> {
        let (channel, epoch, people) = (self.channel.id, self.lease.epoch, self.parts.areas.people.clone());
        self.parts
            .db
            .write(move |tx| {
                let Some(channel) = leased(tx, channel, epoch)? else { return Ok(()) };
                finish(tx, &channel, &people, &ended)
            })
            .await
    }
}

/// A conversation whose run has ended.
struct Answered<'a> {
    ended: &'a EndedRun,
    conversation: Conversation,
    /// Who is locked. `None` for a contact that is no longer there.
    contact: Option<ContactCard>,
    last_inbound: Option<MessageId>,
}

/// Sends answers if nothing has changed since they were begun: no person took over, and the contacts wrote nothing more.
fn finish(tx: &mut Tx, channel: &ChannelRow, people: &People, ended: &[Arc<EndedRun>]) -> Result<()> {
    let all = answered_by(tx, channel, people, ended)?;
    let (mut texts, mut ends) = (Vec::new(), Vec::with_capacity(all.len()));
    for answered in &all {
        let conversation = &answered.conversation;
        let upto = conversation.reply_run_upto.unwrap_or(conversation.reply_upto);
        let wrote_more = answered.last_inbound.is_some_and(|last| last > upto);
        let mut end = reply_state::Ended { conversation: conversation.id, upto, is_last: !wrote_more };
        if wrote_more && conversation.reply_due_at.is_some() {
            // The next run takes in what this one did not know of, and this one's messages with it.
            end = reply_state::Ended { upto: conversation.reply_upto, is_last: false, ..end };
        } else if let Some((text, expires_at)) = to_send(tx, channel, answered)? {
            texts.push(Answer { answered, parts: parts(text), expires_at });
        }
        ends.push(end);
    }
    // The first messages of all answers, then the second ones of those that are longer, and so on.
    for number in 0..MAX_PARTS {
        let out = texts.iter().filter_map(|text| Some((&text.answered.conversation, text.part(number)?)));
        messages::enqueue_all(tx, out.collect())?;
    }
    reply_state::end(tx, &ends)
}

/// The conversations that wait for runs, locked with their contacts.
fn answered_by<'a>(
    tx: &mut Tx,
    channel: &ChannelRow,
    people: &People,
    ended: &'a [Arc<EndedRun>],
) -> Result<Vec<Answered<'a>>> {
    let runs: Vec<&RunId> = ended.iter().map(|ended| &ended.run).collect();
    let waiting = table::table
        .filter(table::channel_id.eq(channel.id))
        .filter(table::reply_run_id.eq_any(runs))
        .order(table::contact_id);
    let found: Vec<(ConversationId, ContactId)> =
        waiting.clone().select((table::id, table::contact_id)).load(tx.connection())?;
    let contacts: BTreeSet<ContactId> = found.iter().map(|(_, contact)| *contact).collect();
    let cards = people.lock(tx, channel.workspace_id, &contacts)?;
    let cards: HashMap<ContactId, ContactCard> = cards.into_iter().map(|card| (card.id, card)).collect();
    let ids: Vec<ConversationId> = found.iter().map(|(id, _)| *id).collect();
    reply_state::lock(tx, &ids)?;
    let last_inbound = reply_state::last_inbound(tx, &ids)?;
    let asked: HashMap<ConversationId, ContactId> = found.into_iter().collect();
    let rows: Vec<Conversation> =
        waiting.filter(table::id.eq_any(&ids)).select(Conversation::as_select()).load(tx.connection())?;
    let of_run: HashMap<&RunId, &EndedRun> = ended.iter().map(|ended| (&ended.run, &**ended)).collect();
    let answered = rows.into_iter().filter_map(|conversation| {
        Some(Answered {
            ended: of_run.get(conversation.reply_run_id.as_ref()?)?,
            contact: asked.get(&conversation.id).and_then(|contact| cards.get(contact)).cloned(),
            last_inbound: last_inbound.get(&conversation.id).copied(),
            conversation,
        })
    });
    Ok(answered.collect())
}

/// What is to be sent, and until when it can be. Where nothing is, it is noted why, unless the agent itself handed the
/// conversation over.
fn to_send<'a>(
    tx: &mut Tx,
    channel: &ChannelRow,
    answered: &'a Answered<'_>,
) -> Result<Option<(&'a str, Timestamp)>> {
    let Answered { ended: EndedRun { run, end }, conversation, contact, .. } = answered;
    let may_send = contact.as_ref().is_some_and(|contact| {
        contact.autopilot && !contact.is_blocked && Some(contact.epoch) == conversation.reply_epoch
    });
    let handed_over_itself =
        contact.as_ref().is_some_and(|contact| contact.switched_by.as_ref() == Some(run));
    let now = tx.now();
    let open_until = conversation.window_expires_at().filter(|end| may_send && now < *end);
    let (code, message) = match end.output.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) if let Some(end) = open_until => return Ok(Some((text, end))),
        _ if handed_over_itself => return Ok(None),
        Some(_) => (
            "answer_superseded",
            format!("The answer of {run} came after a person had taken over, and was not sent."),
        ),
        None => ("agent_failed", format!("{run} ended as {} without an answer.", end.status)),
    };
    note_error(tx, channel.id, NewChannelError { code, message: &message, ..NewChannelError::default() })?;
    Ok(None)
}

/// What is to be sent.
struct Answer<'a> {
    answered: &'a Answered<'a>,
    parts: Vec<String>,
    expires_at: Timestamp,
}

impl Answer<'_> {
    /// One of its messages.
    fn part(&self, number: usize) -> Option<Outgoing> {
        let EndedRun { run, end } = self.answered.ended;
        Some(Outgoing {
            message_type: MessageType::Text,
            content: self.parts.get(number)?.clone(),
            detail: None,
            sender: Sender { kind: MessageSenderType::Agent, id: Some(end.agent.to_string()) },
            reply_to: None,
            client_key: Some(format!("run:{run}:{number}")),
            run_id: Some(run.clone()),
            broadcast_id: None,
            attachment: None,
            chain: end.leads_to.clone(),
            priority: Priority::Live,
            expires_at: self.expires_at,
        })
    }
}

/// A text in as many pieces as the network needs, parted between paragraphs or words where that is possible.
fn parts(text: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), text);
    while !rest.is_empty() && all.len() < MAX_PARTS {
        let end = rest.char_indices().nth(LONGEST_TEXT).map_or(rest.len(), |(place, _)| place);
        let (head, _) = rest.split_at(end);
        let cut = if end == rest.len() {
            end
        } else {
            let at = |pattern: &str| head.rfind(pattern).filter(|place| *place > 0);
            at("\n\n").or_else(|| at("\n")).or_else(|| at(" ")).unwrap_or(end)
        };
        let (part, after) = rest.split_at(cut);
        all.push(part.trim().to_owned());
        rest = after.trim_start();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{MAX_PARTS, parts};
    use crate::messages::LONGEST_TEXT;

    #[test]
    fn long_answers_are_parted_between_words() {
        assert_eq!(parts("Hello."), ["Hello."]);
        let words = "word ".repeat(2_000);
        let all = parts(words.trim());
        assert!(all.len() == 3 && all.iter().all(|part| part.chars().count() <= LONGEST_TEXT));
        assert_eq!(all.join(" "), words.trim());
        let paragraphs = format!("{}\n\n{}", "a".repeat(4_000), "b".repeat(200));
        assert_eq!(parts(&paragraphs), ["a".repeat(4_000), "b".repeat(200)]);
        assert_eq!(parts(&"ä".repeat(50_000)).len(), MAX_PARTS);
    }
}
