//! Messages to send, and the outcome of a send.

use crate::{Interactive, MediaKind};
use model::text_enum;
use std::time::Duration;

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboundMessage {
    /// The recipient.
    pub to: Recipient,
    /// The network's id of the message that this is a reply to.
    pub reply_to: Option<String>,
    /// The content.
    pub content: OutboundContent,
}

/// The address of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipient {
    /// A telephone number with `+` and country code.
    Phone(String),
    /// The network's id of a person without a known number.
    UserId(String),
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum OutboundContent {
    /// Text.
    Text {
        /// The text, 1 to 4,096 characters.
        body: String,
        /// Whether the network shows a preview of the first link.
        preview_url: bool,
    },
    /// A file.
    Media {
        /// The kind.
        kind: MediaKind,
        /// The source of the content.
        source: MediaSource,
        /// The caption. Audio files and stickers have none.
        caption: Option<String>,
        /// The file name of a document.
        file_name: Option<String>,
    },
    /// Buttons or a list.
    Interactive(Interactive),
    /// An approved template.
    Template(TemplateMessage),
    /// A reaction. Without `emoji` the reaction is removed.
    Reaction {
        /// The network's id of the message reacted to.
        message: String,
        /// The emoji.
        emoji: Option<String>,
    },
}

/// The source of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// The network's id of an uploaded file.
    Id(String),
    /// A URL from which the network downloads the file.
    Link(String),
}

/// A template with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateMessage {
    /// The name.
    pub name: String,
    /// The language.
    pub language: String,
    /// The values of a text header.
    pub header_params: Vec<String>,
    /// The file of a header: its kind, its source, and the name of a document.
    pub header_media: Option<(MediaKind, MediaSource, Option<String>)>,
    /// The values of the body, in order. Each has a name if the template's variables have names.
    pub body_params: Vec<(Option<String>, String)>,
    /// The values of the buttons.
    pub button_params: Vec<TemplateButtonParam>,
}

/// The value of a template's button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateButtonParam {
    /// The end of a URL, percent-encoded.
    Url {
        /// The button's position, from 0.
        index: u8,
        /// The value.
        value: String,
    },
    /// The payload returned when the contact presses the button.
    QuickReply {
        /// The button's position, from 0.
        index: u8,
        /// The payload.
        payload: String,
    },
    /// A code to copy.
    CopyCode {
        /// The button's position, from 0.
        index: u8,
        /// The code.
        code: String,
    },
}

/// The outcome of a send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// The network accepted the message.
    Accepted {
        /// The network's id of the message.
        provider_id: String,
    },
    /// The network refused the message.
    Refused(Refusal),
    /// It is not known whether the network has the message: the connection broke or timed out after the request may
    /// have been sent. Sending it again could deliver it twice.
    Unknown {
        /// The reason, for people, in English.
        reason: String,
    },
}

/// The reason why the network refused a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Our error code.
    pub code: RefusalCode,
    /// The network's error number.
    pub provider_code: Option<i64>,
    /// A message for people, in English. Contains no credentials.
    pub message: String,
    /// Whether the same message may be accepted later.
    pub is_retryable: bool,
    /// The wait that the network asks for.
    pub retry_after: Option<Duration>,
}

text_enum! {
    /// Why the network refused or lost a message.
    #[schema(as = MessageErrorCode)]
    pub enum RefusalCode {
        /// More than 24 hours have passed since the contact's last message.
        WindowClosed = "window_closed",
        /// The network has no such template in this language.
        TemplateNotFound = "template_not_found",
        /// The template is under review, refused, paused or disabled.
        TemplateNotApproved = "template_not_approved",
        /// The values do not fit the template.
        TemplateParamsMismatch = "template_params_mismatch",
        /// The recipient is not on the network or cannot be reached.
        Undeliverable = "undeliverable",
        /// The recipient wants no such messages.
        RecipientOptedOut = "recipient_opted_out",
        /// The number sends too many messages per second.
        RateLimited = "rate_limited",
        /// Too many messages to the same recipient.
        PairRateLimited = "pair_rate_limited",
        /// The number has written to as many contacts as the network allows in 24 hours.
        MessagingLimit = "messaging_limit",
        /// The network restricted or locked the account.
        AccountRestricted = "account_restricted",
        /// The network no longer accepts the credentials.
        CredentialsInvalid = "credentials_invalid",
        /// The file is too large, of a wrong type or cannot be read.
        MediaInvalid = "media_invalid",
        /// The network does not accept the message as it is.
        InvalidMessage = "invalid_message",
        /// The network failed, or did not say why.
        NetworkError = "network_error",
        /// The message waited too long to be sent.
        Expired = "expired",
        /// The contact was blocked before the message was sent.
        ContactBlocked = "contact_blocked",
        /// The channel is not connected.
        ChannelDisconnected = "channel_disconnected",
    }
}
