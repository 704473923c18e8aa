//! A message that a contact wrote, or that the business wrote from its own device.

use super::changes::{self, Change, Known};
use super::content::stored;
use super::context::{UpdateContext, identity};
use super::opt_out;
use super::status::apply_early;
use crate::events::MessageEvent;
use crate::messages::{
    self, Conversation, Detail, MessageDirection, MessageRow, MessageSenderType, MessageStatus, MessageType,
    NewMessage, Outgoing, Priority, Sender,
};
use crate::schema::held_message_events as held;
use chatnet::{Echo, InboundContent, InboundMessage};
use diesel::dsl::max;
use diesel::prelude::*;
use model::{ActorType, Cause, ContactId, ConversationId, MessageId, Result, Timestamp};
use ports::{ChatIdentity, ConsentStatement, ConsentTies, ContactCard, HandOver, HandoffReason};
use std::collections::{HashMap, HashSet};
use store::{Rows, Tx};

/// For how long the event of a message with a file waits for the file and its transcript, in seconds.
const HOLD_SECONDS: i64 = 30;
/// A message that is older than this starts no agent, in seconds.
const OLDEST_ANSWERED: i64 = 48 * 3_600;

/// A message, and the contact who wrote it, who is locked.
struct Received<'a> {
    contact: ContactCard,
    message: &'a InboundMessage,
}

/// Stores a message that a contact wrote, and what follows from it. One that is known changes nothing.
pub(super) fn receive(tx: &mut Tx, of: &UpdateContext<'_>, message: &InboundMessage) -> Result<()> {
    if messages::by_provider_id(tx, of.channel.id, &message.provider_id)?.is_some() {
        return Ok(());
    }
    if let Some(change) = Change::of_message(message) {
        return changes::change(tx, of, &change);
    }
    let contact = of.areas.people.receive(tx, of.channel.workspace_id, &identity(&message.from))?;
    store(tx, of, &[Received { contact, message }])
}

/// Stores messages of several contacts as [`receive`] does one, by statements of many rows. Gives whether each was stored, or
/// was known: all others are to be received alone, each in a transaction of its own, in their order.
///
/// # Errors
/// When one of them cannot be stored, or when the database fails.
pub(super) fn receive_together(
    tx: &mut Tx,
    of: &UpdateContext<'_>,
    messages: &[&InboundMessage],
) -> Result<Vec<bool>> {
    let ids = messages.iter().flat_map(|message| {
        let id = message.provider_id.as_str();
        std::iter::once(id).chain(message.target())
    });
    let mut known = messages::known_provider_ids(tx, of.channel.id, ids)?;
    let from: Vec<ChatIdentity> = messages.iter().map(|message| identity(&message.from)).collect();
    let contacts = of.areas.people.receive_known(tx, of.channel.workspace_id, &from)?;
    let (mut done, mut received) = (Vec::with_capacity(messages.len()), Vec::new());
    let mut left = HashSet::new();
    for (message, contact) in messages.iter().zip(contacts) {
        let is_known = known.contains(&message.provider_id);
        let contact = contact.filter(|_| !is_known && Change::of_message(message).is_none());
        // What the network calls a message of ours may be written down at this moment: who waits for that keeps others out.
        // What the contact wrote behind it stays behind it.
        if let Some(contact) = &contact
            && message.target().is_some_and(|target| !known.contains(target))
        {
            left.insert(contact.id);
        }
        let contact = contact.filter(|contact| !left.contains(&contact.id));
        done.push(is_known || contact.is_some());
        if let Some(contact) = contact {
            known.insert(message.provider_id.clone());
            received.push(Received { contact, message });
        }
    }
    // The first of each contact, in the order of their ids, then the second of each, and so on.
    received.sort_by_key(|received| received.contact.id);
    while !received.is_empty() {
        let mut first = HashSet::new();
        let (now, later): (Vec<_>, Vec<_>) =
            received.into_iter().partition(|received| first.insert(received.contact.id));
        store(tx, of, &now)?;
        received = later;
    }
    Ok(done)
}

/// Stores messages that are new, one of each contact, in the order of the contacts' ids.
fn store(tx: &mut Tx, of: &UpdateContext<'_>, received: &[Received<'_>]) -> Result<()> {
    let workspace = of.channel.workspace_id;
    let contacts: Vec<ContactId> = received.iter().map(|received| received.contact.id).collect();
    let conversations = Conversation::of_all(tx, workspace, of.channel.id, &contacts)?;
    let mut new = Vec::with_capacity(received.len());
    for (received, conversation) in received.iter().zip(&conversations) {
        new.push((conversation, written(tx, of, received)?));
    }
    let mut rows = messages::write_all(tx, &new)?;
    catch_up(tx, of, received, &mut rows)?;
    of.areas.broadcasts.contacts_replied(tx, workspace, &contacts, tx.now())?;
    of.areas.people.wrote(tx, workspace, &contacts)?;
    let files: Vec<bool> = new.iter().map(|(_, new)| new.attachment.is_some()).collect();
    let held = announce(tx, of, received, &rows, &files)?;
    let mut due = Vec::with_capacity(received.len());
    for (((received, conversation), row), held_until) in
        received.iter().zip(&conversations).zip(&rows).zip(held)
    {
        if is_left_to_agent(tx, of, received, conversation, row)? {
            let is_awaited = is_awaited(tx, of, row)?;
            due.push(reply_due(tx.now(), of, conversation, held_until, is_awaited));
        }
    }
    plan_replies(tx, &due)
}

/// Applies what came before the messages that it is about, and lets replies wait for theirs.
fn catch_up(
    tx: &mut Tx,
    of: &UpdateContext<'_>,
    received: &[Received<'_>],
    rows: &mut [MessageRow],
) -> Result<()> {
    let known: Vec<Known<'_>> = received
        .iter()
        .zip(rows.iter())
        .map(|(Received { message, .. }, row)| Known {
            id: row.id,
            provider_id: &message.provider_id,
            from: Some(&message.from),
        })
        .collect();
    let mut changed = changes::catch_up(tx, of.channel.id, Some(of.file_uses), &known)?;
    for (Received { message, .. }, row) in received.iter().zip(rows) {
        if let Some(target) = message.target().filter(|_| row.reply_to_id.is_none()) {
            changes::await_target(tx, of.channel.id, &message.provider_id, target, message.sent_at)?;
        }
        if let Some(changed) = changed.remove(&row.id) {
            *row = changed;
        }
    }
    Ok(())
}

/// The message as it is written down.
fn written(tx: &mut Tx, of: &UpdateContext<'_>, received: &Received<'_>) -> Result<NewMessage> {
    let message = received.message;
    let (referral, product) = (message.referral.clone(), message.product.clone());
    let mut new = stored(of, &message.content, Detail { referral, product, ..Detail::default() });
    new.provider_message_id = Some(message.provider_id.clone());
    new.provider_at = Some(message.sent_at);
    new.sender = Sender { kind: MessageSenderType::Contact, id: Some(received.contact.id.to_string()) };
    new.reply_to = target(tx, of, message.target())?;
    Ok(new)
}

/// The message to which another one replies or reacts, if it is known.
fn target(tx: &mut Tx, of: &UpdateContext<'_>, provider_id: Option<&str>) -> Result<Option<MessageId>> {
    let Some(provider_id) = provider_id else { return Ok(None) };
    Ok(messages::by_provider_id(tx, of.channel.id, provider_id)?.map(|row| row.id))
}

/// What a message says about marketing messages, by its text as it is now.
fn consent_in(of: &UpdateContext<'_>, content: &InboundContent, row: &MessageRow) -> Option<bool> {
    let own = &of.settings.opt_out_keywords;
    match content {
        InboundContent::Text(_) => opt_out::of_text(&row.content, own),
        InboundContent::Media(media) if !media.is_voice => opt_out::of_text(&row.content, own),
        InboundContent::ButtonReply { id, title, of_template } => {
            let payload = Some(id.as_str()).filter(|_| *of_template);
            opt_out::of_button(title, own).or_else(|| opt_out::of_button(payload?, own))
        }
        InboundContent::ListReply { title, .. } => opt_out::of_button(title, own),
        _ => None,
    }
}

/// Answers a message by the settings of the channel, where they say so. Gives whether an agent is to answer it, or others may take
/// it before that.
fn is_left_to_agent(
    tx: &mut Tx,
    of: &UpdateContext<'_>,
    received: &Received<'_>,
    conversation: &Conversation,
    row: &MessageRow,
) -> Result<bool> {
    let Received { contact, message } = received;
    if row.deleted_at.is_some() {
        return Ok(false);
    }
    let opted = consent_in(of, &message.content, row);
    if let Some(wants_messages) = opted {
        let (at, proof) = (Some(message.sent_at), row.content.clone());
        let statement = ConsentStatement { wants_messages, at, ties: ConsentTies::ToLater, proof };
        consent(tx, of, contact, conversation, &statement, row)?;
    }
    let is_recent = message.sent_at.plus_seconds(OLDEST_ANSWERED) > tx.now();
    if opted.is_some() || !is_for_agent(row) || contact.is_blocked || !is_recent {
        return Ok(false);
    }
    let is_first = conversation.last_message_id == MessageId(0);
    if let Some(welcome) = of.settings.welcome.clone().filter(|_| is_first) {
        answer(tx, conversation, welcome, format!("welcome:{}", row.id))?;
    }
    Ok(contact.autopilot || !of.areas.takers.is_empty())
}

/// Whether the contact pressed a button, or chose a row, for which somebody waits.
fn is_awaited(tx: &mut Tx, of: &UpdateContext<'_>, row: &MessageRow) -> Result<bool> {
    let is_choice = matches!(row.message_type, MessageType::ButtonReply | MessageType::ListReply);
    Ok(is_choice && of.areas.takers.await_choice(tx, row.workspace_id, row.contact_id)?)
}

/// Stores a message that the business wrote from its own device, which may take the conversation over from the agent.
pub(super) fn device_wrote(tx: &mut Tx, of: &UpdateContext<'_>, echo: &Echo) -> Result<()> {
    if messages::by_provider_id(tx, of.channel.id, &echo.provider_id)?.is_some() {
        return Ok(());
    }
    if let Some(change) = Change::of_echo(echo) {
        return changes::change(tx, of, &change);
    }
    let workspace = of.channel.workspace_id;
    let contact = of.areas.people.receive(tx, workspace, &identity(&echo.to))?;
    let conversation = Conversation::of(tx, workspace, of.channel.id, contact.id)?;
    let mut new = stored(of, &echo.content, Detail::default());
    new.reply_to = target(tx, of, echo.target())?;
    new.direction = MessageDirection::Outbound;
    new.sender = Sender { kind: MessageSenderType::Device, id: None };
    new.status = Some(MessageStatus::Sent);
    new.provider_message_id = Some(echo.provider_id.clone());
    new.provider_at = Some(echo.sent_at);
    let row = messages::write(tx, &conversation, new)?;
    if let Some(target) = echo.target().filter(|_| row.reply_to_id.is_none()) {
        changes::await_target(tx, of.channel.id, &echo.provider_id, target, echo.sent_at)?;
    }
    apply_early(tx, of.channel, of.areas, &[(row.id, &echo.provider_id)])?;
    let pause = of.settings.takeover_pause_minutes;
    if contact.autopilot && pause > 0 {
        let until = Some(tx.now().plus_seconds(pause * 60));
        let switch = HandOver { enabled: false, until, reason: HandoffReason::Device, summary: None };
        of.areas.people.hand_over(tx, workspace, &Cause::system("device"), contact.id, &switch)?;
    }
    Ok(())
}

/// Publishes messages at once, or when their files are there, but none before an earlier one of its conversation. Gives until
/// when each, or an earlier one, waits for its file.
fn announce(
    tx: &mut Tx,
    of: &UpdateContext<'_>,
    received: &[Received<'_>],
    rows: &[MessageRow],
    have_files: &[bool],
) -> Result<Vec<Option<Timestamp>>> {
    let earlier: Vec<(ConversationId, Option<Timestamp>)> = held::table
        .filter(held::conversation_id.eq_any(rows.iter().map(|row| row.conversation_id)))
        .group_by(held::conversation_id)
        .select((held::conversation_id, max(held::due_at)))
        .load(tx.connection())?;
    let earlier: HashMap<ConversationId, Option<Timestamp>> = earlier.into_iter().collect();
    let now = tx.now();
    let mut waits = Vec::with_capacity(rows.len());
    for ((received, row), has_file) in received.iter().zip(rows).zip(have_files) {
        if row.deleted_at.is_some() {
            waits.push(None);
            continue;
        }
        let earlier = earlier.get(&row.conversation_id).copied().flatten();
        if !has_file && earlier.is_none() {
            let url = received.contact.app_url.clone();
            let event = MessageEvent::received(row, of.channel.channel_type, Vec::new(), url)?;
            tx.emit(row.workspace_id, &cause_of(&received.contact), true, &event)?;
            waits.push(None);
            continue;
        }
        let until = if *has_file { now.plus_seconds(HOLD_SECONDS) } else { now };
        diesel::insert_into(held::table)
            .values((
                held::message_id.eq(row.id),
                held::channel_id.eq(row.channel_id),
                held::conversation_id.eq(row.conversation_id),
                held::due_at.eq(until),
            ))
            .execute(tx.connection())?;
        waits.push(Some(earlier.map_or(until, |earlier| earlier.max(until))));
    }
    Ok(waits)
}

/// What contacts write is caused by them.
pub(crate) fn cause_of(contact: &ContactCard) -> Cause {
    Cause::actor(ActorType::Contact, &contact.id)
}

/// Notes what a contact says about marketing messages, and confirms it where the channel has a text for that.
fn consent(
    tx: &mut Tx,
    of: &UpdateContext<'_>,
    contact: &ContactCard,
    conversation: &Conversation,
    statement: &ConsentStatement,
    row: &MessageRow,
) -> Result<()> {
    let counts = of.areas.people.record_consent(tx, row.workspace_id, contact.id, statement)?;
    let confirmation = of.settings.opt_out_confirmation.clone();
    let Some(text) = confirmation.filter(|_| counts && !statement.wants_messages) else { return Ok(()) };
    answer(tx, conversation, text, format!("opt_out:{}", row.id))
}

/// Answers a contact with a text of the channel's settings.
fn answer(tx: &mut Tx, conversation: &Conversation, text: String, client_key: String) -> Result<()> {
    let answer = Outgoing {
        message_type: MessageType::Text,
        content: text,
        detail: None,
        sender: Sender { kind: MessageSenderType::System, id: None },
        reply_to: None,
        client_key: Some(client_key),
        run_id: None,
        broadcast_id: None,
        attachment: None,
        chain: None,
        priority: Priority::Live,
        expires_at: tx.now().plus_seconds(3_600),
    };
    messages::enqueue(tx, conversation, answer).map(drop)
}

/// Whether an agent answers this type of message.
fn is_for_agent(row: &MessageRow) -> bool {
    !matches!(row.message_type, MessageType::Reaction | MessageType::System | MessageType::Unsupported)
}

/// When an agent answers a conversation.
struct ReplyDue {
    conversation: ConversationId,
    /// When the contact began to write what is to be answered.
    since: Timestamp,
    due: Timestamp,
}

/// When the agent answers: when the contact has paused, and nothing waits for a file or its transcript. A choice that is awaited is
/// not kept waiting for a pause.
fn reply_due(
    now: Timestamp,
    of: &UpdateContext<'_>,
    conversation: &Conversation,
    held_until: Option<Timestamp>,
    is_awaited: bool,
) -> ReplyDue {
    let since = conversation.reply_since.unwrap_or(now);
    let in_millis =
        |from: Timestamp, millis: i64| Timestamp::from_millis(from.millis().saturating_add(millis));
    let quiet = in_millis(now, of.settings.reply_debounce_ms);
    let latest = in_millis(since, of.settings.reply_debounce_max_ms.max(of.settings.reply_debounce_ms));
    let due = if is_awaited { now } else { quiet.min(latest) };
    let due = held_until.map_or(due, |until| due.max(until));
    ReplyDue { conversation: conversation.id, since, due }
}

/// Says when agents answer.
fn plan_replies(tx: &mut Tx, replies: &[ReplyDue]) -> Result<()> {
    Rows::of(replies)
        .big_int("id", |reply| reply.conversation)
        .time("since", |reply| reply.since)
        .time("due", |reply| reply.due)
        .execute(
            tx,
            "UPDATE conversations SET reply_since = reply.since, reply_due_at = reply.due FROM {reply}
            WHERE conversations.id = reply.id",
        )?;
    Ok(())
}
