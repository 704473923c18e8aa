//! What is sent: a template, or a message of any other type.

use chatnet::{ResolvedMessage, SentTemplate};
use conversations::messages::{Detail, MessageType, NewAttachment};
use model::{FileId, JsonText, MessageId};

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
