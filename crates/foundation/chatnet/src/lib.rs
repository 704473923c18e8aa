//! Chat networks: the trait of a network, and the adapter of the supported one.
//!
//! This crate has no database. It parses callbacks without I/O and reduces the response to a send to one of three
//! outcomes. Its callers decide what to store and what to send again.

mod adapter;
mod cloud;
mod inbound;
mod interactive;
mod outbound;
mod parts;
pub mod template;

pub use adapter::{
    Account, BoxFuture, Capabilities, ChannelAdapter, Media, NetworkError, NewNetworkTemplate, NumberHealth,
};
pub use cloud::{Chatnet, SIGNATURE_HEADER, sign};
pub use inbound::{
    Echo, IdentityChange, InboundContent, InboundMedia, InboundMessage, Party, QualityUpdate, StatusError,
    StatusUpdate, TemplateUpdate, Update,
};
pub use interactive::{Interactive, MessageButton, MessageList, MessageListRow, MessageListSection};
pub use outbound::{
    MediaSource, OutboundContent, OutboundMessage, Recipient, Refusal, RefusalCode, SendOutcome,
    TemplateButtonParam, TemplateMessage,
};
pub use parts::{MessageForm, MessageOrder, MessageOrderItem, MessageProduct, MessageReferral};
pub use template::{
    ResolvedMessage, SentTemplate, TemplateBody, TemplateButton, TemplateButtonType, TemplateComponents,
    TemplateHeader, TemplateHeaderFormat,
};

use model::text_enum;

text_enum! {
    /// The kind of a media file.
    #[schema(as = ChannelMediaKind)]
    pub enum MediaKind {
        /// A picture.
        Image = "image",
        /// A sound or voice note.
        Audio = "audio",
        /// A video.
        Video = "video",
        /// Any other file.
        Document = "document",
        /// A sticker.
        Sticker = "sticker",
    }
}

text_enum! {
    /// How far the network says a message has come.
    #[schema(as = NetworkMessageStatus)]
    pub enum NetworkStatus {
        /// The network accepted the message.
        Sent = "sent",
        /// The message reached the device of the recipient.
        Delivered = "delivered",
        /// The recipient read the message.
        Read = "read",
        /// The message did not reach the recipient.
        Failed = "failed",
    }
}

text_enum! {
    /// Whether the network allows a template to be sent.
    #[schema(as = MessageTemplateStatus)]
    pub enum TemplateStatus {
        /// Under review by the network.
        Pending = "pending",
        /// The template can be sent.
        Approved = "approved",
        /// The network refused the template; `rejection_reason` says why.
        Rejected = "rejected",
        /// The network paused the template because recipients complained.
        Paused = "paused",
        /// The network disabled the template permanently.
        Disabled = "disabled",
    }
}

text_enum! {
    /// What a template is for, which decides its price and whom it may be sent to.
    #[schema(as = MessageTemplateCategory)]
    pub enum TemplateCategory {
        /// Offers and news. Contacts that opted out do not receive it.
        Marketing = "marketing",
        /// About something that the contact did, such as an order.
        Utility = "utility",
        /// A code to log in with.
        Authentication = "authentication",
    }
}

text_enum! {
    /// How the network rates a number, by what recipients report.
    #[schema(as = ChannelQuality)]
    pub enum Quality {
        /// Few complaints.
        High = "high",
        /// Some complaints.
        Medium = "medium",
        /// Many complaints: the network may soon restrict the number.
        Low = "low",
        /// The network has not rated the number.
        Unknown = "unknown",
    }
}
