//! What a flow consists of: nodes, edges and variables.

use crate::nodes::contract::NodeConfig;
use crate::nodes::{ERROR, NEXT, NodeType, compiled, schema};
use input::{field_errors, read_json};
use model::{Error, FieldError, Result, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The nodes, edges and variables of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = FlowGraph)]
#[schema(example = json!({
    "nodes": [
        { "id": "start", "type": "trigger" },
        { "id": "greet", "type": "send_message", "config": { "text": "Hello {{ $contact.$name | default: \"there\" }}!" } },
    ],
    "edges": [{ "from": "start", "to": "greet" }],
}))]
pub struct Graph {
    /// The nodes, one of which is the `trigger`.
    #[schema(max_items = 500)]
    pub nodes: Vec<Node>,
    /// The edges between them.
    #[schema(max_items = 2000)]
    pub edges: Vec<Edge>,
    /// The flow's own variables: `$flow.name`.
    #[schema(max_items = 100)]
    pub variables: Vec<Variable>,
}

impl Graph {
    /// Reads a graph that stands alone, by its published schema. A request has been checked by it already.
    ///
    /// # Errors
    /// `validation_error` with everything that the schema refuses.
    pub fn read(json: Value) -> Result<Self> {
        let validator = compiled(schema::<Self>());
        let errors = validator.iter().flat_map(|validator| validator.iter_errors(&json));
        let errors: Vec<FieldError> = errors.flat_map(|error| field_errors(&error, "flow")).collect();
        match Error::all_invalid(errors) {
            Some(error) => Err(error),
            None => read_json(json, "", "flow"),
        }
    }
}

/// A node of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowNode)]
#[schema(example = json!({
    "id": "greet", "type": "send_message", "config": { "text": "Hello!" }, "position": { "x": 240, "y": 80 },
}))]
pub struct Node {
    /// The id, unique in the flow.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,39}$")]
    pub id: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// A name for people.
    #[schema(max_length = 120)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The settings of a node of this type. Texts in it are templates: `{{ $contact.$name }}`.
    #[schema(value_type = NodeConfig)]
    #[serde(default)]
    pub config: Map<String, Value>,
    /// What happens when the node has failed for the last time.
    #[serde(default)]
    pub on_error: FlowOnError,
    /// The output in place of that of a failed node, with `on_error: default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_output: Option<Value>,
    /// How a failed node is tried again. `null` uses the defaults of its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The longest time that one attempt takes, in seconds.
    #[schema(minimum = 1, maximum = 3600)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i64>,
    /// What happens when nobody knows whether an attempt had an effect. `null` is `once` for a call whose other side may not
    /// remember the idempotency key (`http_request` with POST or PATCH, `function`), and `retry` for all else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_policy: Option<FlowEffectPolicy>,
    /// Whether the node is passed over. Its successor at `next` follows at once.
    #[serde(default)]
    pub disabled: bool,
    /// An output that test runs use instead of executing the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_output: Option<Value>,
    /// Where an editor draws the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

impl Node {
    /// Returns what happens when nobody knows whether an attempt had an effect.
    pub fn effects(&self) -> FlowEffectPolicy {
        let standard = if is_repeatable(self.kind, &self.config) {
            FlowEffectPolicy::Retry
        } else {
            FlowEffectPolicy::Once
        };
        self.effect_policy.unwrap_or(standard)
    }
}

/// Returns whether a node has its effect once although it is executed several times: what it calls remembers the idempotency
/// key, or has the same effect each time.
pub fn is_repeatable(kind: NodeType, config: &Map<String, Value>) -> bool {
    match kind {
        NodeType::HttpRequest => {
            config.get("method").and_then(Value::as_str).is_none_or(is_repeatable_method)
        }
        NodeType::Function | NodeType::IntegrationAction | NodeType::McpTool => false,
        _ => true,
    }
}

/// Returns whether a request has the same effect once as several times.
pub fn is_repeatable_method(method: &str) -> bool {
    !matches!(method, "POST" | "PATCH")
}

/// An edge from a port of a node to another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowEdge, example = json!({ "from": "start", "port": "next", "to": "greet" }))]
pub struct Edge {
    /// The id of the node that the edge leaves.
    #[schema(max_length = 40)]
    pub from: String,
    /// The port that it leaves by: `next`, `error`, or one that the type of the node has.
    #[schema(max_length = 60)]
    #[serde(default = "next")]
    pub port: String,
    /// The id of the node that it leads to.
    #[schema(max_length = 40)]
    pub to: String,
}

fn next() -> String {
    Edge::NEXT.to_owned()
}

impl Edge {
    /// The port of success.
    pub const NEXT: &'static str = NEXT;
    /// The port of failure.
    pub const ERROR: &'static str = ERROR;
}

/// Where an editor draws a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowPosition)]
pub struct Position {
    /// The distance from the left.
    pub x: f64,
    /// The distance from the top.
    pub y: f64,
}

string_enum! {
    /// What happens when a node has failed for the last time.
    #[derive(Default)]
    pub enum FlowOnError {
        /// The run fails.
        #[default]
        Fail = "fail",
        /// The run continues at `next`, with the output `null`.
        Continue = "continue",
        /// The run continues at `next`, with `default_output`.
        Default = "default",
        /// The run continues at the port `error`.
        Branch = "branch",
        /// The run pauses until a person retries it.
        Pause = "pause",
    }
}

string_enum! {
    /// What happens when nobody knows whether an attempt had an effect outside: its worker died, or no answer came in time.
    pub enum FlowEffectPolicy {
        /// The node is tried again with the same idempotency key, as often as `retry` allows. Then it fails with
        /// `outcome_unknown`.
        Retry = "retry",
        /// The node is not tried again: its step is `unknown`, and the run continues at the port `error`.
        Once = "once",
        /// The run pauses until a person decides.
        Pause = "pause",
    }
}

/// How a failed node is tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = FlowRetry)]
pub struct Retry {
    /// The number of attempts.
    #[schema(minimum = 1, maximum = 10)]
    pub max_attempts: i64,
    /// How the delay grows.
    pub backoff: FlowBackoff,
    /// The delay before the second attempt, in seconds.
    #[schema(minimum = 0, maximum = 3600)]
    pub delay_seconds: i64,
    /// By what each further delay is multiplied, with `exponential`.
    #[schema(minimum = 1, maximum = 10)]
    pub factor: i64,
    /// The longest delay, in seconds.
    #[schema(minimum = 1, maximum = 86_400)]
    pub max_delay: i64,
    /// The error codes after which it is tried again. Empty for those that are worth it: timeouts, connection errors, and the
    /// statuses 408, 425, 429 and 5xx.
    #[schema(max_items = 20)]
    pub retry_on: Vec<String>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            backoff: FlowBackoff::default(),
            delay_seconds: 5,
            factor: 2,
            max_delay: 3600,
            retry_on: Vec::new(),
        }
    }
}

string_enum! {
    /// How the delay between attempts grows.
    #[derive(Default)]
    pub enum FlowBackoff {
        /// It stays the same.
        Fixed = "fixed",
        /// It is multiplied each time.
        #[default]
        Exponential = "exponential",
    }
}

/// A variable of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowVariable, example = json!({ "name": "budget", "type": "number", "default": 0 }))]
pub struct Variable {
    /// The name: `$flow.budget`.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,63}$")]
    pub name: String,
    /// The type of its values.
    #[serde(rename = "type")]
    pub kind: FlowVariableType,
    /// The value at the start of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

string_enum! {
    /// The type of a flow's variable.
    pub enum FlowVariableType {
        /// A text.
        Text = "text",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// A date, as text.
        Date = "date",
        /// A list.
        List = "list",
        /// An object.
        Object = "object",
    }
}

impl FlowVariableType {
    /// Returns whether a JSON value is of the type.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text | Self::Date => value.is_string(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}
