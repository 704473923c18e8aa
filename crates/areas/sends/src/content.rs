//! What is sent: a template, or a message of any other type.

use chatnet::{Interactive, MediaKind, ResolvedMessage, SentTemplate};
use conversations::messages::{Detail, MessageType, NewAttachment};
use model::{Error, FileId, JsonText, MessageId, Result};

/// What is sent.
pub(super) enum Content {
    /// What only the 24-hour window allows.
    Free(Box<FreeMessage>),
    /// A template.
    Template(FilledTemplate),
}

/// A template with its values.
pub(super) struct FilledTemplate {
    pub(super) template: SentTemplate,
    /// The file above its text.
    pub(super) media: Option<FileId>,
    /// The namespace that it must have.
    pub(super) namespace: Option<String>,
}

/// A message that is no template.
pub(super) struct FreeMessage {
    pub(super) message_type: MessageType,
    pub(super) content: String,
    pub(super) detail: Detail,
    pub(super) attachment: Option<NewAttachment>,
    pub(super) shown: ResolvedMessage,
    pub(super) reply_to: Option<MessageId>,
}

impl FreeMessage {
    /// What is stored beside its content.
    pub(super) fn stored_detail(&self) -> Option<JsonText> {
        (self.detail != Detail::default()).then(|| JsonText::of(&self.detail))
    }
}

/// A text.
pub(super) fn text(text: String, preview_url: bool, reply_to: Option<MessageId>) -> FreeMessage {
    FreeMessage {
        message_type: MessageType::Text,
        shown: ResolvedMessage { body: text.clone(), ..ResolvedMessage::default() },
        content: text,
        detail: Detail { preview_url, ..Detail::default() },
        attachment: None,
        reply_to,
    }
}

/// A file, with a caption or without.
///
/// # Errors
/// `validation_error` for a caption of audio or of a sticker.
pub(super) fn media(
    attachment: NewAttachment,
    caption: Option<String>,
    reply_to: Option<MessageId>,
) -> Result<FreeMessage> {
    let kind = attachment.kind;
    if caption.is_some() && matches!(kind, MediaKind::Audio | MediaKind::Sticker) {
        return Err(Error::invalid("caption", "cannot be sent with audio or a sticker"));
    }
    let content = caption.unwrap_or_default();
    Ok(FreeMessage {
        message_type: MessageType::of_media(kind),
        shown: ResolvedMessage {
            header: Some(kind.as_str().to_owned()),
            body: content.clone(),
            ..ResolvedMessage::default()
        },
        content,
        detail: Detail::default(),
        attachment: Some(attachment),
        reply_to,
    })
}

/// A text with buttons or a list.
///
/// # Errors
/// `too_many_buttons`, `validation_error`.
pub(super) fn interactive(interactive: Interactive, reply_to: Option<MessageId>) -> Result<FreeMessage> {
    interactive.check()?;
    let buttons = interactive.buttons.iter().map(|button| button.title.clone());
    let list = interactive.list.iter().map(|list| list.button.clone());
    let shown = ResolvedMessage {
        header: interactive.header.clone(),
        body: interactive.body.clone(),
        footer: interactive.footer.clone(),
        buttons: buttons.chain(list).collect(),
    };
    Ok(FreeMessage {
        message_type: MessageType::Interactive,
        content: interactive.body.clone(),
        detail: Detail { interactive: Some(interactive), ..Detail::default() },
        attachment: None,
        shown,
        reply_to,
    })
}
