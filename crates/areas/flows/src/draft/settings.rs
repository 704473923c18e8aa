//! The settings of a flow: what a version freezes beside the graph.

use flow_graphs::Graph;
use model::string_enum;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// The settings of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = FlowSettings, example = json!({
    "description": "Answers questions about prices.", "per_contact": "one", "run_timeout_days": 30,
    "when_human_active": "hold", "on_publish": "pin", "mcp_tool": false,
}))]
pub struct Settings {
    /// What the flow does. Agents and MCP clients read it.
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// How many runs are executed at a time.
    pub concurrency: FlowConcurrency,
    /// How many runs a contact has at a time.
    pub per_contact: FlowPerContact,
    /// After how many days a run that has not ended expires.
    #[schema(minimum = 1, maximum = 365)]
    pub run_timeout_days: i64,
    /// What publishing does with runs that are under way.
    pub on_publish: FlowOnPublish,
    /// Events that cancel a run.
    #[schema(max_items = 10)]
    pub cancel_on: Vec<FlowCancelOn>,
    /// The flow that is started when a run fails.
    pub error_flow_id: Option<i64>,
    /// For how many days runs that have ended are kept.
    #[schema(minimum = 1, maximum = 90)]
    pub retention_days: i64,
    /// What messages to the contact and questions do while a person answers the contact.
    pub when_human_active: FlowWhenHumanActive,
    /// Whether MCP clients and agents can call the flow as a tool.
    pub mcp_tool: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            description: None,
            concurrency: FlowConcurrency::default(),
            per_contact: FlowPerContact::One,
            run_timeout_days: 30,
            on_publish: FlowOnPublish::Pin,
            cancel_on: Vec::new(),
            error_flow_id: None,
            retention_days: 30,
            when_human_active: FlowWhenHumanActive::Hold,
            mcp_tool: false,
        }
    }
}

/// How many runs of a flow are executed at a time. Runs that wait do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "limit": 50, "on_limit": "queue" }))]
pub struct FlowConcurrency {
    /// The most runs.
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: i64,
    /// What happens to a further run.
    pub on_limit: FlowOnLimit,
}

impl Default for FlowConcurrency {
    fn default() -> Self {
        Self { limit: 50, on_limit: FlowOnLimit::Queue }
    }
}

string_enum! {
    /// What happens to a run beyond the limit.
    pub enum FlowOnLimit {
        /// It waits for its turn.
        Queue = "queue",
        /// It is cancelled.
        Skip = "skip",
        /// The oldest run that has not ended is cancelled.
        CancelOldest = "cancel_oldest",
    }
}

string_enum! {
    /// How many runs of a flow a contact has at a time.
    pub enum FlowPerContact {
        /// One: a further start is refused with 409.
        One = "one",
        /// Any number.
        Many = "many",
        /// One: a further start cancels the one before.
        Restart = "restart",
    }
}

string_enum! {
    /// What publishing does with runs that are under way.
    pub enum FlowOnPublish {
        /// They end on their version.
        Pin = "pin",
        /// Those that wait go on with the new version, if it has the nodes at which they are.
        Migrate = "migrate",
    }
}

string_enum! {
    /// What a flow does while a person answers its contact.
    pub enum FlowWhenHumanActive {
        /// It continues.
        Continue = "continue",
        /// It waits until the conversation is handed back.
        Hold = "hold",
        /// It is cancelled.
        Cancel = "cancel",
    }
}

/// An event that cancels a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "type": "order.paid", "match": { "order_id": "{{ $input.order_id }}" } }))]
pub struct FlowCancelOn {
    /// The type of the event.
    #[serde(rename = "type")]
    #[schema(min_length = 1, max_length = 100)]
    pub kind: String,
    /// What the event's data must equal, by its path. Not given, it is an event of the run's contact.
    #[schema(value_type = Option<Object>)]
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matches: Option<Map<String, Value>>,
}

/// Returns the JSON Schema of a graph's input, as its trigger states it.
pub(crate) fn input_schema(graph: &Graph) -> Value {
    let trigger = graph.nodes.iter().find(|node| node.kind == flow_graphs::NodeType::Trigger);
    let stated = trigger.and_then(|node| node.config.get("input_schema")).filter(|schema| schema.is_object());
    stated.cloned().unwrap_or_else(|| json!({}))
}
