//! What is sent: a template, or a message of any other type.

use crate::messages::{Detail, Interactive, MessageType, NewAttachment, SentTemplate};
use crate::templates::ResolvedMessage;
use chatnet::MediaKind;
use model::{Code, Error, FileId, JsonText, MessageId, Result};
use std::collections::HashSet;

/// The most rows of a list, in all sections together.
const MOST_LIST_ROWS: usize = 10;
/// The most buttons of a message.
const MOST_BUTTONS: usize = 3;

/// What is sent.
pub(super) enum What {
    /// What only the 24-hour window allows.
    Free(Box<Free>),
    /// A template.
    Template(Filled),
}

/// A template with its values.
pub(super) struct Filled {
    pub(super) template: SentTemplate,
    /// The file above its text.
    pub(super) media: Option<FileId>,
    /// The namespace that it must have.
    pub(super) namespace: Option<String>,
}

/// A message that is no template.
pub(super) struct Free {
    pub(super) message_type: MessageType,
    pub(super) content: String,
    pub(super) detail: Detail,
    pub(super) attachment: Option<NewAttachment>,
    pub(super) shown: ResolvedMessage,
    pub(super) reply_to: Option<MessageId>,
}

impl Free {
    /// What is stored beside its content.
    pub(super) fn stored_detail(&self) -> Option<JsonText> {
        (self.detail != Detail::default()).then(|| JsonText::of(&self.detail))
    }
}

/// A text.
pub(super) fn text(text: String, preview_url: bool, reply_to: Option<MessageId>) -> Free {
    Free {
        message_type: MessageType::Text,
        shown: ResolvedMessage { body: text.clone(), ..ResolvedMessage::default() },
        content: text,
        detail: Detail { preview_url, ..Detail::default() },
        attachment: None,
        reply_to,
    }
}

/// The type of a message with a file.
pub(crate) fn message_type_of(kind: MediaKind) -> MessageType {
    match kind {
        MediaKind::Image => MessageType::Image,
        MediaKind::Audio => MessageType::Audio,
        MediaKind::Video => MessageType::Video,
        MediaKind::Document => MessageType::Document,
        MediaKind::Sticker => MessageType::Sticker,
    }
}

/// Checks what the schema cannot say of buttons and lists.
pub(super) fn check_interactive(message: &Interactive) -> Result<()> {
    if message.buttons.len() > MOST_BUTTONS {
        let error =
            Error::new(Code::TooManyButtons, format!("A message has at most {MOST_BUTTONS} buttons."));
        return Err(error.param("interactive.buttons"));
    }
    match (&message.list, message.buttons.is_empty()) {
        (None, true) => {
            return Err(Error::invalid("interactive.buttons", "or `interactive.list` is required"));
        }
        (Some(_), false) => {
            return Err(Error::invalid("interactive.list", "cannot be sent together with buttons"));
        }
        _ => {}
    }
    let mut ids = HashSet::new();
    if let Some(place) = message.buttons.iter().position(|button| !ids.insert(&button.id)) {
        return Err(Error::invalid(
            format!("interactive.buttons[{place}].id"),
            "must be unique in the message",
        ));
    }
    let Some(list) = &message.list else { return Ok(()) };
    let is_untitled = list.sections.iter().position(|section| section.title.is_none());
    if let Some(place) = is_untitled.filter(|_| list.sections.len() > 1) {
        let param = format!("interactive.list.sections[{place}].title");
        return Err(Error::invalid(param, "is required, because the list has several sections"));
    }
    let rows: Vec<_> = list.sections.iter().flat_map(|section| &section.rows).collect();
    if rows.len() > MOST_LIST_ROWS {
        let rule = format!("must have at most {MOST_LIST_ROWS} rows together");
        return Err(Error::invalid("interactive.list.sections", rule));
    }
    if rows.iter().any(|row| !ids.insert(&row.id)) {
        return Err(Error::invalid("interactive.list.sections", "must have rows with unique ids"));
    }
    Ok(())
}
