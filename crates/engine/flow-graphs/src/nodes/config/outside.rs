//! Settings of nodes that use models, code and other systems.

use model::string_enum;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

string_enum! {
    /// The tier of the model.
    #[derive(Default)]
    pub enum FlowModelTier {
        /// The fastest and cheapest.
        #[default]
        Fast = "fast",
        /// In between.
        Balanced = "balanced",
        /// The best.
        Advanced = "advanced",
    }
}

/// Settings of `classify`: a model chooses a class for a text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowClassify, example = json!({
    "text": "{{ $message.text }}", "classes": [{ "id": "return", "description": "Wants to send something back" }],
}))]
pub struct Classify {
    /// The text.
    #[schema(min_length = 1, max_length = 20_000)]
    pub text: String,
    /// The classes, each of which is a port. `other` is the port of a text that fits none.
    #[schema(min_items = 1, max_items = 20)]
    pub classes: Vec<FlowClass>,
    /// The tier of the model.
    #[serde(default)]
    pub model: FlowModelTier,
}

/// A class of `classify`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "return", "description": "Wants to send something back" }))]
pub struct FlowClass {
    /// The id: the name of the port.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,39}$")]
    pub id: String,
    /// What belongs to it.
    #[schema(min_length = 1, max_length = 500)]
    pub description: String,
}

/// Settings of `extract`: a model reads data from a text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowExtract, example = json!({
    "text": "{{ $message.text }}", "schema": { "type": "object", "properties": { "order": { "type": "string" } } },
}))]
pub struct Extract {
    /// The text.
    #[schema(min_length = 1, max_length = 20_000)]
    pub text: String,
    /// A JSON Schema of the data.
    pub schema: Value,
    /// The tier of the model.
    #[serde(default)]
    pub model: FlowModelTier,
}

/// Settings of `agent`: a run of an agent.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowAgentNode, example = json!({ "agent_id": 7, "input": "{{ $message.text }}" }))]
pub struct Agent {
    /// The agent. `null` uses the default one.
    #[serde(default)]
    pub agent_id: Option<i64>,
    /// A version of it. `null` uses the current one.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// The input.
    #[schema(min_length = 1, max_length = 100_000)]
    pub input: String,
    /// The conversation whose memory it has. `null` gives it one of its own.
    #[schema(max_length = 128)]
    #[serde(default)]
    pub conversation_id: Option<String>,
    /// A JSON Schema of the answer.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// The most Energy that it may use.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub max_energy: Option<i64>,
}

/// Settings of `function`: a call of a code function.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowFunctionNode, example = json!({ "function_id": 5, "input": { "pieces": "{{ $flow.pieces }}" } }))]
pub struct Function {
    /// The function.
    pub function_id: i64,
    /// A version of it. `null` uses the published one.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// The input.
    #[serde(default)]
    pub input: Option<Value>,
}

/// Settings of `code`: JavaScript of the flow itself, without a network.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowCode, example = json!({ "code": "export default (ctx) => ctx.input.a + ctx.input.b", "input": { "a": 1, "b": 2 } }))]
pub struct Code {
    /// A module with a default export.
    #[schema(min_length = 1, max_length = 32_768)]
    pub code: String,
    /// Its input.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub input: Map<String, Value>,
}

string_enum! {
    /// An HTTP method.
    #[derive(Default)]
    pub enum FlowHttpMethod {
        /// Reads.
        #[default]
        Get = "GET",
        /// Writes.
        Post = "POST",
        /// Writes.
        Put = "PUT",
        /// Writes.
        Patch = "PATCH",
        /// Writes.
        Delete = "DELETE",
    }
}

/// Settings of `http_request`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowHttpRequest, example = json!({ "method": "GET", "url": "https://api.example.com/orders/{{ $input.order }}" }))]
pub struct HttpRequest {
    /// The method.
    #[serde(default)]
    pub method: FlowHttpMethod,
    /// The URL. Up to 3 redirects are followed.
    #[schema(min_length = 1, max_length = 2000)]
    pub url: String,
    /// Headers. Secrets of the workspace can be used in all settings, but not in the host of the URL.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// Parameters that are added to the URL.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub query: Map<String, Value>,
    /// The body: a text as it is, everything else as JSON.
    #[serde(default)]
    pub body: Option<Value>,
    /// The statuses that count as success. Empty for all below 300. Any other one is the failure `http_` with the status: GET,
    /// PUT and DELETE are tried again after 408, 425, 429 and all from 500 on; POST and PATCH after 408, 425, 429 and 503.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub success_codes: Vec<i64>,
}

/// Settings of `integration_action`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowIntegrationAction, example = json!({ "connection_id": 3, "action": "create_event", "input": {} }))]
pub struct IntegrationAction {
    /// The connection.
    pub connection_id: i64,
    /// The action.
    #[schema(min_length = 1, max_length = 100)]
    pub action: String,
    /// Its input.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub input: Map<String, Value>,
}

/// Settings of `mcp_tool`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowMcpTool, example = json!({ "connection_id": 3, "tool": "search", "arguments": {} }))]
pub struct McpTool {
    /// The connection.
    pub connection_id: i64,
    /// The tool.
    #[schema(min_length = 1, max_length = 100)]
    pub tool: String,
    /// Its arguments.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// Settings of `image`: a generated image.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowImage, example = json!({ "prompt": "A wooden train on a table" }))]
pub struct Image {
    /// The description.
    #[schema(min_length = 1, max_length = 4000)]
    pub prompt: String,
    /// The size, such as `1024x1024`.
    #[schema(max_length = 20)]
    #[serde(default)]
    pub size: Option<String>,
}

/// Settings of `conversion`: a conversion is reported to an advertising platform.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowConversion, example = json!({ "event": "purchase", "value": "{{ $flow.total }}" }))]
pub struct Conversion {
    /// The event.
    #[schema(min_length = 1, max_length = 100)]
    pub event: String,
    /// Its value.
    #[serde(default)]
    pub value: Option<Value>,
}
