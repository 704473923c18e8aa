//! What callers send. Fields that several bodies have are written once, in `body`.

use super::content::FilledTemplate;
use super::recipient::To;
use super::retry::Attempt;
use super::text_or_reply::{MessageFile, TextOrReply};
use chatnet::{Interactive, MediaKind, SentTemplate};
use model::{ChannelId, ContactId, FileId, MemberId, MessageId, QuickReplyId, text_enum};
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Whether a send is only checked.
#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
pub struct DryRun {
    /// Whether the message is only checked and shown, without sending it.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

text_enum! {
    /// What happens if the network does not answer.
    #[derive(Default)]
    pub enum SendDelivery {
        /// The message becomes `unknown`, and is not sent again by itself.
        #[default]
        AtMostOnce = "at_most_once",
        /// The message is sent again, so the contact may get it twice.
        AtLeastOnce = "at_least_once",
    }
}

/// Declares a body with its own fields and those that it shares with others, in this order.
macro_rules! body {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* } with $($shared:ident)+) => {
        body!(@ [$(#[$meta])*] $name [$($own)*] $($shared)+);
    };
    (@ [$($meta:tt)*] $name:ident [$($fields:tt)*]) => {
        #[derive(Debug, Clone, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        $($meta)*
        pub struct $name { $($fields)* }
    };
    (@ [$($meta:tt)*] $name:ident [$($fields:tt)*] to $($rest:ident)*) => {
        body!(@ [$($meta)*] $name [
            $($fields)*
            /// The id of the contact. Either this or `to` is required.
            #[serde(default)]
            pub(crate) contact_id: Option<ContactId>,
            /// The telephone number of the contact in international form. If none has it, a template creates a contact.
            #[serde(default)]
            #[schema(min_length = 1, max_length = 40)]
            pub(crate) to: Option<String>,
        ] $($rest)*);

        impl $name {
            /// To whom it is sent.
            pub(super) fn to(&self) -> To<'_> {
                To { contact_id: self.contact_id, phone: self.to.as_deref() }
            }
        }
    };
    (@ [$($meta:tt)*] $name:ident [$($fields:tt)*] channel $($rest:ident)*) => {
        body!(@ [$($meta)*] $name [
            $($fields)*
            /// The id of the channel. The contact's last one if not given.
            #[serde(default)]
            pub(crate) channel_id: Option<ChannelId>,
        ] $($rest)*);
    };
    (@ [$($meta:tt)*] $name:ident [$($fields:tt)*] template $($rest:ident)*) => {
        body!(@ [$($meta)*] $name [
            $($fields)*
            /// The name of the template.
            #[schema(min_length = 1, max_length = 512)]
            pub(crate) name: String,
            /// The language of the template.
            #[schema(min_length = 2, max_length = 10)]
            pub(crate) language: String,
            /// The values of the variables in the text, by number.
            #[serde(default)]
            #[schema(value_type = BTreeMap<String, String>)]
            pub(crate) params: BTreeMap<String, String>,
            /// The values of the variables in the header, by number.
            #[serde(default)]
            #[schema(value_type = BTreeMap<String, String>)]
            pub(crate) header_params: BTreeMap<String, String>,
            /// The values of the buttons, by their places from 0.
            #[serde(default)]
            #[schema(value_type = BTreeMap<String, String>)]
            pub(crate) button_params: BTreeMap<String, String>,
            /// The id of the file above the text, if the template has one.
            #[serde(default)]
            pub(crate) media: Option<FileId>,
        ] $($rest)*);

        impl $name {
            /// The template with its values.
            pub(super) fn filled(self, namespace: Option<String>) -> FilledTemplate {
                let template = SentTemplate {
                    name: self.name,
                    language: self.language,
                    namespace: namespace.clone().unwrap_or_default(),
                    params: self.params,
                    header_params: self.header_params,
                    button_params: self.button_params,
                };
                FilledTemplate { template, media: self.media, namespace }
            }
        }
    };
    (@ [$($meta:tt)*] $name:ident [$($fields:tt)*] text_or_reply $($rest:ident)*) => {
        body!(@ [$($meta)*] $name [
            $($fields)*
            /// The text. This or `quick_reply_id` is required, unless the body has something else to send.
            #[serde(default)]
            #[schema(min_length = 1, max_length = 4_096, pattern = r"\S")]
            pub(crate) text: Option<String>,
            /// The id of a quick reply, which is filled for the contact. Its files follow as messages of their own.
            #[serde(default)]
            pub(crate) quick_reply_id: Option<QuickReplyId>,
            /// What the quick reply asks for, by label.
            #[serde(default)]
            #[schema(value_type = BTreeMap<String, String>)]
            pub(crate) answers: BTreeMap<String, String>,
        ] $($rest)*);

        impl $name {
            /// The text or the quick reply.
            pub(super) fn text_or_reply(&self) -> TextOrReply<'_> {
                TextOrReply {
                    text: self.text.as_deref(),
                    quick_reply: self.quick_reply_id,
                    answers: &self.answers,
                    interactive: None,
                    attachment: None,
                    files: &[],
                    reply_to: self.reply_to,
                }
            }
        }
    };
    (@ [$($meta:tt)*] $name:ident [$($fields:tt)*] reply $($rest:ident)*) => {
        body!(@ [$($meta)*] $name [
            $($fields)*
            /// The id of the message of the same conversation to which this one replies.
            #[serde(default)]
            pub(crate) reply_to: Option<MessageId>,
        ] $($rest)*);
    };
    (@ [$($meta:tt)*] $name:ident [$($fields:tt)*] attempt $($rest:ident)*) => {
        body!(@ [$($meta)*] $name [
            $($fields)*
            /// The id of a message of the same conversation with the same content that is `failed` or `unknown`. It is sent
            /// again, instead of a new message.
            #[serde(default)]
            pub(crate) retry_of: Option<MessageId>,
            /// What happens if the network does not answer.
            #[serde(default)]
            pub(crate) delivery: SendDelivery,
        ] $($rest)*);

        impl $name {
            /// Whether it is sent again, and how often.
            pub(super) fn attempt(&self) -> Attempt {
                let at_least_once = self.delivery == SendDelivery::AtLeastOnce;
                Attempt { retry_of: self.retry_of, at_least_once }
            }
        }
    };
}

body! {
    /// A text to send.
    #[schema(example = json!({ "contact_id": 10, "text": "Your order is on its way." }))]
    pub struct ChannelTextMessage {
        /// The text.
        #[schema(min_length = 1, max_length = 4_096, pattern = r"\S")]
        pub(crate) text: String,
        /// Whether the network shows a preview of the first link.
        #[serde(default)]
        pub(crate) preview_url: bool,
    }
    with to reply attempt
}

body! {
    /// A template to send.
    #[schema(example = json!({
        "contact_id": 10, "name": "order_shipped", "language": "en", "params": { "1": "Ana", "2": "4711" },
    }))]
    pub struct ChannelTemplateMessage {
        /// The namespace of the template. It need not be given.
        #[serde(default)]
        #[schema(min_length = 1, max_length = 200)]
        pub(crate) namespace: Option<String>,
    }
    with to template attempt
}

body! {
    /// A file to send.
    #[schema(example = json!({ "contact_id": 10, "type": "document", "file_id": 1, "caption": "Our price list" }))]
    pub struct ChannelMediaMessage {
        /// What it is sent as.
        #[serde(rename = "type")]
        pub(crate) kind: MediaKind,
        /// The id of the file.
        pub(crate) file_id: FileId,
        /// The text below it. Audio and stickers have none.
        #[serde(default)]
        #[schema(min_length = 1, max_length = 1_024, pattern = r"\S")]
        pub(crate) caption: Option<String>,
    }
    with to reply attempt
}

body! {
    /// A text with buttons or a list to send.
    #[schema(example = json!({ "contact_id": 10 }))]
    pub struct ChannelInteractiveMessage {
        /// What is sent.
        pub(crate) interactive: Interactive,
    }
    with to reply attempt
}

/// A reaction to send.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "message_id": 1, "emoji": "👍" }))]
pub struct ChannelReaction {
    /// The id of the message.
    pub(crate) message_id: MessageId,
    /// The emoji. `null` takes the reaction back.
    #[schema(min_length = 1, max_length = 40)]
    pub(crate) emoji: Option<String>,
}

/// A message to mark as read.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "message_id": 1 }))]
pub struct ReadMark {
    /// The id of a message that the contact wrote. Earlier ones are marked as read too.
    pub(crate) message_id: MessageId,
    /// Whether the contact sees that an answer is being written.
    #[serde(default)]
    pub(crate) typing: bool,
}

body! {
    /// A message to send to a contact.
    #[schema(example = json!({ "text": "Your order is on its way." }))]
    pub struct ContactTextMessage {
        /// A text with buttons or a list, instead of `text`.
        #[serde(default)]
        pub(crate) interactive: Option<Interactive>,
        /// The ids of files, which follow as messages of their own.
        #[serde(default)]
        #[schema(max_items = 10)]
        pub(crate) file_ids: Vec<FileId>,
        /// Whether the network shows a preview of the first link of `text`.
        #[serde(default)]
        pub(crate) preview_url: bool,
    }
    with channel text_or_reply reply attempt
}

body! {
    /// A template to send to a contact.
    #[schema(example = json!({
        "name": "order_shipped", "language": "en", "namespace": "business-1", "params": { "1": "Ana", "2": "4711" },
    }))]
    pub struct ContactTemplateMessage {
        /// The namespace of the template.
        #[schema(min_length = 1, max_length = 200)]
        pub(crate) namespace: String,
    }
    with channel template attempt
}

body! {
    /// A message of a person of the team.
    #[schema(example = json!({ "text": "Hello, this is Bruno. How can I help?" }))]
    pub struct OperatorMessage {
        /// The id of the member of the team who writes.
        #[serde(default)]
        pub(crate) member_id: Option<MemberId>,
        /// A file, instead of `text`.
        #[serde(default)]
        pub(crate) attachment: Option<MessageFile>,
    }
    with channel text_or_reply reply
}
