//! Sending over a channel.

use super::bodies::{
    ChannelInteractiveMessage, ChannelMediaMessage, ChannelReaction, ChannelTemplateMessage,
    ChannelTextMessage, DryRun, ReadMark,
};
use super::content::{Content, FreeMessage, interactive, text};
use super::result::SendResult;
use super::retry::Attempt;
use super::send::{SendParts, Sending};
use super::text_or_reply::MessageFile;
use auth::Seal;
use channels::ChannelRow;
use channels::{Network, refused};
use chatnet::ResolvedMessage;
use conversations::messages::{self, Detail, MessageDirection, MessageRow, MessageType};
use model::{Caller, ChannelId, Code, ConversationId, Error, MessageId, Result};
use operation::{Body, Cx, Json, Path, Query, State, operation};
use ports::ContactCard;
use serde::Serialize;
use store::{Read, Tx};
use utoipa::ToSchema;

/// Send an approved template; dry_run=true only resolves it
///
/// A template may be sent at any time. The values must be exactly those of the template. With `dry_run=true` the message is
/// checked and shown as the contact would read it, and nothing is sent.
#[operation(post "/channels/{channelId}/chatnet/send-template", scope = "channels:send")]
pub fn send_channel_template(
    tx: &mut Tx,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    Query(query): Query<DryRun>,
    Body(body): Body<ChannelTemplateMessage>,
    parts: State<SendParts>,
) -> Result<Json<SendResult>> {
    let channel = channels::live(tx, caller.workspace_id(), channel_id)?;
    let contact = body.to().contact(tx, &parts.0.people, channel.workspace_id, query.dry_run)?;
    let sending = Sending::new(caller, &parts.0, query.dry_run, body.attempt())?;
    let namespace = body.namespace.clone();
    sending.send(tx, &channel, contact, Content::Template(body.filled(namespace))).map(Json)
}

/// Send text inside the 24-hour window
///
/// The message is queued and sent within moments; its status follows in the conversation. More than 24 hours after the contact's last message the answer is 409 `window_closed`.
#[operation(post "/channels/{channelId}/chatnet/send-message", scope = "channels:send")]
pub fn send_channel_message(
    tx: &mut Tx,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    Query(query): Query<DryRun>,
    Body(body): Body<ChannelTextMessage>,
    parts: State<SendParts>,
) -> Result<Json<SendResult>> {
    let channel = channels::live(tx, caller.workspace_id(), channel_id)?;
    let contact = known(body.to().contact(tx, &parts.0.people, channel.workspace_id, true)?)?;
    let sending = Sending::new(caller, &parts.0, query.dry_run, body.attempt())?;
    let what = Content::Free(Box::new(text(body.text, body.preview_url, body.reply_to)));
    sending.send(tx, &channel, Some(contact), what).map(Json)
}

/// Send an image, audio, video or document
///
/// The file must have been uploaded (`POST /files`), and the network must take its type and size, which the channel shows as
/// `capabilities`.
#[operation(post "/channels/{channelId}/chatnet/send-media", scope = "channels:send")]
pub fn send_channel_media(
    tx: &mut Tx,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    Query(query): Query<DryRun>,
    Body(body): Body<ChannelMediaMessage>,
    parts: State<SendParts>,
) -> Result<Json<SendResult>> {
    let channel = channels::live(tx, caller.workspace_id(), channel_id)?;
    let contact = known(body.to().contact(tx, &parts.0.people, channel.workspace_id, true)?)?;
    let sending = Sending::new(caller, &parts.0, query.dry_run, body.attempt())?;
    let file = MessageFile { file_id: body.file_id, kind: Some(body.kind), caption: body.caption };
    let free = sending.captioned(tx, &channel, &file, body.reply_to)?;
    sending.send(tx, &channel, Some(contact), Content::Free(Box::new(free))).map(Json)
}

/// Send up to 3 buttons, or a list
///
/// What the contact chooses comes back as a message of the type `button_reply` or `list_reply` with the id that you gave.
#[operation(post "/channels/{channelId}/chatnet/send-interactive", scope = "channels:send")]
pub fn send_channel_interactive(
    tx: &mut Tx,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    Query(query): Query<DryRun>,
    Body(body): Body<ChannelInteractiveMessage>,
    parts: State<SendParts>,
) -> Result<Json<SendResult>> {
    let channel = channels::live(tx, caller.workspace_id(), channel_id)?;
    let contact = known(body.to().contact(tx, &parts.0.people, channel.workspace_id, true)?)?;
    let attempt = body.attempt();
    let free = interactive(body.interactive, body.reply_to)?;
    let sending = Sending::new(caller, &parts.0, query.dry_run, attempt)?;
    sending.send(tx, &channel, Some(contact), Content::Free(Box::new(free))).map(Json)
}

/// React to a message
///
/// The contact sees the emoji at the message. `null` takes an earlier reaction back. The 24-hour window must be open.
#[operation(post "/channels/{channelId}/chatnet/send-reaction", scope = "channels:send")]
pub fn send_channel_reaction(
    tx: &mut Tx,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    Body(body): Body<ChannelReaction>,
    parts: State<SendParts>,
) -> Result<Json<SendResult>> {
    let channel = channels::live(tx, caller.workspace_id(), channel_id)?;
    let target = message_of(tx, &channel, body.message_id)?;
    if target.provider_message_id.is_none() {
        return Err(Error::new(Code::InvalidState, "The message was not sent.").param("message_id"));
    }
    let contact = parts.0.people.find(tx, channel.workspace_id, &target.contact_id.into())?;
    let free = FreeMessage {
        message_type: MessageType::Reaction,
        content: body.emoji.clone().unwrap_or_default(),
        detail: Detail { emoji: body.emoji.clone(), ..Detail::default() },
        attachment: None,
        shown: ResolvedMessage { body: body.emoji.unwrap_or_default(), ..ResolvedMessage::default() },
        reply_to: Some(target.id),
    };
    let sending = Sending::new(caller, &parts.0, false, Attempt::default())?;
    sending.send(tx, &channel, Some(contact), Content::Free(Box::new(free))).map(Json)
}

/// A conversation that was marked as read.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "unread_count": 0 }))]
pub struct ReadMarked {
    /// Always `read_mark`.
    pub object: &'static str,
    /// The id of the conversation.
    pub conversation_id: ConversationId,
    /// The id of the message.
    pub message_id: MessageId,
    /// How many messages of the contact are still unread.
    pub unread_count: i64,
}

/// Mark a message read
///
/// The contact sees that the message and those before it were read. With `typing` it also sees, for some seconds, that an
/// answer is being written.
#[operation(post "/channels/{channelId}/chatnet/mark-read", scope = "channels:send")]
pub async fn mark_channel_message_read(
    cx: &Cx,
    Path(channel_id): Path<ChannelId>,
    Body(mark): Body<ReadMark>,
    State(network): State<Network>,
    State(seal): State<Seal>,
) -> Result<Json<ReadMarked>> {
    let workspace = cx.caller.workspace_id();
    let found = cx.db.read(move |read| {
        let channel = channels::live(read, workspace, channel_id)?;
        let message = message_of(read, &channel, mark.message_id)?;
        Ok((channel, message))
    });
    let (channel, message) = found.await?;
    if message.direction != MessageDirection::Inbound {
        return Err(
            Error::new(Code::InvalidState, "The contact did not write the message.").param("message_id")
        );
    }
    channel.expect_connected()?;
    if let Some(provider_id) = &message.provider_message_id {
        let account = channel.account(&seal)?;
        let marked = network.0.mark_read(&account, provider_id, mark.typing).await;
        marked.map_err(|error| refused(&error, "message_id"))?;
    }
    let (conversation, upto) = (message.conversation_id, message.id);
    let unread = cx.db.write(move |tx| messages::mark_read(tx, conversation, upto));
    Ok(Json(ReadMarked {
        object: "read_mark",
        conversation_id: conversation,
        message_id: upto,
        unread_count: unread.await?,
    }))
}

/// Free messages go to contacts who have written, so there is one.
fn known(contact: Option<ContactCard>) -> Result<ContactCard> {
    contact.ok_or_else(|| Error::not_found("contact").param("to"))
}

fn message_of(read: &mut Read, channel: &ChannelRow, id: MessageId) -> Result<MessageRow> {
    messages::of_channel(read, (channel.workspace_id, channel.id), id)
        .map_err(|error| error.param("message_id"))
}
