//! Settings of triggers, and data as their occurrences have it.

use model::string_enum;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Settings of a trigger that has none.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationTriggerWithoutSettings, example = json!({}))]
pub struct Nothing {}

string_enum! {
    /// How a word is found in a text.
    #[derive(Default)]
    #[schema(as = AutomationKeywordMatch)]
    pub enum KeywordMatch {
        /// The whole text is the word.
        #[default]
        Exact = "exact",
        /// The word is in the text, as a word of its own.
        Contains = "contains",
        /// The text begins with the word.
        Starts = "starts",
        /// A part of the text fits a regular expression.
        Regex = "regex",
    }
}

/// Settings of `keyword`. Letters are compared regardless of case and accents. The longest word that fits counts, then
/// `policy.priority`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationKeyword, example = json!({ "words": ["price", "how much"], "match": "contains" }))]
pub struct Keyword {
    /// The words, or regular expressions.
    #[schema(min_items = 1, max_items = 100)]
    pub words: Vec<String>,
    /// How they are found.
    #[serde(default, rename = "match")]
    pub how: KeywordMatch,
    /// Whether it ends the runs of flows that wait for a reply of the contact, and is asked before them.
    #[serde(default)]
    pub interrupt: bool,
    /// Only messages over this channel.
    #[serde(default)]
    pub channel_id: Option<i64>,
}

string_enum! {
    /// When a message arrives, by the opening hours of the business.
    #[derive(Default)]
    #[schema(as = AutomationBusinessHours)]
    pub enum BusinessHours {
        /// At any time.
        #[default]
        Any = "any",
        /// While the business is open.
        Open = "open",
        /// While it is closed.
        Closed = "closed",
    }
}

/// Settings of `message.received`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationMessageReceived, example = json!({ "business_hours": "closed" }))]
pub struct MessageReceived {
    /// Only messages over this channel.
    #[serde(default)]
    pub channel_id: Option<i64>,
    /// Only the first messages of a contact.
    #[serde(default)]
    pub first_only: bool,
    /// Only messages that arrive while the business is open, or closed. A business without opening hours is open.
    #[serde(default)]
    pub business_hours: BusinessHours,
}

/// Settings of `contact.updated`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationContactUpdated, example = json!({ "fields": ["$stage"], "to": "won" }))]
pub struct Fields {
    /// Only changes of one of these fields.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub fields: Vec<String>,
    /// Only if the field had this value before. It needs exactly one field.
    #[serde(default)]
    pub from: Option<Value>,
    /// Only if the field has this value now. It needs exactly one field.
    #[serde(default)]
    pub to: Option<Value>,
}

/// Settings of `tag.added` and `tag.removed`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationTags, example = json!({ "tags": ["vip"] }))]
pub struct Tags {
    /// Only these tags, regardless of case. Any tag if empty.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Settings of `webhook.received`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationWebhookReceived, example = json!({ "event_type": "order.paid" }))]
pub struct Webhook {
    /// Only requests to this inbound webhook, such as `wh_…`.
    #[schema(max_length = 100)]
    #[serde(default)]
    pub inbound_webhook_id: Option<String>,
    /// Only requests whose mapping gives this event type.
    #[schema(max_length = 200)]
    #[serde(default)]
    pub event_type: Option<String>,
}

/// Settings of `item.created` and `item.deleted`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationItems, example = json!({ "collection_id": 1 }))]
pub struct Items {
    /// The collection.
    pub collection_id: i64,
}

/// Settings of `item.updated`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationItemUpdated, example = json!({ "collection_id": 1, "fields": ["status"], "to": "paid" }))]
pub struct ItemFields {
    /// The collection.
    pub collection_id: i64,
    /// Only changes of one of these fields.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub fields: Vec<String>,
    /// Only if the field had this value before. It needs exactly one field.
    #[serde(default)]
    pub from: Option<Value>,
    /// Only if the field has this value now. It needs exactly one field.
    #[serde(default)]
    pub to: Option<Value>,
}

string_enum! {
    /// Who answers a contact.
    #[schema(as = AutomationHandler)]
    pub enum Handler {
        /// The agent.
        Agent = "agent",
        /// A person.
        Human = "human",
    }
}

/// Settings of `handoff`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationHandoff, example = json!({ "to": "human" }))]
pub struct Handoff {
    /// Only if this side answers from now on.
    #[serde(default)]
    pub to: Option<Handler>,
}

/// Settings of `run.completed`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationRunCompleted, example = json!({ "agent_id": 1 }))]
pub struct Run {
    /// Only runs of this agent.
    #[serde(default)]
    pub agent_id: Option<i64>,
}

/// Settings of `custom`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationCustomEvent, example = json!({ "name": "custom.order_checked" }))]
pub struct Custom {
    /// The type of the event.
    #[schema(pattern = r"^custom\.[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$", max_length = 100)]
    pub name: String,
}

/// Settings of `manual`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationManual, example = json!({ "input_schema": { "type": "object" } }))]
pub struct Manual {
    /// A JSON Schema of the data.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub input_schema: Option<Value>,
}

pub(super) fn message_sample() -> Value {
    json!({
        "text": "What is the price?", "messages": [{ "id": 1, "text": "What is the price?", "reply_id": null }],
        "keyword": "price", "channel_id": 1, "conversation_id": 1, "contact_id": 1, "is_first": true,
    })
}

fn contact() -> Value {
    json!({
        "id": 1, "name": "Ana Souza", "data": { "$name": "Ana Souza", "$stage": "won" }, "tags": ["vip"],
        "status": "active", "opted_out": false,
    })
}

pub(super) fn contact_sample() -> Value {
    json!({
        "contact_id": 1, "app_url": null, "contact": contact(),
        "changed": { "$stage": { "old": "qualified", "new": "won" } },
    })
}

pub(super) fn tag_sample() -> Value {
    json!({
        "contact_id": 1, "app_url": null, "contact": contact(), "tags": ["vip"],
        "changed": { "$tags": { "old": [], "new": ["vip"] } },
    })
}

pub(super) fn webhook_sample() -> Value {
    json!({
        "inbound_webhook_id": "wh_01m7w4n5e0k3p8r2v6x9b1d4f7", "name": "Shop", "event_type": "order.paid",
        "vars": { "order": "4711" }, "contact": null, "body": { "order": { "id": "4711" } }, "body_truncated": false,
    })
}

pub(super) fn item_sample() -> Value {
    json!({
        "item": { "id": 1, "collection_id": 1, "title": "Wooden train", "data": { "status": "paid" }, "version": 2 },
        "changed": { "status": { "old": "open", "new": "paid" } },
    })
}

pub(super) fn task_sample() -> Value {
    json!({
        "task_id": 1, "task": { "id": 1, "title": "Call Ana", "status": "done", "contact_id": 1 },
        "changed": { "status": { "old": "open", "new": "done" } },
    })
}

pub(super) fn handoff_sample() -> Value {
    json!({
        "contact_id": 1, "app_url": null, "from": "agent", "to": "human", "reason": "api", "epoch": 1,
        "assignee": null, "summary": null,
    })
}

pub(super) fn run_sample() -> Value {
    json!({
        "run_id": "run_01m7w4n5e0k3p8r2v6x9b1d4f7", "status": "completed", "agent_id": 1, "conversation_id": "conv-1",
        "energy": 12, "metadata": {},
    })
}
