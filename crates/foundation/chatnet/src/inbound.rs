//! What a network calls back with.

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
    /// A contact wrote.
    Message(InboundMessage),
    /// The business wrote from its own device.
    Echo(Echo),
    /// A message of ours came further, or failed.
    Status(StatusUpdate),
    /// The network reviewed, paused or recategorised a template.
    Template(TemplateUpdate),
    /// The network rated the number anew.
    Quality(QualityUpdate),
    /// A contact no longer wants marketing messages, or wants them again, by the network's own switch.
    Consent {
        /// Who.
        party: Party,
        /// Whether marketing messages are wanted.
        wants_marketing: bool,
        /// When, by the network's clock. `None` if it does not say.
        at: Option<Timestamp>,
    },
    /// A contact has another number or user id.
    Identity(IdentityChange),
    /// What this program does not understand. It is kept as it came.
    Unknown {
        /// The name of the field or type that is not known, at most 100 characters.
        kind: String,
        /// The part as it came.
        raw: Value,
    },
}

/// A person on the network. At least one of `user_id` and `phone` is present.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Party {
    /// The network's id of the person for this business.
    pub user_id: Option<String>,
    /// With `+` and country code. People can hide it.
    pub phone: Option<String>,
    /// The user name, without `@`.
    pub username: Option<String>,
    /// The name that the person gave itself.
    pub name: Option<String>,
}

/// A message of a contact.
#[derive(Debug, Clone, PartialEq)]
pub struct InboundMessage {
    /// The network's id of the message.
    pub provider_id: String,
    /// Who wrote.
    pub from: Party,
    /// When, by the network's clock.
    pub sent_at: Timestamp,
    /// What was written.
    pub content: InboundContent,
    /// The network's id of the message to which it replies.
    pub reply_to: Option<String>,
    /// The advertisement from which the contact came to write.
    pub referral: Option<MessageReferral>,
    /// The product about which the contact writes.
    pub product: Option<MessageProduct>,
}

impl InboundMessage {
    /// The network's id of the message to which this one replies or reacts, or which it changes.
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
    /// To whom.
    pub to: Party,
    /// When, by the network's clock.
    pub sent_at: Timestamp,
    /// What was written.
    pub content: InboundContent,
    /// The network's id of the message to which it replies.
    pub reply_to: Option<String>,
}

impl Echo {
    /// The network's id of the message to which this one replies or reacts, or which it changes.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.content.target().or(self.reply_to.as_deref())
    }
}

/// What a message contains.
#[derive(Debug, Clone, PartialEq)]
pub enum InboundContent {
    /// Text.
    Text(String),
    /// A file.
    Media(InboundMedia),
    /// A place.
    Location {
        /// Degrees north.
        latitude: f64,
        /// Degrees east.
        longitude: f64,
        /// Of the place.
        name: Option<String>,
        /// Of the place.
        address: Option<String>,
    },
    /// Cards of people, as the network has them.
    Contacts(Value),
    /// A button of ours was pressed: its id and title.
    ButtonReply {
        /// As it was sent; of a template's button its payload.
        id: String,
        /// As the contact saw it.
        title: String,
        /// Whether it is a button of a template.
        of_template: bool,
    },
    /// A row of a list of ours was chosen.
    ListReply {
        /// As it was sent.
        id: String,
        /// As the contact saw it.
        title: String,
    },
    /// A reaction to a message; without `emoji` it was taken back.
    Reaction {
        /// The network's id of the message to which it belongs.
        message: String,
        /// The emoji.
        emoji: Option<String>,
    },
    /// The text of an earlier message was changed.
    Edited {
        /// The network's id of the changed message.
        message: String,
        /// Its new text.
        text: String,
    },
    /// An earlier message was deleted by its sender.
    Deleted {
        /// The network's id of the deleted message.
        message: String,
    },
    /// An order of products.
    Order(MessageOrder),
    /// The answer to a form.
    Form(MessageForm),
    /// A type that this program does not understand, as it came.
    Unsupported {
        /// The network's name of the type.
        kind: String,
        /// The message as it came.
        raw: Value,
    },
}

impl InboundContent {
    /// The network's id of the message to which it reacts, or which it changes.
    fn target(&self) -> Option<&str> {
        match self {
            Self::Reaction { message, .. } | Self::Edited { message, .. } | Self::Deleted { message } => {
                Some(message)
            }
            _ => None,
        }
    }
}

/// A file of a contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboundMedia {
    /// What it is.
    pub kind: MediaKind,
    /// The network's id, valid for seven days.
    pub media_id: String,
    /// As the network states it.
    pub mime_type: Option<String>,
    /// The text below it.
    pub caption: Option<String>,
    /// Of a document.
    pub file_name: Option<String>,
    /// Whether it is a voice note.
    pub is_voice: bool,
}

/// How far a message of ours came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The network's id of the message.
    pub provider_id: String,
    /// The reference that the send carried.
    pub reference: Option<String>,
    /// How far it came.
    pub status: NetworkStatus,
    /// When, by the network's clock.
    pub at: Timestamp,
    /// To whom the message was.
    pub recipient: Party,
    /// Why it failed.
    pub error: Option<StatusError>,
}

/// Why a message failed after the network had accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusError {
    /// Our word for it.
    pub code: RefusalCode,
    /// The network's number for it.
    pub provider_code: Option<i64>,
    /// For people, in English.
    pub message: String,
}

/// A template as the network has it.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateUpdate {
    /// The network's id of the template in this language.
    pub provider_id: String,
    /// Its name.
    pub name: String,
    /// Its language.
    pub language: String,
    /// Whether it can be sent. `None`: unchanged.
    pub status: Option<TemplateStatus>,
    /// What it is for. `None`: unchanged.
    pub category: Option<TemplateCategory>,
    /// Why it was refused.
    pub rejection_reason: Option<String>,
    /// What recipients think of it. `None`: unchanged.
    pub quality: Option<Quality>,
    /// The network's list of components. `None`: unchanged.
    pub components: Option<Value>,
    /// When the template became so, by the network's clock. `None` if it does not say.
    pub at: Option<Timestamp>,
}

/// A new rating of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualityUpdate {
    /// The number as the network shows it, in digits: callbacks about a number name it so, and not by its id.
    pub display_number: Option<String>,
    /// How the network rates the number. `None`: unchanged.
    pub quality: Option<Quality>,
    /// How many contacts may be written to first within 24 hours; `i64::MAX` where there is no limit. `None`: unchanged.
    pub messaging_limit: Option<i64>,
    /// When the number was rated, by the network's clock. `None` if it does not say.
    pub at: Option<Timestamp>,
}

/// A contact that moved to another number or user id. What both sides have in common identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityChange {
    /// As it was.
    pub old: Party,
    /// As it is from now on.
    pub new: Party,
    /// When, by the network's clock. `None` if it does not say.
    pub at: Option<Timestamp>,
}
