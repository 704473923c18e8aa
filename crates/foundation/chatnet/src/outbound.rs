//! What is sent, and what the network says to it.

use crate::{Interactive, MediaKind};
use model::text_enum;
use std::time::Duration;

/// A message to send.
#[derive(Debug, Clone, PartialEq)]
pub struct OutboundMessage {
    /// To whom.
    pub to: Recipient,
    /// The network's id of the message to which it replies.
    pub reply_to: Option<String>,
    /// What is said.
    pub content: OutboundContent,
}

/// To whom a message goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipient {
    /// A telephone number with `+` and country code.
    Phone(String),
    /// The network's id of a person without a known number.
    UserId(String),
}

/// What is said.
#[derive(Debug, Clone, PartialEq)]
pub enum OutboundContent {
    /// Text.
    Text {
        /// 1 to 4,096 characters.
        body: String,
        /// Whether the network shows a preview of the first link.
        preview_url: bool,
    },
    /// A file.
    Media {
        /// What it is.
        kind: MediaKind,
        /// Where it is.
        source: MediaSource,
        /// The text below it. Sounds and stickers have none.
        caption: Option<String>,
        /// Of a document.
        file_name: Option<String>,
    },
    /// Buttons or a list.
    Interactive(Interactive),
    /// An approved template.
    Template(TemplateMessage),
    /// A reaction; without `emoji` it is taken back.
    Reaction {
        /// The network's id of the message to which it belongs.
        message: String,
        /// The emoji.
        emoji: Option<String>,
    },
}

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaSource {
    /// Uploaded before.
    Id(String),
    /// Read by the network from this address.
    Link(String),
}

/// A template with what fills it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateMessage {
    /// Its name.
    pub name: String,
    /// Its language.
    pub language: String,
    /// Of a header with a text variable.
    pub header_params: Vec<String>,
    /// Of a header with a file: what it is, where, and the name of a document.
    pub header_media: Option<(MediaKind, MediaSource, Option<String>)>,
    /// Of the body, in order. Each with its name where the template's variables have names.
    pub body_params: Vec<(Option<String>, String)>,
    /// Of buttons.
    pub button_params: Vec<TemplateButtonParam>,
}

/// What fills a button of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateButtonParam {
    /// The end of a link, percent-encoded.
    Url {
        /// The button's place, from 0.
        index: u8,
        /// The text.
        value: String,
    },
    /// What is returned when the button is pressed.
    QuickReply {
        /// The button's place, from 0.
        index: u8,
        /// The text.
        payload: String,
    },
    /// A code to copy.
    CopyCode {
        /// The button's place, from 0.
        index: u8,
        /// The code.
        code: String,
    },
}

/// What became of a send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// The network has the message.
    Accepted {
        /// Its id of the message.
        provider_id: String,
    },
    /// The network does not have the message.
    Refused(Refusal),
    /// It is not known whether the network has the message: the connection broke or was slow after the request may have
    /// been sent. Sending again could send it twice.
    Unknown {
        /// For people, in English.
        reason: String,
    },
}

/// Why the network does not take a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Our word for it.
    pub code: RefusalCode,
    /// The network's number for it.
    pub provider_code: Option<i64>,
    /// For people, in English. Contains no credentials.
    pub message: String,
    /// Whether the same message may be accepted later.
    pub is_retryable: bool,
    /// How long the network asks to wait.
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
