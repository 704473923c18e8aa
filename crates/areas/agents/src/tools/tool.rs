//! Responses and rows of tools.

use super::code_function::CodeFunction;
use super::flow::CalledFlow;
use crate::schema::agent_tools;
use diesel::prelude::*;
use model::{AgentId, CollectionId, JsonText, Result, Timestamp, WorkspaceId, text_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
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
        /// Functions that find and change the workspace's contacts.
        Contacts = "contacts",
        /// Functions that list and change the workspace's tasks.
        Tasks = "tasks",
        /// Functions that find and change the items of a collection.
        CollectionItems = "collection_items",
        /// A function that searches the items of a collection.
        CollectionSearch = "collection_search",
        /// Functions that write to contacts over channels, and hand conversations over to people.
        Messages = "messages",
        /// Another agent of the workspace, which runs on a text and answers it.
        Agent = "agent",
        /// A code function of the workspace: JavaScript that was published.
        Function = "function",
        /// A flow of the workspace, of which a run is started.
        Flow = "flow",
    }
}

impl ToolKind {
    /// Returns whether a tool of this type covers one collection.
    pub(crate) fn covers_collection(self) -> bool {
        matches!(self, Self::CollectionItems | Self::CollectionSearch)
    }

    /// Returns whether the model calls a tool of this type by its own name. Tools of other types offer operations, each with a
    /// name of its own.
    pub(crate) fn is_called_by_name(self) -> bool {
        matches!(self, Self::Http | Self::Agent | Self::Function | Self::Flow)
    }
}

text_enum! {
    /// What the functions of a tool may do.
    #[derive(Default)]
    pub enum ToolAccess {
        /// Only what reads.
        #[default]
        Read = "read",
        /// Also what changes something.
        ReadWrite = "read_write",
    }
}

text_enum! {
    /// Whose data the functions of a tool reach.
    pub enum ToolScope {
        /// Only those of the contact whom the run answers: the contact itself, its tasks, the messages to it, and the items
        /// whose `contact_field` names it.
        Contact = "contact",
        /// All that the workspace has.
        All = "all",
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
        /// Calls with side effects need approval: for an `http` tool, all methods except `GET`; for an `agent` or `flow` tool, all; for
        /// the functions of other tools, those that change something.
        OnWrite = "on_write",
    }
}

/// A tool that an agent may call.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "look_up_order", "description": "Looks up an order by its number.",
    "parameters": { "type": "object", "properties": { "number": { "type": "string" } }, "required": ["number"] },
    "fixed_arguments": {}, "max_calls_per_run": 30, "timeout_seconds": 15, "token_estimate": 71, "ref": null, "version": null,
    "access": null,
    "scope": null, "contact_field": null, "deferred": false, "verify_with": null,
}))]
pub struct AgentTool {
    /// The tool's id: the name that the model calls an `http` or `agent` tool by, and the beginning of the names of the
    /// functions of other tools.
    #[schema(example = "look_up_order")]
    pub id: String,
    /// Always `agent_tool`.
    pub object: &'static str,
    /// The agent's id.
    pub agent_id: AgentId,
    /// The name of the tool. The same as `id`.
    pub name: String,
    /// The type of tool.
    #[serde(rename = "type")]
    pub kind: ToolKind,
    /// The description that the model receives.
    pub description: String,
    /// A JSON Schema of the arguments of an `http` tool. `null` for other tools: their `functions` have one each.
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Value>,
    /// Arguments that are always sent. The model does not see them and cannot change them.
    #[schema(value_type = Object)]
    pub fixed_arguments: Value,
    /// The HTTP request of an `http` tool.
    pub http: Option<HttpTool>,
    /// The id of what the tool covers: of the collection, for `collection_items` and `collection_search`, of the agent that
    /// runs, for `agent`, of the code function, for `function`, and of the flow, for `flow`.
    #[serde(rename = "ref")]
    pub reference: Option<i64>,
    /// For `function`: the version of the code function that is called. `null` for the version that is published when a run
    /// begins.
    pub version: Option<i64>,
    /// What the functions of the tool may do. `null` for an `http` or `agent` tool.
    pub access: Option<ToolAccess>,
    /// Whose data the functions of the tool reach. `null` if none was given: `contact` in runs that answer a contact over a
    /// channel, `all` in other runs.
    pub scope: Option<ToolScope>,
    /// The key of the field of type `contact` that names the contact of an item, for `collection_items` and
    /// `collection_search`.
    pub contact_field: Option<String>,
    /// What the model can call.
    pub functions: Vec<ToolFunction>,
    /// Whether calls need approval by a person.
    pub approval: ToolApproval,
    /// The maximum number of calls in one run.
    pub max_calls_per_run: i64,
    /// The maximum duration of a call in seconds.
    pub timeout_seconds: i64,
    /// Whether a call with side effects may be repeated with the same arguments in one run.
    pub repeatable: bool,
    /// Whether the model has to find the tool with `find_tools` before it can call it.
    pub deferred: bool,
    /// The name of what checks the outcome of a call that is unknown.
    pub verify_with: Option<String>,
    /// An estimate of the tokens that the tool adds to every prompt, rather too high than too low. Of a deferred tool: from the
    /// moment at which the model has found it.
    pub token_estimate: i64,
    /// When the object was attached.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// Something that the model can call.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "look_up_order", "description": "Looks up an order by its number.",
    "parameters": { "type": "object", "properties": { "number": { "type": "string" } }, "required": ["number"] },
}))]
pub struct ToolFunction {
    /// The name that the model calls it by.
    pub name: String,
    /// The description that the model receives.
    pub description: String,
    /// A JSON Schema of the arguments that the model chooses.
    #[schema(value_type = Object)]
    pub parameters: Value,
    /// The id of the operation that it calls. `null` for an HTTP request and for another agent.
    pub operation_id: Option<&'static str>,
    /// Whether it has side effects.
    pub writes: bool,
}

/// The grant of a tool that calls operations of the service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// The collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<CollectionId>,
    /// The name of the collection at the time when the tool was attached, for the description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_name: Option<String>,
    /// The access of the functions.
    pub access: ToolAccess,
    /// The reach of the functions, or `None` for the contact in a run that answers one and for all otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ToolScope>,
    /// The field of items that refers to their contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_field: Option<String>,
}

impl Grant {
    /// Returns whether a run reaches only the contact that it answers. `answers` says whether it answers one.
    pub fn is_of_contact(&self, answers: bool) -> bool {
        self.scope.map_or(answers, |scope| scope == ToolScope::Contact)
    }
}

/// The stored settings of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSettings {
    /// The description that the model receives.
    pub description: String,
    /// A JSON Schema of the arguments.
    pub parameters: Value,
    /// Arguments that the model neither sees nor sets.
    pub fixed_arguments: Map<String, Value>,
    /// The HTTP request of an `http` tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpTool>,
    /// The grant, for tools that call operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// The agent of an `agent` tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The code function of a `function` tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeFunction>,
    /// The flow of a `flow` tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<CalledFlow>,
    /// The values of the headers, sealed as one JSON object.
    pub sealed_headers: Option<String>,
    /// The variables in the values of the headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub header_variables: Vec<String>,
    /// The approval mode. Tools that were stored before this setting existed need no approval.
    #[serde(default)]
    pub approval: ToolApproval,
    /// The maximum number of calls in one run.
    pub max_calls_per_run: i64,
    /// The maximum duration of a call in seconds.
    pub timeout_seconds: i64,
    /// Whether a call with side effects may be repeated with the same arguments in one run.
    #[serde(default)]
    pub repeatable: bool,
    /// Whether the model has to find the tool first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
    /// The name of what checks the outcome of a writing call, where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_with: Option<String>,
}

/// The default of `max_calls_per_run`. The default timeout in seconds follows, and that of a tool of type `agent`.
pub(crate) const MOST_CALLS: i64 = 30;
pub(crate) const PATIENCE: i64 = 15;
const PATIENCE_WITH_AGENTS: i64 = 120;

impl ToolSettings {
    /// Builds the settings of a tool that calls operations, with the defaults for everything else.
    pub fn granted(grant: Grant, description: String, fixed_arguments: Map<String, Value>) -> Self {
        Self {
            description,
            parameters: Value::Object(Map::new()),
            fixed_arguments,
            http: None,
            grant: Some(grant),
            agent: None,
            code: None,
            flow: None,
            sealed_headers: None,
            header_variables: Vec::new(),
            approval: ToolApproval::default(),
            max_calls_per_run: MOST_CALLS,
            timeout_seconds: PATIENCE,
            repeatable: false,
            deferred: false,
            verify_with: None,
        }
    }

    /// Builds the settings of a tool that runs another agent, with the defaults for everything else.
    pub(crate) fn of_agent(agent: AgentId, description: String) -> Self {
        let input = json!({
            "type": "string", "minLength": 1, "maxLength": 100_000,
            "description": "What the agent is to do, with all that it has to know: it does not see this conversation.",
        });
        Self {
            parameters: json!({
                "type": "object", "properties": { "input": input }, "required": ["input"], "additionalProperties": false,
            }),
            grant: None,
            agent: Some(agent),
            timeout_seconds: PATIENCE_WITH_AGENTS,
            ..Self::granted(Grant::default(), description, Map::new())
        }
    }

    /// Returns whether the tool calls a code function or a flow.
    pub fn is_program(&self) -> bool {
        self.code.is_some() || self.flow.is_some()
    }

    /// Returns the description that the model receives, as far as it is not that of an operation.
    pub(crate) fn shown_description(&self) -> String {
        match (&self.code, &self.flow) {
            (Some(code), _) => code.description(&self.description),
            (None, Some(flow)) => flow.description(&self.description),
            (None, None) => self.description.clone(),
        }
    }

    /// Removes the arguments that the model does not choose from a schema: fixed arguments, and the contact if the
    /// run reaches only one.
    pub(crate) fn open(&self, mut open: Value, of_contact: bool) -> Value {
        let is_set =
            |name: &str| self.fixed_arguments.contains_key(name) || of_contact && name == "contact_id";
        if let Some(properties) = open.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|name, _| !is_set(name));
        }
        if let Some(required) = open.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !name.as_str().is_some_and(is_set));
        }
        open
    }
}

/// A row of `agent_tools`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = agent_tools)]
pub struct ToolRow {
    /// The agent.
    pub agent_id: AgentId,
    /// The name.
    pub name: String,
    /// The agent's workspace.
    pub workspace_id: WorkspaceId,
    /// The type of tool.
    pub kind: ToolKind,
    /// The [`ToolSettings`].
    pub settings: JsonText,
    /// When it was attached.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

/// A tool in a version of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolSnapshot {
    pub name: String,
    kind: ToolKind,
    pub settings: Value,
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

    /// Parses the settings.
    ///
    /// # Errors
    /// `internal_error` if the row is damaged.
    pub fn settings(&self) -> Result<ToolSettings> {
        self.settings.parse()
    }

    /// Returns whether the model can choose contacts even in a run that answers a contact.
    ///
    /// # Errors
    /// `internal_error` if the row is damaged.
    pub fn takes_contacts(&self) -> Result<bool> {
        // Another agent is told by itself whom the run answers.
        let takes_none = self.kind == ToolKind::Agent;
        Ok(!takes_none && self.settings()?.grant.is_none_or(|grant| !grant.is_of_contact(true)))
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

/// The name by which the model finds deferred tools.
pub const FIND_TOOLS: &str = "find_tools";

/// The name by which the model loads a skill.
pub const LOAD_SKILL: &str = "load_skill";
/// The name by which it reads a file of a skill.
pub const READ_SKILL_FILE: &str = "read_skill_file";
/// The name by which it runs a script of a skill.
pub const RUN_SKILL_SCRIPT: &str = "run_skill_script";

/// Returns the context to which sealed headers are bound: the workspace and the name of the tool. The agent is not
/// part of it, so that a copy of the agent can open them.
pub fn header_place(workspace: WorkspaceId, tool: &str) -> String {
    format!("agent_tool:{workspace}:{tool}")
}
