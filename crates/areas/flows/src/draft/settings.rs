//! The settings of a flow: what a version freezes beside the graph.

use flow_graphs::Graph;
use model::{Patch, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// The settings of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = FlowSettings, example = json!({
    "description": "Answers questions about prices.", "per_contact": "one", "run_timeout_days": 30, "retention_days": 30,
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

/// A change of the settings of a flow. Members that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowSettingsPatch, example = json!({ "description": "Answers questions about prices.", "per_contact": "one" }))]
pub struct SettingsPatch {
    /// What the flow does. Agents and MCP clients read it. `null` removes it.
    #[schema(value_type = Option<String>, max_length = 1000)]
    #[serde(default)]
    description: Patch<String>,
    /// How many runs are executed at a time.
    #[serde(default)]
    concurrency: Option<ConcurrencyPatch>,
    /// How many runs a contact has at a time.
    #[serde(default)]
    per_contact: Option<FlowPerContact>,
    /// After how many days a run that has not ended expires.
    #[schema(minimum = 1, maximum = 365)]
    #[serde(default)]
    run_timeout_days: Option<i64>,
    /// What publishing does with runs that are under way.
    #[serde(default)]
    on_publish: Option<FlowOnPublish>,
    /// Events that cancel a run. They replace those that are stored.
    #[schema(max_items = 10)]
    #[serde(default)]
    cancel_on: Option<Vec<FlowCancelOn>>,
    /// The flow that is started when a run fails. `null` removes it.
    #[schema(value_type = Option<i64>)]
    #[serde(default)]
    error_flow_id: Patch<i64>,
    /// For how many days runs that have ended are kept.
    #[schema(minimum = 1, maximum = 90)]
    #[serde(default)]
    retention_days: Option<i64>,
    /// What messages to the contact and questions do while a person answers the contact.
    #[serde(default)]
    when_human_active: Option<FlowWhenHumanActive>,
    /// Whether MCP clients and agents can call the flow as a tool.
    #[serde(default)]
    mcp_tool: Option<bool>,
}

/// A change of how many runs of a flow are executed at a time.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowConcurrencyPatch, example = json!({ "limit": 10 }))]
pub struct ConcurrencyPatch {
    /// The most runs.
    #[schema(minimum = 1, maximum = 1000)]
    #[serde(default)]
    limit: Option<i64>,
    /// What happens to a further run.
    #[serde(default)]
    on_limit: Option<FlowOnLimit>,
}

impl SettingsPatch {
    /// The settings after the change.
    pub(super) fn applied_to(self, mut settings: Settings) -> Settings {
        self.description.apply(&mut settings.description);
        self.error_flow_id.apply(&mut settings.error_flow_id);
        if let Some(ConcurrencyPatch { limit, on_limit }) = self.concurrency {
            set(&mut settings.concurrency.limit, limit);
            set(&mut settings.concurrency.on_limit, on_limit);
        }
        set(&mut settings.per_contact, self.per_contact);
        set(&mut settings.run_timeout_days, self.run_timeout_days);
        set(&mut settings.on_publish, self.on_publish);
        set(&mut settings.cancel_on, self.cancel_on);
        set(&mut settings.retention_days, self.retention_days);
        set(&mut settings.when_human_active, self.when_human_active);
        set(&mut settings.mcp_tool, self.mcp_tool);
        settings
    }
}

pub(super) fn set<T>(stored: &mut T, sent: Option<T>) {
    if let Some(sent) = sent {
        *stored = sent;
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
#[schema(example = json!({ "type": "custom.order_paid", "match": { "order_id": "{{ $input.order_id }}" } }))]
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
