//! What callers send.

use crate::messages::Interactive;
use chatnet::MediaKind;
use model::{ContactId, FileId, MessageId};
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

/// A text to send.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "contact_id": 10, "text": "Your order is on its way." }))]
pub struct ChannelTextMessage {
    /// The id of the contact. Either this or `to` is required.
    #[serde(default)]
    pub(crate) contact_id: Option<ContactId>,
    /// The telephone number of the contact in international form.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 40)]
    pub(crate) to: Option<String>,
    /// The text.
    #[schema(min_length = 1, max_length = 4_096, pattern = r"\S")]
    pub(crate) text: String,
    /// Whether the network shows a preview of the first link.
    #[serde(default)]
    pub(crate) preview_url: bool,
    /// The id of the message of the same conversation to which this one replies.
    #[serde(default)]
    pub(crate) reply_to: Option<MessageId>,
}

/// A template to send.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "contact_id": 10, "name": "order_shipped", "language": "en", "params": { "1": "Ana", "2": "4711" },
}))]
pub struct ChannelTemplateMessage {
    /// The id of the contact. Either this or `to` is required.
    #[serde(default)]
    pub(crate) contact_id: Option<ContactId>,
    /// The telephone number of the contact in international form. A contact is created if none has it.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 40)]
    pub(crate) to: Option<String>,
    /// The name of the template.
    #[schema(min_length = 1, max_length = 512)]
    pub(crate) name: String,
    /// The language of the template.
    #[schema(min_length = 2, max_length = 10)]
    pub(crate) language: String,
    /// The namespace of the template. It need not be given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) namespace: Option<String>,
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
}

/// A file to send.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "contact_id": 10, "type": "document", "file_id": 1, "caption": "Our price list" }))]
pub struct ChannelMediaMessage {
    /// The id of the contact. Either this or `to` is required.
    #[serde(default)]
    pub(crate) contact_id: Option<ContactId>,
    /// The telephone number of the contact in international form.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 40)]
    pub(crate) to: Option<String>,
    /// What it is sent as.
    #[serde(rename = "type")]
    pub(crate) kind: MediaKind,
    /// The id of the file.
    pub(crate) file_id: FileId,
    /// The text below it. Audio and stickers have none.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1_024, pattern = r"\S")]
    pub(crate) caption: Option<String>,
    /// The id of the message of the same conversation to which this one replies.
    #[serde(default)]
    pub(crate) reply_to: Option<MessageId>,
}

/// A text with buttons or a list to send.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "contact_id": 10 }))]
pub struct ChannelInteractiveMessage {
    /// The id of the contact. Either this or `to` is required.
    #[serde(default)]
    pub(crate) contact_id: Option<ContactId>,
    /// The telephone number of the contact in international form.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 40)]
    pub(crate) to: Option<String>,
    /// What is sent.
    pub(crate) interactive: Interactive,
    /// The id of the message of the same conversation to which this one replies.
    #[serde(default)]
    pub(crate) reply_to: Option<MessageId>,
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

/// A text to send to a contact.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "text": "Your order is on its way." }))]
pub struct ContactTextMessage {
    /// The id of the channel. The contact's last one if not given.
    #[serde(default)]
    pub(crate) channel_id: Option<model::ChannelId>,
    /// The text.
    #[schema(min_length = 1, max_length = 4_096, pattern = r"\S")]
    pub(crate) text: String,
    /// Whether the network shows a preview of the first link.
    #[serde(default)]
    pub(crate) preview_url: bool,
    /// The id of the message of the same conversation to which this one replies.
    #[serde(default)]
    pub(crate) reply_to: Option<MessageId>,
}

/// A template to send to a contact.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "order_shipped", "language": "en", "namespace": "business-1", "params": { "1": "Ana", "2": "4711" },
}))]
pub struct ContactTemplateMessage {
    /// The id of the channel. The contact's last one if not given.
    #[serde(default)]
    pub(crate) channel_id: Option<model::ChannelId>,
    /// The name of the template.
    #[schema(min_length = 1, max_length = 512)]
    pub(crate) name: String,
    /// The language of the template.
    #[schema(min_length = 2, max_length = 10)]
    pub(crate) language: String,
    /// The namespace of the template.
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) namespace: String,
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
}

/// A message of a person of the team.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "text": "Hello, this is Bruno. How can I help?" }))]
pub struct OperatorMessage {
    /// The id of the channel. The contact's last one if not given.
    #[serde(default)]
    pub(crate) channel_id: Option<model::ChannelId>,
    /// The text. Either this or `quick_reply_id` is required.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 4_096, pattern = r"\S")]
    pub(crate) text: Option<String>,
    /// The id of a quick reply, which is filled for the contact. Its files follow as messages of their own.
    #[serde(default)]
    pub(crate) quick_reply_id: Option<model::QuickReplyId>,
    /// What the quick reply asks for, by label.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, String>)]
    pub(crate) answers: BTreeMap<String, String>,
    /// The id of the member of the team who writes.
    #[serde(default)]
    pub(crate) member_id: Option<model::MemberId>,
    /// The id of the message of the same conversation to which this one replies.
    #[serde(default)]
    pub(crate) reply_to: Option<MessageId>,
}
