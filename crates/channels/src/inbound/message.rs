//! A message that a contact wrote, or that the business wrote from its own device.

use super::applying::{Applying, identity};
use super::opt_out;
use super::status::apply_early;
use crate::broadcasts;
use crate::events::MessageEvent;
use crate::messages::{
    self, Conversation, Detail, Location, MessageDirection, MessageRow, MessageSenderType, MessageStatus,
    MessageType, NewAttachment, NewMessage, Outgoing, Priority, Sender,
};
use crate::schema::{
    conversations, held_message_events as held, message_attachments as attachments, messages as table,
};
use crate::sends::message_type_of;
use chatnet::{Echo, InboundContent, InboundMedia, InboundMessage, MediaKind};
use diesel::prelude::*;
use model::{ActorType, Cause, JsonText, MessageId, Result, Timestamp};
use operation::ports::{ContactCard, HandOver, HandoffReason};
use store::Tx;

/// For how long the event of a message with a file waits for the file and its transcript, in seconds.
const HOLD_SECONDS: i64 = 30;
/// A message that is older than this starts no agent, in seconds.
const OLDEST_ANSWERED: i64 = 48 * 3_600;

/// Stores a message that a contact wrote, and what follows from it. One that is known changes nothing.
pub(super) fn receive(tx: &mut Tx, of: &Applying<'_>, message: &InboundMessage) -> Result<()> {
    if messages::by_provider_id(tx, of.channel.id, &message.provider_id)?.is_some() {
        return Ok(());
    }
    if let InboundContent::Edited { message: id, text } = &message.content {
        return change(tx, of, id, |now| Change { content: text.clone(), edited: Some(now), deleted: None });
    }
    if let InboundContent::Deleted { message: id } = &message.content {
        return change(tx, of, id, |now| Change { content: String::new(), edited: None, deleted: Some(now) });
    }
    let workspace = of.channel.workspace_id;
    let contact = of.people.receive(tx, workspace, &identity(&message.from))?;
    let conversation = Conversation::of(tx, workspace, of.channel.id, contact.id)?;
    let is_first = conversation.last_message_id == MessageId(0);
    let mut new = stored(tx, of, &message.content)?;
    new.provider_message_id = Some(message.provider_id.clone());
    new.provider_at = Some(message.sent_at);
    new.sender = Sender { kind: MessageSenderType::Contact, id: Some(contact.id.to_string()) };
    if let Some(replied) = message.reply_to.as_deref().filter(|_| new.reply_to.is_none()) {
        new.reply_to = messages::by_provider_id(tx, of.channel.id, replied)?.map(|row| row.id);
    }
    let has_file = new.attachment.is_some();
    let row = messages::write(tx, &conversation, new)?;
    broadcasts::contact_replied(tx, workspace, contact.id, tx.now())?;
    of.people.wrote(tx, workspace, contact.id)?;
    let held_until = announce(tx, of, &contact, &row, has_file)?;
    let opted = match &message.content {
        InboundContent::Text(text) => opt_out::said(text, &of.settings.opt_out_keywords),
        _ => None,
    };
    if let Some(wants) = opted {
        consent(tx, of, &contact, &conversation, wants, &row)?;
    }
    let is_recent = message.sent_at.plus_seconds(OLDEST_ANSWERED) > tx.now();
    if opted.is_some() || !is_for_agent(&row) || contact.is_blocked || !is_recent {
        return Ok(());
    }
    if let Some(welcome) = of.settings.welcome.clone().filter(|_| is_first) {
        answer(tx, &conversation, welcome, format!("welcome:{}", row.id))?;
    }
    if contact.autopilot {
        plan_reply(tx, of, &conversation, held_until)?;
    }
    Ok(())
}

/// Stores a message that the business wrote from its own device, which may take the conversation over from the agent.
pub(super) fn device_wrote(tx: &mut Tx, of: &Applying<'_>, echo: &Echo) -> Result<()> {
    if messages::by_provider_id(tx, of.channel.id, &echo.provider_id)?.is_some() {
        return Ok(());
    }
    let workspace = of.channel.workspace_id;
    let contact = of.people.receive(tx, workspace, &identity(&echo.to))?;
    let conversation = Conversation::of(tx, workspace, of.channel.id, contact.id)?;
    let mut new = stored(tx, of, &echo.content)?;
    new.direction = MessageDirection::Outbound;
    new.sender = Sender { kind: MessageSenderType::Device, id: None };
    new.status = Some(MessageStatus::Sent);
    new.provider_message_id = Some(echo.provider_id.clone());
    new.provider_at = Some(echo.sent_at);
    let row = messages::write(tx, &conversation, new)?;
    apply_early(tx, of.channel, of.people, &[(row.id, &echo.provider_id)])?;
    let pause = of.settings.takeover_pause_minutes;
    if contact.autopilot && pause > 0 {
        let until = Some(tx.now().plus_seconds(pause * 60));
        let switch = HandOver { enabled: false, until, reason: HandoffReason::Device, summary: None };
        of.people.hand_over(tx, workspace, &Cause::system("device"), contact.id, &switch)?;
    }
    Ok(())
}

/// What a message becomes; who sent it is added.
fn stored(tx: &mut Tx, of: &Applying<'_>, content: &InboundContent) -> Result<NewMessage> {
    let mut detail = Detail::default();
    let (mut reply_to, mut attachment) = (None, None);
    let (message_type, content) = match content {
        InboundContent::Text(text) => (MessageType::Text, text.clone()),
        InboundContent::Media(media) => {
            attachment = Some(file(of, media));
            let voice = || if media.is_voice { "[Audio]" } else { "" };
            let caption = media.caption.clone().unwrap_or_else(|| voice().to_owned());
            (message_type_of(media.kind), caption)
        }
        InboundContent::Location { latitude, longitude, name, address } => {
            let (name, address) = (name.clone(), address.clone());
            let shown = name.clone().or_else(|| address.clone());
            detail.location = Some(Location { latitude: *latitude, longitude: *longitude, name, address });
            (MessageType::Location, shown.unwrap_or_else(|| format!("{latitude}, {longitude}")))
        }
        InboundContent::Contacts(cards) => {
            detail.contacts = Some(cards.clone());
            (MessageType::Contacts, "[Contacts]".to_owned())
        }
        InboundContent::ButtonReply { id, title } => {
            detail.reply_id = Some(id.clone());
            (MessageType::ButtonReply, title.clone())
        }
        InboundContent::ListReply { id, title } => {
            detail.reply_id = Some(id.clone());
            (MessageType::ListReply, title.clone())
        }
        InboundContent::Reaction { message, emoji } => {
            reply_to = messages::by_provider_id(tx, of.channel.id, message)?.map(|row| row.id);
            detail.emoji = emoji.clone();
            (MessageType::Reaction, emoji.clone().unwrap_or_default())
        }
        InboundContent::Unsupported { kind, raw } => {
            detail.raw = Some(raw.clone());
            (MessageType::Unsupported, format!("[{kind}]"))
        }
        // Changes of earlier messages are no messages.
        InboundContent::Edited { .. } | InboundContent::Deleted { .. } => {
            (MessageType::System, String::new())
        }
    };
    let detail = (detail != Detail::default()).then(|| JsonText::of(&detail));
    Ok(NewMessage {
        direction: MessageDirection::Inbound,
        sender: Sender { kind: MessageSenderType::Contact, id: None },
        message_type,
        content,
        detail,
        reply_to,
        status: None,
        client_key: None,
        provider_message_id: None,
        provider_at: None,
        run_id: None,
        broadcast_id: None,
        attachment,
    })
}

fn file(of: &Applying<'_>, media: &InboundMedia) -> NewAttachment {
    NewAttachment {
        kind: media.kind,
        file: None,
        provider_media_id: Some(media.media_id.clone()),
        mime_type: media.mime_type.clone(),
        name: media.file_name.clone(),
        is_voice: media.is_voice,
        transcribe: of.transcribes && of.settings.transcribe && media.kind == MediaKind::Audio,
    }
}

/// How a message that a contact changed later looks.
struct Change {
    content: String,
    edited: Option<Timestamp>,
    deleted: Option<Timestamp>,
}

fn change(tx: &mut Tx, of: &Applying<'_>, id: &str, make: impl FnOnce(Timestamp) -> Change) -> Result<()> {
    let Some(row) = messages::by_provider_id(tx, of.channel.id, id)? else { return Ok(()) };
    let now = tx.now();
    let change = make(now);
    let changed: MessageRow = diesel::update(table::table.find(row.id))
        .set((
            table::content.eq(change.content),
            table::edited_at.eq(change.edited.or(row.edited_at)),
            table::deleted_at.eq(change.deleted.or(row.deleted_at)),
            table::updated_at.eq(now),
        ))
        .returning(table::all_columns)
        .get_result(tx.connection())?;
    let transcript: Option<Option<String>> = attachments::table
        .filter(attachments::message_id.eq(changed.id))
        .select(attachments::transcript)
        .first(tx.connection())
        .optional()?;
    let transcript = transcript.flatten().filter(|_| changed.deleted_at.is_none());
    messages::terms::reindex(tx, &changed, transcript.as_deref())
}

/// Publishes a message at once, or when its file is there, but never before an earlier one of its conversation. Gives until
/// when it, or an earlier one, waits for its file.
fn announce(
    tx: &mut Tx,
    of: &Applying<'_>,
    contact: &ContactCard,
    row: &MessageRow,
    has_file: bool,
) -> Result<Option<Timestamp>> {
    let earlier: Option<Timestamp> = held::table
        .filter(held::conversation_id.eq(row.conversation_id))
        .select(diesel::dsl::max(held::due_at))
        .get_result(tx.connection())?;
    if !has_file && earlier.is_none() {
        let url = contact.app_url.clone();
        let event = MessageEvent::received(row, of.channel.channel_type, Vec::new(), url)?;
        tx.emit(row.workspace_id, &cause_of(contact), true, &event)?;
        return Ok(None);
    }
    let now = tx.now();
    let until = if has_file { now.plus_seconds(HOLD_SECONDS) } else { now };
    diesel::insert_into(held::table)
        .values((
            held::message_id.eq(row.id),
            held::channel_id.eq(row.channel_id),
            held::conversation_id.eq(row.conversation_id),
            held::due_at.eq(until),
        ))
        .execute(tx.connection())?;
    Ok(Some(earlier.map_or(until, |earlier| earlier.max(until))))
}

/// What contacts write is caused by them.
pub(crate) fn cause_of(contact: &ContactCard) -> Cause {
    Cause::actor(ActorType::Contact, &contact.id)
}

/// Notes what a contact says about marketing messages, and confirms it where the channel has a text for that.
fn consent(
    tx: &mut Tx,
    of: &Applying<'_>,
    contact: &ContactCard,
    conversation: &Conversation,
    wants: bool,
    row: &MessageRow,
) -> Result<()> {
    of.people.record_consent(tx, row.workspace_id, contact.id, wants, &row.content)?;
    let Some(text) = of.settings.opt_out_confirmation.clone().filter(|_| !wants) else { return Ok(()) };
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
        priority: Priority::Live,
        expires_at: tx.now().plus_seconds(3_600),
    };
    messages::enqueue(tx, conversation, answer).map(drop)
}

/// Whether an agent answers this type of message.
fn is_for_agent(row: &MessageRow) -> bool {
    !matches!(row.message_type, MessageType::Reaction | MessageType::System | MessageType::Unsupported)
}

/// Says when the agent answers: when the contact has paused, and nothing waits for a file or its transcript.
fn plan_reply(
    tx: &mut Tx,
    of: &Applying<'_>,
    conversation: &Conversation,
    held_until: Option<Timestamp>,
) -> Result<()> {
    let now = tx.now();
    let since = conversation.reply_since.unwrap_or(now);
    let in_millis =
        |from: Timestamp, millis: i64| Timestamp::from_millis(from.millis().saturating_add(millis));
    let quiet = in_millis(now, of.settings.reply_debounce_ms);
    let latest = in_millis(since, of.settings.reply_debounce_max_ms.max(of.settings.reply_debounce_ms));
    let due = quiet.min(latest);
    let due = held_until.map_or(due, |until| due.max(until));
    diesel::update(conversations::table.find(conversation.id))
        .set((conversations::reply_since.eq(since), conversations::reply_due_at.eq(due)))
        .execute(tx.connection())?;
    Ok(())
}
