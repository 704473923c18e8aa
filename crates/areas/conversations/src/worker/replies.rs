//! What agents are to answer: one question for all that a contact wrote before it paused.

use super::reply_state::Begun;
use super::{Worker, reply_state, together_or_each};
use crate::messages::{
    Conversation, MessageDirection, MessageRow, MessageSenderType, MessageType, readable, transcripts,
};
use crate::schema::{conversations as table, messages as rows};
use channels::{ChannelRow, NewChannelError, note_error};
use diesel::dsl::not;
use diesel::prelude::*;
use model::{Answering, ChannelId, Code, ContactId, ConversationId, Error, MessageId, Result, RunId};
use ports::{ChannelQuestion, People, StartRun, StartedBy};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use store::{Read, Tx};

/// The most answers that are being started at a time.
const MOST: i64 = 100;
/// The most messages that one answer takes in, the newest.
const MAX_MESSAGES: i64 = 50;
/// The most characters that an agent is given.
const MAX_CHARS: usize = 20_000;
/// What an agent is to answer.
pub(super) struct Question {
    pub(super) conversation: ConversationId,
    /// Who asked, at that time: a merge may give the conversation to another contact, for whom another epoch counts.
    contact: ContactId,
    input: String,
    /// What was answered before: of two questions with the same end the longer one is another.
    after: MessageId,
    first: MessageId,
    upto: MessageId,
    epoch: i64,
    /// The network's id of the last message, which is shown as read when the agent begins.
    provider_id: Option<String>,
    /// Whether an earlier answer is still being made.
    supersedes: bool,
}

impl Worker {
    /// What is to be answered now, in other conversations than those for which runs are being started.
    pub(super) async fn due_answers(&self, asking: &HashSet<ConversationId>) -> Result<Due> {
        let (channel, people) = (self.channel.clone(), self.parts.areas.people.clone());
        let asking: Vec<ConversationId> = asking.iter().copied().collect();
        self.parts.db.read(move |read| look(read, &channel, &people, &asking)).await
    }

    /// Leaves messages to people.
    pub(super) async fn leave_to_people(&self, idle: Vec<Idle>) -> Result<()> {
        let channel = self.channel.id;
        self.parts.db.write(move |tx| drop_replies(tx, channel, &idle)).await
    }

    /// Starts the run that answers, if one is to. The same question is asked once, however often this is tried.
    pub(super) async fn ask(&self, question: &Question) -> Result<Option<RunId>> {
        let Some(key) = self.channel.key_id.clone() else {
            let message = "No key was given to the channel, so no agent answers.";
            self.give_up(question, &Error::new(Code::AgentNotConfigured, message)).await?;
            return Ok(None);
        };
        let start = StartRun {
            workspace: self.channel.workspace_id,
            key,
            agent: self.channel.agent_id,
            input: question.input.clone(),
            trigger: StartedBy::Channel(self.channel.id),
            answering: Some(Answering { contact: question.contact, epoch: question.epoch }),
            question: Some(ChannelQuestion { conversation: question.conversation, first: question.first }),
            conversation: Some(format!("channel-{}-{}", self.channel.id, question.conversation)),
            supersedes: question.supersedes,
            chain: None,
            once: format!("reply:{}:{}-{}", question.conversation, question.after, question.upto),
            options: ports::StartOptions::default(),
        };
        let run = match self.parts.runs.start(start).await {
            Ok(run) => run,
            Err(error) => {
                let is_over = !is_passing(&error);
                let noted = if is_over {
                    self.give_up(question, &error).await
                } else {
                    self.put_off(question.conversation).await
                };
                return noted.map(|()| None);
            }
        };
        Ok(Some(run))
    }

    /// Notes which runs answer what was asked: in one transaction, or, where that fails, each in its own.
    pub(super) async fn note_started(&self, started: &[(Arc<Question>, RunId)]) -> Result<()> {
        together_or_each(started, |some| self.note_together(some)).await
    }

    async fn note_together(&self, started: Vec<(Arc<Question>, RunId)>) -> Result<()> {
        self.parts.db.write(move |tx| note(tx, &started)).await
    }

    /// Shows the contact that the answer is being written.
    pub(super) async fn show_as_read(&self, question: &Question) {
        if let Some(provider_id) = &question.provider_id
            && let Ok(account) = self.channel.account(&self.parts.seal)
            && let Err(error) = self.parts.network.0.mark_read(&account, provider_id, true).await
        {
            // The answer matters, not whether the contact sees that it is being written.
            tracing::debug!(channel = %self.channel.id, message = error.message, "a message was not marked as read");
        }
    }

    /// Lets a conversation be looked at again a little later.
    pub(super) async fn put_off(&self, conversation: ConversationId) -> Result<()> {
        self.parts
            .db
            .write(move |tx| {
                let later = tx.now().plus_seconds(2);
                diesel::update(table::table.find(conversation))
                    .set(table::reply_due_at.eq(later))
                    .execute(tx.connection())?;
                Ok(())
            })
            .await
    }

    /// Notes why no agent answers, and leaves the messages to people.
    async fn give_up(&self, question: &Question, error: &Error) -> Result<()> {
        let (conversation, upto) = (question.conversation, question.upto);
        let (channel, code, message) = (self.channel.id, error.code().as_str(), error.to_string());
        self.parts
            .db
            .write(move |tx| {
                note_error(
                    tx,
                    channel,
                    NewChannelError { code, message: &message, ..NewChannelError::default() },
                )?;
                reply_state::answered(tx, &[(conversation, upto)])
            })
            .await
    }
}

/// Whether another attempt may succeed.
pub(super) fn is_passing(error: &Error) -> bool {
    error.code().status() >= 500 || matches!(error.code(), Code::IdempotencyInProgress | Code::RateLimited)
}

/// A conversation in which there is nothing to answer up to a message.
pub(super) type Idle = (ConversationId, MessageId);

/// What is to be answered.
pub(super) struct Due {
    /// The runs that answer already.
    pub(super) runs: Vec<RunId>,
    pub(super) questions: Vec<Question>,
    pub(super) idle: Vec<Idle>,
}

fn look(read: &mut Read, channel: &ChannelRow, people: &People, asking: &[ConversationId]) -> Result<Due> {
    let now = read.now();
    let going_on: Vec<Option<RunId>> = table::table
        .filter(table::channel_id.eq(channel.id))
        .filter(table::reply_run_id.is_not_null())
        .select(table::reply_run_id)
        .load(read.connection())?;
    let due: Vec<Conversation> = table::table
        .filter(table::channel_id.eq(channel.id))
        .filter(table::reply_due_at.le(now))
        .filter(table::id.ne_all(asking))
        .order(table::reply_due_at)
        .limit(MOST.saturating_sub(i64::try_from(asking.len()).unwrap_or(MOST)))
        .select(Conversation::as_select())
        .load(read.connection())?;
    let ids: Vec<_> = due.iter().map(|one| one.contact_id).collect();
    let contacts: HashMap<_, _> =
        people.cards(read, channel.workspace_id, &ids)?.into_iter().map(|card| (card.id, card)).collect();
    let (mut questions, mut idle) = (Vec::new(), Vec::new());
    for conversation in due {
        let contact = contacts.get(&conversation.contact_id);
        let open = contact.filter(|contact| contact.autopilot && !contact.is_blocked);
        let unanswered = unanswered(read, &conversation)?;
        match (open, unanswered.last()) {
            (Some(contact), Some(last)) => questions.push(Question {
                conversation: conversation.id,
                contact: contact.id,
                input: input(read, &unanswered)?,
                after: conversation.reply_upto,
                first: unanswered.first().map_or(last.id, |first| first.id),
                upto: last.id,
                epoch: contact.epoch,
                provider_id: last.provider_message_id.clone(),
                supersedes: conversation.reply_run_id.is_some(),
            }),
            (_, last) => {
                // Also behind what is not answered, such as a reaction or a message that was taken back.
                let upto = last.map_or(conversation.reply_upto, |last| last.id);
                idle.push((conversation.id, upto.max(conversation.last_message_id)));
            }
        }
    }
    Ok(Due { runs: going_on.into_iter().flatten().collect(), questions, idle })
}

/// What the contact wrote since the last answer, in its order. What came before the message of a person was answered by it.
pub(super) fn unanswered(read: &mut Read, conversation: &Conversation) -> Result<Vec<MessageRow>> {
    let is_answerable = rows::message_type
        .ne_all([MessageType::Reaction, MessageType::System, MessageType::Unsupported])
        .and(rows::deleted_at.is_null());
    let is_from_contact = rows::direction.eq(MessageDirection::Inbound);
    let is_from_person = not(is_from_contact)
        .and(rows::sender_type.eq_any([MessageSenderType::User, MessageSenderType::Device]));
    let newest: Vec<MessageRow> = rows::table
        .filter(rows::conversation_id.eq(conversation.id))
        .filter(rows::id.gt(conversation.reply_upto))
        .filter(is_from_contact.and(is_answerable).or(is_from_person))
        .order(rows::id.desc())
        .limit(MAX_MESSAGES)
        .select(MessageRow::as_select())
        .load(read.connection())?;
    let from_contact = newest.into_iter().take_while(|row| row.direction == MessageDirection::Inbound);
    let mut found: Vec<MessageRow> = from_contact.collect();
    found.reverse();
    Ok(found)
}

/// What the agent is given: what was written and said, a line each.
fn input(read: &mut Read, messages: &[MessageRow]) -> Result<String> {
    let transcripts = transcripts(read, messages)?;
    let line = |row: &MessageRow| readable(row, transcripts.get(&row.id).map(String::as_str));
    let text = messages.iter().map(line).collect::<Result<Vec<_>>>()?.join("\n");
    let excess = text.chars().count().saturating_sub(MAX_CHARS);
    Ok(text.chars().skip(excess).collect())
}

/// Notes which runs answer, in those conversations that still are those of who asked.
fn note(tx: &mut Tx, started: &[(Arc<Question>, RunId)]) -> Result<()> {
    let ids: Vec<ConversationId> = started.iter().map(|(question, _)| question.conversation).collect();
    reply_state::lock(tx, &ids)?;
    let contacts: Vec<(ConversationId, ContactId)> = table::table
        .filter(table::id.eq_any(&ids))
        .select((table::id, table::contact_id))
        .load(tx.connection())?;
    let contacts: HashMap<ConversationId, ContactId> = contacts.into_iter().collect();
    // What was written after a question was read is due by itself.
    let last = reply_state::last_inbound(tx, &ids)?;
    let asked = started.iter().filter(|(question, _)| {
        contacts.get(&question.conversation).is_some_and(|contact| *contact == question.contact)
    });
    let begun = asked.map(|(question, run)| Begun {
        conversation: question.conversation,
        run: run.clone(),
        upto: question.upto,
        epoch: question.epoch,
        is_last: last.get(&question.conversation) == Some(&question.upto),
    });
    reply_state::begin(tx, &begun.collect::<Vec<_>>())
}

/// Leaves messages to people.
fn drop_replies(tx: &mut Tx, channel: ChannelId, conversations: &[Idle]) -> Result<()> {
    channels::share(tx, channel)?;
    reply_state::answered(tx, conversations)
}
