//! Settings of nodes that talk to the contact.

use model::string_enum;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Settings of `send_message`: a message to the contact of the run.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowSendMessage, example = json!({ "text": "Your order is on its way." }))]
pub struct SendMessage {
    /// The channel. `null` uses the one that the contact wrote over last.
    #[serde(default)]
    pub channel_id: Option<i64>,
    /// The text.
    #[schema(min_length = 1, max_length = 4096)]
    #[serde(default)]
    pub text: Option<String>,
    /// Files to send.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub file_ids: Vec<i64>,
    /// Buttons to choose from.
    #[schema(max_items = 3)]
    #[serde(default)]
    pub buttons: Vec<FlowChoice>,
    /// What happens when the window for free messages is closed.
    #[serde(default)]
    pub if_window_closed: FlowClosedWindow,
    /// The template that is sent when the window is closed, with `if_window_closed: template`.
    #[serde(default)]
    pub template: Option<SendTemplate>,
}

string_enum! {
    /// What happens when the window for free messages is closed.
    #[derive(Default)]
    pub enum FlowClosedWindow {
        /// The node fails.
        #[default]
        Fail = "fail",
        /// A template is sent instead.
        Template = "template",
        /// A task for a person is created instead.
        Task = "task",
    }
}

/// A choice: a button, or a row of a list.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "yes", "title": "Yes, please" }))]
pub struct FlowChoice {
    /// The id, and the name of the port of `ask`.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,39}$")]
    pub id: String,
    /// The text that the contact sees.
    #[schema(min_length = 1, max_length = 72)]
    pub title: String,
}

/// Settings of `send_template`: a message template of the network.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowSendTemplate, example = json!({
    "name": "order_shipped", "language": "en", "namespace": "business-1", "params": ["1042"],
}))]
pub struct SendTemplate {
    /// The channel. `null` uses the one that the contact wrote over last.
    #[serde(default)]
    pub channel_id: Option<i64>,
    /// The name of the template.
    #[schema(min_length = 1, max_length = 512)]
    pub name: String,
    /// The language, such as `en`.
    #[schema(min_length = 2, max_length = 20)]
    pub language: String,
    /// The namespace of the template.
    #[schema(min_length = 1, max_length = 200)]
    pub namespace: String,
    /// The values of the variables in the text, in order.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub params: Vec<Value>,
    /// The values of the variables in the header, in order.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub header_params: Vec<Value>,
    /// The values of the buttons, by their places from 0.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub button_params: Map<String, Value>,
    /// The file above the text, if the template has one.
    #[serde(default)]
    pub file_id: Option<i64>,
}

string_enum! {
    /// The kind of answer that a question wants.
    #[derive(Default)]
    pub enum FlowExpectedAnswer {
        /// Any text.
        #[default]
        Text = "text",
        /// A number.
        Number = "number",
        /// An e-mail address.
        Email = "email",
        /// A telephone number.
        Phone = "phone",
        /// A date.
        Date = "date",
        /// One of the choices.
        Choice = "choice",
        /// A file.
        File = "file",
    }
}

/// Settings of `ask`: a question, whose answer is checked.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowAsk, example = json!({ "text": "Which size do you need?", "expects": "number", "save_to": "size" }))]
pub struct Ask {
    /// The channel. `null` uses the one that the contact wrote over last.
    #[serde(default)]
    pub channel_id: Option<i64>,
    /// The question.
    #[schema(min_length = 1, max_length = 4096)]
    pub text: String,
    /// The kind of answer.
    #[serde(default)]
    pub expects: FlowExpectedAnswer,
    /// The choices, each of which is a port too. More than three become a list.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub choices: Vec<FlowChoice>,
    /// The variable of the flow that gets the answer.
    #[serde(default)]
    pub save_to: Option<String>,
    /// How often the question is repeated after an answer that does not fit. Then the run continues at `invalid`.
    #[schema(minimum = 0, maximum = 10)]
    #[serde(default = "two")]
    pub retries: i64,
    /// The text with which the question is repeated.
    #[schema(min_length = 1, max_length = 4096)]
    #[serde(default)]
    pub invalid_text: Option<String>,
    /// How long the run waits for an answer, in seconds. Then it continues at `timeout`.
    #[schema(minimum = 1, maximum = 31_536_000)]
    #[serde(default = "a_day")]
    pub timeout_seconds: i64,
    /// What happens when the window for free messages is closed.
    #[serde(default)]
    pub if_window_closed: FlowClosedWindow,
    /// The template that asks when the window is closed, with `if_window_closed: template`.
    #[serde(default)]
    pub template: Option<SendTemplate>,
}

const fn two() -> i64 {
    2
}

pub(super) const fn a_day() -> i64 {
    86_400
}

/// Settings of `wait_for_reply`: the next messages of the contact.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowWaitForReply, example = json!({ "timeout_seconds": 3600 }))]
pub struct WaitForReply {
    /// How long the run waits, in seconds. Then it continues at `timeout`.
    #[schema(minimum = 1, maximum = 31_536_000)]
    #[serde(default = "a_day")]
    pub timeout_seconds: i64,
    /// Words of which one must be in the message.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub keywords: Vec<String>,
    /// A regular expression that the message must fit.
    #[schema(min_length = 1, max_length = 500)]
    #[serde(default)]
    pub pattern: Option<String>,
    /// How long the run waits for further messages after the first, in seconds.
    #[schema(minimum = 0, maximum = 60)]
    #[serde(default)]
    pub buffer_seconds: i64,
}

/// Settings of `handoff`: the conversation goes to people, or back to the agent.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowHandoff, example = json!({ "autopilot": false, "note": "Wants to return an order." }))]
pub struct Handoff {
    /// Whether the agent answers afterwards.
    #[serde(default)]
    pub autopilot: bool,
    /// The member of the team who is assigned.
    #[serde(default)]
    pub assignee_id: Option<i64>,
    /// A note for them.
    #[schema(min_length = 1, max_length = 2000)]
    #[serde(default)]
    pub note: Option<String>,
}

/// Settings of `respond`: the answer to the request that started the run and waits for it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowRespond, example = json!({ "status": 200, "body": { "accepted": true } }))]
pub struct Respond {
    /// The HTTP status.
    #[schema(minimum = 200, maximum = 599)]
    #[serde(default = "ok")]
    pub status: i64,
    /// Headers.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// The body, as JSON.
    #[serde(default)]
    pub body: Option<Value>,
}

const fn ok() -> i64 {
    200
}
