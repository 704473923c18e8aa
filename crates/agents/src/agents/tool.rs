//! Tools: how one is called, as stored and as callers see it.

use crate::providers::{ToolSpec, estimated_tool_tokens};
use crate::schema::agent_tools;
use diesel::prelude::*;
use model::{AgentId, JsonText, Result, Timestamp, WorkspaceId, text_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The HTTP request of an `http` tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "url": "https://api.example.com/orders/{number}", "header_names": ["Authorization"] }))]
pub struct HttpTool {
    /// The HTTP method. Only `GET` counts as read-only.
    pub method: HttpMethod,
    /// The URL. `{name}` in the path or query is replaced with the argument of that name.
    pub url: String,
    /// The names of the headers that are sent. Their values are never returned.
    pub header_names: Vec<String>,
}

text_enum! {
    /// The supported types of tool. More will be added.
    pub enum ToolKind {
        /// An HTTP request.
        Http = "http",
    }
}

text_enum! {
    /// Whether calls of a tool need approval by a person.
    #[derive(Default)]
    pub enum ToolApproval {
        /// No approval is needed.
        #[default]
        Never = "never",
        /// Every call needs approval.
        Always = "always",
        /// Calls with side effects need approval: for an `http` tool, all methods except `GET`.
        OnWrite = "on_write",
    }
}

/// A tool that an agent may call.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "look_up_order", "description": "Looks up an order by its number.",
    "parameters": { "type": "object", "properties": { "number": { "type": "string" } }, "required": ["number"] },
    "fixed_arguments": {}, "max_calls_per_run": 30, "timeout_seconds": 15, "token_estimate": 71,
}))]
pub struct AgentTool {
    /// The tool's id, which is the name that the model calls it by.
    #[schema(example = "look_up_order")]
    pub id: String,
    /// Always `agent_tool`.
    pub object: &'static str,
    /// The agent's id.
    pub agent_id: AgentId,
    /// The name that the model calls the tool by. The same as `id`.
    pub name: String,
    /// The type of tool.
    #[serde(rename = "type")]
    pub kind: ToolKind,
    /// The description that the model receives.
    pub description: String,
    /// A JSON Schema of the arguments.
    #[schema(value_type = Object)]
    pub parameters: Value,
    /// Arguments that are always sent. The model does not see them and cannot change them.
    #[schema(value_type = Object)]
    pub fixed_arguments: Value,
    /// The HTTP request of the tool.
    pub http: HttpTool,
    /// Whether calls need approval by a person.
    pub approval: ToolApproval,
    /// The maximum number of calls in one run.
    pub max_calls_per_run: i64,
    /// The maximum duration of a call in seconds.
    pub timeout_seconds: i64,
    /// Whether a call with side effects may be repeated with the same arguments in one run.
    pub repeatable: bool,
    /// An estimate of the tokens that the tool adds to every prompt, rather too high than too low.
    pub token_estimate: i64,
    /// When the object was attached.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// What is stored of a tool beside its name and kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSettings {
    /// The description that the model receives.
    pub description: String,
    /// A JSON Schema of the arguments.
    pub parameters: Value,
    /// Arguments that the model neither sees nor sets.
    pub fixed_arguments: Map<String, Value>,
    /// The HTTP request of the tool.
    pub http: HttpTool,
    /// The headers' values, sealed as one JSON object.
    pub sealed_headers: Option<String>,
    /// Whether a person must allow its calls. Tools that were attached before there was a choice never ask.
    #[serde(default)]
    pub approval: ToolApproval,
    /// The maximum number of calls in one run.
    pub max_calls_per_run: i64,
    /// The maximum duration of a call in seconds.
    pub timeout_seconds: i64,
    /// Whether a call with side effects may be repeated with the same arguments in one run.
    #[serde(default)]
    pub repeatable: bool,
}

impl ToolSettings {
    /// The schema of the arguments that the model chooses: those that are not fixed.
    pub(crate) fn open_parameters(&self) -> Value {
        let mut open = self.parameters.clone();
        if let Some(properties) = open.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| !self.fixed_arguments.contains_key(name));
        }
        if let Some(required) = open.get_mut("required").and_then(Value::as_array_mut) {
            required
                .retain(|name| !name.as_str().is_some_and(|name| self.fixed_arguments.contains_key(name)));
        }
        open
    }

    /// What the model is told of it under a name.
    pub(crate) fn spec(&self, name: &str) -> ToolSpec {
        let (description, parameters) = (self.description.clone(), self.open_parameters());
        ToolSpec { name: name.to_owned(), description, parameters }
    }
}

/// A tool as it is stored.
#[derive(Debug, Clone, Queryable, Insertable)]
#[diesel(table_name = agent_tools)]
pub struct ToolRow {
    pub(crate) agent_id: AgentId,
    pub(crate) name: String,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) kind: ToolKind,
    pub(crate) settings: JsonText,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

/// A tool within a version of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolSnapshot {
    pub(super) name: String,
    kind: ToolKind,
    pub(super) settings: Value,
}

impl ToolSnapshot {
    pub(crate) fn row(self, workspace_id: WorkspaceId, agent_id: AgentId, at: Timestamp) -> ToolRow {
        let Self { name, kind, settings } = self;
        let settings = JsonText::of(&settings);
        ToolRow { agent_id, name, workspace_id, kind, settings, created_at: at, updated_at: at }
    }
}

impl ToolRow {
    pub(crate) fn snapshot(&self) -> ToolSnapshot {
        let settings = self.settings.parse().unwrap_or(Value::Null);
        ToolSnapshot { name: self.name.clone(), kind: self.kind, settings }
    }

    pub(crate) fn settings(&self) -> Result<ToolSettings> {
        self.settings.parse()
    }

    pub(crate) fn tool(self) -> Result<AgentTool> {
        let settings = self.settings()?;
        let token_estimate = estimated_tool_tokens(&[settings.spec(&self.name)]);
        Ok(AgentTool {
            id: self.name.clone(),
            object: "agent_tool",
            agent_id: self.agent_id,
            name: self.name,
            kind: self.kind,
            description: settings.description,
            parameters: settings.parameters,
            fixed_arguments: Value::Object(settings.fixed_arguments),
            http: settings.http,
            approval: settings.approval,
            max_calls_per_run: settings.max_calls_per_run,
            timeout_seconds: settings.timeout_seconds,
            repeatable: settings.repeatable,
            token_estimate,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

text_enum! {
    /// The HTTP methods of `http` tools.
    pub enum HttpMethod {
        /// Reads.
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

/// What sealed headers are bound to: the workspace and the tool, not the agent, so that a copy can use them.
pub(crate) fn header_place(workspace: WorkspaceId, tool: &str) -> String {
    format!("agent_tool:{workspace}:{tool}")
}
