//! What a message of a contact, or of the business's own device, becomes when it is stored.

use super::context::UpdateContext;
use crate::messages::{
    Detail, Location, MessageDirection, MessageSenderType, MessageType, NewAttachment, NewMessage, Sender,
};
use chatnet::{InboundContent, InboundMedia, MediaKind};
use model::JsonText;

/// What a message becomes; who sent it, and to what it replies, is added. `detail` is what it has whatever its content.
#[expect(clippy::too_many_lines, reason = "one arm for each kind of content")]
pub(super) fn stored(of: &UpdateContext<'_>, content: &InboundContent, mut detail: Detail) -> NewMessage {
    let mut attachment = None;
    let (message_type, content) = match content {
        InboundContent::Text(text) => (MessageType::Text, text.clone()),
        InboundContent::Media(media) => {
            attachment = Some(file(of, media));
            let voice = || if media.is_voice { "[Audio]" } else { "" };
            let caption = media.caption.clone().unwrap_or_else(|| voice().to_owned());
            (MessageType::of_media(media.kind), caption)
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
        InboundContent::ButtonReply { id, title, .. } => {
            detail.reply_id = Some(id.clone());
            (MessageType::ButtonReply, title.clone())
        }
        InboundContent::ListReply { id, title } => {
            detail.reply_id = Some(id.clone());
            (MessageType::ListReply, title.clone())
        }
        InboundContent::Reaction { emoji, .. } => {
            detail.emoji = emoji.clone();
            (MessageType::Reaction, emoji.clone().unwrap_or_default())
        }
        InboundContent::Order(order) => {
            detail.order = Some(order.clone());
            (MessageType::Order, order.readable())
        }
        InboundContent::Form(form) => {
            detail.form = Some(form.clone());
            (MessageType::FormReply, form.readable())
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
    NewMessage {
        direction: MessageDirection::Inbound,
        sender: Sender { kind: MessageSenderType::Contact, id: None },
        message_type,
        content,
        detail,
        reply_to: None,
        status: None,
        client_key: None,
        provider_message_id: None,
        provider_at: None,
        run_id: None,
        broadcast_id: None,
        attachment,
        chain: None,
    }
}

fn file(of: &UpdateContext<'_>, media: &InboundMedia) -> NewAttachment {
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
