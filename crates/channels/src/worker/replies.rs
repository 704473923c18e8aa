//! Answers of agents: one for all that a contact wrote before it paused. Whether an answer may still be sent is decided in
//! the transaction that sends it, so that none follows the message of a person who took over.

use super::{Worker, lease};
use crate::channels::{self, ChannelRow, NewChannelError, note_error};
use crate::messages::{
    self, Conversation, LONGEST_TEXT, MessageDirection, MessageRow, MessageSenderType, MessageType, Outgoing,
    Priority, Sender,
};
use crate::schema::{conversations as table, message_attachments, messages as rows};
use crate::wakes::Work;
use diesel::dsl::not;
use diesel::prelude::*;
use model::{
    Answering, ChannelId, Code, ContactId, ConversationId, Error, MessageId, Result, RunId, Timestamp,
};
use operation::ports::{People, RunEnd, StartRun, StartedBy};
use std::collections::HashMap;
use std::sync::Arc;
use store::{Read, Tx, lock_row};

/// The most answers that are started in one round.
const MOST: i64 = 100;
/// The most messages that one answer takes in, the newest.
const MOST_MESSAGES: i64 = 50;
/// The most characters that an agent is given.
const MOST_CHARS: usize = 20_000;
/// The most messages that one answer becomes.
const MOST_PARTS: usize = 5;

/// In a conversation with these values no answer is due.
#[derive(Default, AsChangeset)]
#[diesel(table_name = crate::schema::conversations, treat_none_as_null = true)]
struct NotDue {
    reply_due_at: Option<Timestamp>,
    reply_since: Option<Timestamp>,
}

/// What an agent is to answer.
pub(super) struct Question {
    pub(super) conversation: ConversationId,
    /// Who asked, at that time: a merge may give the conversation to another contact, for whom another epoch counts.
    contact: ContactId,
    input: String,
    /// What was answered before: of two questions with the same end the longer one is another.
    after: MessageId,
    upto: MessageId,
    epoch: i64,
    /// The network's id of the last message, which is shown as read when the agent begins.
    provider_id: Option<String>,
    /// Whether an earlier answer is still being made.
    supersedes: bool,
}

impl Worker {
    /// What is to be answered now.
    pub(super) async fn due_answers(&self) -> Result<Due> {
        let (channel, people) = (self.channel.clone(), self.parts.people.clone());
        self.parts.db.read(move |read| look(read, &channel, &people)).await
    }

    /// Leaves messages to people.
    pub(super) async fn leave_to_people(&self, mut idle: Vec<Idle>) -> Result<()> {
        // In the order in which all lock several conversations.
        idle.sort_unstable();
        let channel = self.channel.id;
        self.parts.db.write(move |tx| drop_replies(tx, channel, &idle)).await
    }

    /// Starts the run that answers, if one is to. The same question is asked once, however often this is tried.
    pub(super) async fn ask(&self, question: Arc<Question>) -> Result<Option<RunId>> {
        let Some(key) = self.channel.key_id.clone() else {
            let message = "No key was given to the channel, so no agent answers.";
            self.give_up(&question, &Error::new(Code::AgentNotConfigured, message)).await?;
            return Ok(None);
        };
        let start = StartRun {
            workspace: self.channel.workspace_id,
            key,
            agent: self.channel.agent_id,
            input: question.input.clone(),
            trigger: StartedBy::Channel(self.channel.id),
            answering: Some(Answering { contact: question.contact, epoch: question.epoch }),
            conversation: Some(format!("channel-{}-{}", self.channel.id, question.conversation)),
            supersedes: question.supersedes,
            once: format!("reply:{}:{}-{}", question.conversation, question.after, question.upto),
        };
        let run = match self.parts.runs.start(start).await {
            Ok(run) => run,
            Err(error) => {
                let is_over = !is_passing(&error);
                let noted = if is_over {
                    self.give_up(&question, &error).await
                } else {
                    self.put_off(&question).await
                };
                return noted.map(|()| None);
            }
        };
        let (asked, started) = (question.clone(), run.clone());
        self.parts
            .db
            .write(move |tx| {
                // What was written after the question was read is due by itself.
                let is_last = last_inbound(tx, asked.conversation)? == Some(asked.upto);
                let row = table::table.find(asked.conversation).filter(table::contact_id.eq(asked.contact));
                diesel::update(row)
                    .set((
                        table::reply_run_id.eq(&started),
                        table::reply_run_upto.eq(asked.upto),
                        table::reply_epoch.eq(asked.epoch),
                        is_last.then(NotDue::default),
                    ))
                    .execute(tx.connection())?;
                Ok(())
            })
            .await?;
        Ok(Some(run))
    }

    /// Shows the contact that the answer is being written.
    pub(super) async fn show_as_read(&self, question: Option<&Question>) {
        if let Some(provider_id) = question.and_then(|question| question.provider_id.as_ref())
            && let Ok(account) = self.channel.account(&self.parts.seal)
            && let Err(error) = self.parts.network.0.mark_read(&account, provider_id, true).await
        {
            // The answer matters, not whether the contact sees that it is being written.
            tracing::debug!(channel = %self.channel.id, message = error.message, "a message was not marked as read");
        }
    }

    async fn put_off(&self, question: &Question) -> Result<()> {
        let conversation = question.conversation;
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
                answered(tx, conversation, upto)
            })
            .await
    }

    /// Sends the answer of a run, unless it came too late.
    pub(super) async fn deliver(&self, run: &RunId, end: Result<RunEnd>) -> Result<()> {
        let end = match end {
            Ok(end) => Arc::new(end),
            Err(error) if is_passing(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(channel = %self.channel.id, %run, %error, "the run of an answer is gone");
                Arc::new(RunEnd { status: "failed", agent: model::AgentId(0), output: None })
            }
        };
        let (channel, epoch, run) = (self.channel.id, self.lease.epoch, run.clone());
        let people = self.parts.people.clone();
        self.parts
            .db
            .write(move |tx| {
                let Some(channel) = lease::held_by(tx, channel, epoch)? else { return Ok(()) };
                finish(tx, &channel, &people, &run, &end)
            })
            .await?;
        self.bells.ring(Work::Outbox);
        Ok(())
    }
}

/// Whether another attempt may succeed.
fn is_passing(error: &Error) -> bool {
    error.code().status() >= 500 || matches!(error.code(), Code::IdempotencyInProgress | Code::RateLimited)
}

/// A conversation in which there is nothing to answer up to a message.
pub(super) type Idle = (ContactId, ConversationId, MessageId);

/// What is to be answered.
pub(super) struct Due {
    /// The runs that answer already.
    pub(super) runs: Vec<RunId>,
    pub(super) questions: Vec<Question>,
    pub(super) idle: Vec<Idle>,
}

fn look(read: &mut Read, channel: &ChannelRow, people: &People) -> Result<Due> {
    let now = read.now();
    let going_on: Vec<Option<RunId>> = table::table
        .filter(table::channel_id.eq(channel.id))
        .filter(table::reply_run_id.is_not_null())
        .select(table::reply_run_id)
        .load(read.connection())?;
    let due: Vec<Conversation> = table::table
        .filter(table::channel_id.eq(channel.id))
        .filter(table::reply_due_at.le(now))
        .order(table::reply_due_at)
        .limit(MOST)
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
                upto: last.id,
                epoch: contact.epoch,
                provider_id: last.provider_message_id.clone(),
                supersedes: conversation.reply_run_id.is_some(),
            }),
            (_, last) => {
                let upto = last.map_or(conversation.reply_upto, |last| last.id);
                idle.push((conversation.contact_id, conversation.id, upto));
            }
        }
    }
    Ok(Due { runs: going_on.into_iter().flatten().collect(), questions, idle })
}

/// What the contact wrote since the last answer, in its order. What came before the message of a person was answered by it.
fn unanswered(read: &mut Read, conversation: &Conversation) -> Result<Vec<MessageRow>> {
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
        .limit(MOST_MESSAGES)
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
    let line = |row: &MessageRow| match transcripts.get(&row.id) {
        Some(words) => words.clone(),
        None if row.content.trim().is_empty() => format!("[{}]", row.message_type.as_str()),
        None => row.content.clone(),
    };
    let text = messages.iter().map(line).collect::<Vec<_>>().join("\n");
    let excess = text.chars().count().saturating_sub(MOST_CHARS);
    Ok(text.chars().skip(excess).collect())
}

/// The words of voice notes.
fn transcripts(read: &mut Read, messages: &[MessageRow]) -> Result<HashMap<MessageId, String>> {
    let is_heard = |row: &&MessageRow| row.message_type == MessageType::Audio;
    let ids: Vec<MessageId> = messages.iter().filter(is_heard).map(|row| row.id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found: Vec<(MessageId, Option<String>)> = message_attachments::table
        .filter(message_attachments::message_id.eq_any(ids))
        .select((message_attachments::message_id, message_attachments::transcript))
        .load(read.connection())?;
    Ok(found.into_iter().filter_map(|(id, words)| Some((id, words?))).collect())
}

fn last_inbound(read: &mut Read, conversation: ConversationId) -> Result<Option<MessageId>> {
    Ok(rows::table
        .filter(rows::conversation_id.eq(conversation))
        .filter(rows::direction.eq(MessageDirection::Inbound))
        .order(rows::id.desc())
        .select(rows::id)
        .first(read.connection())
        .optional()?)
}

/// Leaves messages to people, in conversations that are in the order of their contacts.
fn drop_replies(tx: &mut Tx, channel: ChannelId, conversations: &[Idle]) -> Result<()> {
    channels::share(tx, channel)?;
    for (_, id, upto) in conversations {
        answered(tx, *id, *upto)?;
    }
    Ok(())
}

/// Notes that messages were answered, or are not to be. What came after them is due by itself.
fn answered(tx: &mut Tx, id: ConversationId, upto: MessageId) -> Result<()> {
    let is_last = last_inbound(tx, id)?.is_none_or(|last| last <= upto);
    end_answer(tx, id, upto, is_last)
}

/// Notes that no answer is being made any more, and, if `is_last`, that none is due.
fn end_answer(tx: &mut Tx, id: ConversationId, upto: MessageId, is_last: bool) -> Result<()> {
    diesel::update(table::table.find(id))
        .set((
            table::reply_upto.eq(upto),
            table::reply_run_id.eq(None::<RunId>),
            table::reply_run_upto.eq(None::<MessageId>),
            table::reply_epoch.eq(None::<i64>),
            is_last.then(NotDue::default),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Sends an answer if nothing has changed since it was begun: no person took over, and the contact wrote nothing more.
fn finish(tx: &mut Tx, channel: &ChannelRow, people: &People, run: &RunId, end: &RunEnd) -> Result<()> {
    let of_run = table::table.filter(table::channel_id.eq(channel.id)).filter(table::reply_run_id.eq(run));
    let found: Option<Conversation> =
        of_run.select(Conversation::as_select()).first(tx.connection()).optional()?;
    let Some(found) = found else { return Ok(()) };
    let contact = people.lock(tx, channel.workspace_id, found.contact_id)?;
    lock_row!(tx, table::table.find(found.id).select(table::id), for_no_key_update);
    let conversation: Option<Conversation> =
        of_run.select(Conversation::as_select()).first(tx.connection()).optional()?;
    let Some(conversation) = conversation else { return Ok(()) };
    let upto = conversation.reply_run_upto.unwrap_or(conversation.reply_upto);
    let wrote_more = last_inbound(tx, conversation.id)?.is_some_and(|last| last > upto);
    if wrote_more && conversation.reply_due_at.is_some() {
        // The next run takes in what this one did not know of, and this one's messages with it.
        return end_answer(tx, conversation.id, conversation.reply_upto, false);
    }
    let now = tx.now();
    let may_send = contact.as_ref().is_some_and(|contact| {
        contact.autopilot && !contact.is_blocked && Some(contact.epoch) == conversation.reply_epoch
    });
    let handed_over_itself = contact.is_some_and(|contact| contact.switched_by.as_ref() == Some(run));
    match end.output.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) if may_send && conversation.is_open_at(now) => {
            let expires_at = conversation.window_expires_at().unwrap_or(now);
            let sender = Sender { kind: MessageSenderType::Agent, id: Some(end.agent.to_string()) };
            for (number, part) in parts(text).into_iter().enumerate() {
                let out = Outgoing {
                    message_type: MessageType::Text,
                    content: part,
                    detail: None,
                    sender: sender.clone(),
                    reply_to: None,
                    client_key: Some(format!("run:{run}:{number}")),
                    run_id: Some(run.clone()),
                    broadcast_id: None,
                    attachment: None,
                    priority: Priority::Live,
                    expires_at,
                };
                messages::enqueue(tx, &conversation, out)?;
            }
        }
        _ if handed_over_itself => {}
        Some(_) => {
            let message =
                format!("The answer of {run} came after a person had taken over, and was not sent.");
            let (code, message) = ("answer_superseded", message.as_str());
            note_error(tx, channel.id, NewChannelError { code, message, ..NewChannelError::default() })?;
        }
        None => {
            let message = format!("{run} ended as {} without an answer.", end.status);
            let (code, message) = ("agent_failed", message.as_str());
            note_error(tx, channel.id, NewChannelError { code, message, ..NewChannelError::default() })?;
        }
    }
    end_answer(tx, conversation.id, upto, !wrote_more)
}

/// A text in as many pieces as the network needs, parted between paragraphs or words where that is possible.
fn parts(text: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), text);
    while !rest.is_empty() && all.len() < MOST_PARTS {
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
    use super::{MOST_PARTS, parts};
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
        assert_eq!(parts(&"ä".repeat(50_000)).len(), MOST_PARTS);
    }
}
