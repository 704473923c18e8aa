//! Callbacks of a network, parsed.

use crate::{
    MediaKind, MessageForm, MessageOrder, MessageProduct, MessageReferral, NetworkStatus, Quality,
    RefusalCode, TemplateCategory, TemplateStatus,
};
use model::Timestamp;
use serde_json::Value;

/// One part of a callback.
#[expect(clippy::large_enum_variant, reason = "nearly all updates are messages and statuses of them")]
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// A contact sent a message.
    Message(InboundMessage),
    /// The business sent a message from its own device.
    Echo(Echo),
    /// The status of one of our messages changed.
    Status(StatusUpdate),
    /// A template was reviewed, paused or recategorised.
    Template(TemplateUpdate),
    /// The rating of the number changed.
    Quality(QualityUpdate),
    /// A contact opted out of marketing messages or in again, by a setting of the network.
    Consent {
        /// The contact.
        party: Party,
        /// Whether the contact accepts marketing messages.
        wants_marketing: bool,
        /// The network's time of the change, if stated.
        at: Option<Timestamp>,
    },
    /// A contact's number or user id changed.
    Identity(IdentityChange),
    /// A part that is not understood, in its original form.
    Unknown {
        /// The name of the unknown field or type, at most 100 characters.
        kind: String,
        /// The original part.
        raw: Value,
    },
}

/// A person on the network. At least one of `user_id` and `phone` is present.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Party {
    /// The network's id of the person for this business.
    pub user_id: Option<String>,
    /// The telephone number with `+` and country code. People can hide it.
    pub phone: Option<String>,
    /// The user name, without `@`.
    pub username: Option<String>,
    /// The name that the person chose.
    pub name: Option<String>,
}

/// A message of a contact.
#[derive(Debug, Clone, PartialEq)]
pub struct InboundMessage {
    /// The network's id of the message.
    pub provider_id: String,
    /// The sender.
    pub from: Party,
    /// The network's time of the message.
    pub sent_at: Timestamp,
    /// The content.
    pub content: InboundContent,
    /// The network's id of the message that this is a reply to.
    pub reply_to: Option<String>,
    /// The advertisement or post that brought the contact here.
    pub referral: Option<MessageReferral>,
    /// The product that the contact writes about.
    pub product: Option<MessageProduct>,
}

impl InboundMessage {
    /// Returns the network's id of the message that this one replies to, reacts to or changes.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.content.target().or(self.reply_to.as_deref())
    }
}

/// A message that the business wrote on its own device.
#[derive(Debug, Clone, PartialEq)]
pub struct Echo {
    /// The network's id of the message.
    pub provider_id: String,
    /// The recipient.
    pub to: Party,
    /// The network's time of the message.
    pub sent_at: Timestamp,
    /// The content.
    pub content: InboundContent,
    /// The network's id of the message that this is a reply to.
    pub reply_to: Option<String>,
}

impl Echo {
    /// Returns the network's id of the message that this one replies to, reacts to or changes.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.content.target().or(self.reply_to.as_deref())
    }
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum InboundContent {
    /// Text.
    Text(String),
    /// A file.
    Media(InboundMedia),
    /// A location.
    Location {
        /// Degrees north.
        latitude: f64,
        /// Degrees east.
        longitude: f64,
        /// The name of the place.
        name: Option<String>,
        /// The address of the place.
        address: Option<String>,
    },
    /// Contact cards, in the network's format.
    Contacts(Value),
    /// The contact pressed one of our buttons.
    ButtonReply {
        /// The button's id as we sent it, or the payload of a template's button.
        id: String,
        /// The button's title.
        title: String,
        /// Whether the button belongs to a template.
        of_template: bool,
    },
    /// The contact chose a row of one of our lists.
    ListReply {
        /// The row's id as we sent it.
        id: String,
        /// The row's title.
        title: String,
    },
    /// A reaction to a message. Without `emoji` the reaction was removed.
    Reaction {
        /// The network's id of the message reacted to.
        message: String,
        /// The emoji.
        emoji: Option<String>,
    },
    /// The text of an earlier message was edited.
    Edited {
        /// The network's id of the edited message.
        message: String,
        /// The new text.
        text: String,
    },
    /// The sender deleted an earlier message.
    Deleted {
        /// The network's id of the deleted message.
        message: String,
    },
    /// An order of products.
    Order(MessageOrder),
    /// A form reply.
    Form(MessageForm),
    /// A type that is not understood, in its original form.
    Unsupported {
        /// The network's name of the type.
        kind: String,
        /// The original message.
        raw: Value,
    },
}

impl InboundContent {
    /// Returns the network's id of the message that this content reacts to or changes.
    fn target(&self) -> Option<&str> {
        match self {
            Self::Reaction { message, .. } | Self::Edited { message, .. } | Self::Deleted { message } => {
                Some(message)
            }
            _ => None,
        }
    }
}

/// A file that a contact sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundMedia {
    /// The kind.
    pub kind: MediaKind,
    /// The network's id, valid for seven days.
    pub media_id: String,
    /// The MIME type that the network states.
    pub mime_type: Option<String>,
    /// The caption.
    pub caption: Option<String>,
    /// The file name of a document.
    pub file_name: Option<String>,
    /// Whether it is a voice note.
    pub is_voice: bool,
}

/// A change of the status of one of our messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The network's id of the message.
    pub provider_id: String,
    /// The reference of the send.
    pub reference: Option<String>,
    /// The new status.
    pub status: NetworkStatus,
    /// The network's time of the change.
    pub at: Timestamp,
    /// The recipient of the message.
    pub recipient: Party,
    /// The error, if the message failed.
    pub error: Option<StatusError>,
}

/// The error of a message that failed after the network had accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusError {
    /// Our error code.
    pub code: RefusalCode,
    /// The network's error number.
    pub provider_code: Option<i64>,
    /// A message for people, in English.
    pub message: String,
}

/// The state of a template at the network. `None` in a field means unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateUpdate {
    /// The network's id of the template in this language.
    pub provider_id: String,
    /// The name.
    pub name: String,
    /// The language.
    pub language: String,
    /// The status of its review.
    pub status: Option<TemplateStatus>,
    /// The category.
    pub category: Option<TemplateCategory>,
    /// The reason of a rejection.
    pub rejection_reason: Option<String>,
    /// The quality rating.
    pub quality: Option<Quality>,
    /// The components, in the network's format.
    pub components: Option<Value>,
    /// The network's time of the change, if stated.
    pub at: Option<Timestamp>,
}

/// A new rating of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualityUpdate {
    /// The number's digits. Callbacks about a number identify it in this way, not by its id.
    pub display_number: Option<String>,
    /// The rating. `None` means unchanged.
    pub quality: Option<Quality>,
    /// The number of contacts that the business may write to first within 24 hours; `i64::MAX` for no limit. `None`
    /// means unchanged.
    pub messaging_limit: Option<i64>,
    /// The network's time of the rating, if stated.
    pub at: Option<Timestamp>,
}

/// A contact's change of number or user id. The field that both sides have in common identifies the contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityChange {
    /// The previous identity.
    pub old: Party,
    /// The new identity.
    pub new: Party,
    /// The network's time of the change, if stated.
    pub at: Option<Timestamp>,
}
