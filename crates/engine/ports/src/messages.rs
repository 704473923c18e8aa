//! Messages to contacts, for whoever sends them without a request.

use model::{
    AgentId, BroadcastId, ChannelId, ContactId, FileId, KeyId, MemberId, MessageId, ReminderId, Result,
    WorkspaceId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Read, Tx};
use utoipa::ToSchema;

/// A message template to send, with its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "order_shipped", "language": "en", "params": { "1": "Ana", "2": "4711" } }))]
pub struct TemplateToSend {
    /// The name of the template.
    #[schema(min_length = 1, max_length = 512)]
    pub name: String,
    /// The language of the template.
    #[schema(min_length = 2, max_length = 10)]
    pub language: String,
    /// The namespace of the template. It need not be given.
    #[schema(min_length = 1, max_length = 200)]
    #[serde(default)]
    pub namespace: Option<String>,
    /// The values of the variables in the text, by number.
    #[schema(value_type = BTreeMap<String, String>)]
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// The values of the variables in the header, by number.
    #[schema(value_type = BTreeMap<String, String>)]
    #[serde(default)]
    pub header_params: BTreeMap<String, String>,
    /// The values of the buttons, by their places from 0.
    #[schema(value_type = BTreeMap<String, String>)]
    #[serde(default)]
    pub button_params: BTreeMap<String, String>,
    /// The id of the file above the text, for a template that has one.
    #[serde(default)]
    pub media: Option<FileId>,
}

/// What is sent to a contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageContent {
    /// A text, which only the 24-hour window allows.
    Text(String),
    /// A template, which may be sent at any time.
    Template(TemplateToSend),
}

/// Who sends a message without a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentBy {
    /// The key on whose behalf it is sent.
    Key,
    /// An agent.
    Agent(AgentId),
    /// A broadcast.
    Broadcast(BroadcastId),
    /// A reminder.
    Reminder(ReminderId),
    /// A person of the team.
    Person(MemberId),
}

/// A message that is sent without a request.
#[derive(Debug, Clone)]
pub struct MessageToSend {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The key on whose behalf it is sent. It must still have `channels:send`.
    pub key: KeyId,
    /// Who sends it, as the conversation shows it.
    pub sender: SentBy,
    /// The contact.
    pub contact: ContactId,
    /// The channel; `None` for the one on which the contact was last spoken to.
    pub channel: Option<ChannelId>,
    /// What is sent.
    pub content: MessageContent,
    /// What names this message among all of the workspace: of several attempts with one name, one sends.
    pub once: String,
}

/// Sending to contacts. The group that keeps the channels implements it.
pub trait MessageSender: Send + Sync {
    /// Checks of a message what does not change by waiting: that there is a channel, and the template with these values and
    /// this file.
    ///
    /// # Errors
    /// `no_channel`, `not_found` with `param` = `channel_id`, and `validation_error`, `not_found`, `template_not_found` or
    /// `template_params_mismatch` with a `param` that is or begins with `template`.
    fn check(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contact: ContactId,
        channel: Option<ChannelId>,
        content: &MessageContent,
    ) -> Result<()>;

    /// Queues a message, once for its name, at the transaction's place in the chain of causes. It locks the contact.
    ///
    /// # Errors
    /// As those of `POST /contacts/{contactId}/send-message` and `POST /contacts/{contactId}/send-template`, such as
    /// `window_closed`; `missing_scope` where the key may not send any more.
    fn send(&self, tx: &mut Tx, message: &MessageToSend) -> Result<MessageId>;
}

/// Sending to contacts. A service that operations ask for.
#[derive(Clone)]
pub struct Messenger(pub Arc<dyn MessageSender>);
