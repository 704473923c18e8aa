//! Operations on the tools of an agent.
//!
//! The name by which the model calls a tool is its id in the API. Tools are part of the agent's version, so attaching
//! or detaching one creates a version. The values of headers are usually credentials, so they are sealed at rest and
//! never shown again.

use super::agents_as_tools;
use super::model::AgentRow;
use super::placeholders::{PlaceholderChecks, PlaceholderServices};
use super::queries;
use super::sealed::SEALED_TOOLS;
use super::tools::grants::{self, GrantChecks, Wanted};
use super::tools::{
    AgentTool, HttpMethod, HttpTool, MOST_CALLS, PATIENCE, ToolAccess, ToolApproval, ToolKind, ToolRow,
    ToolScope, ToolSettings, code_functions, flow, header_place, http_rules, verification,
};
use auth::Seal;
use egress::Connector;
use fields::json_schema;
use model::{AgentId, Caller, Code, Error, FlowId, FunctionId, JsonText, Random, Result};
use operation::{
    Body, Deleted, Describe, ExpectedVersion, FromInput, Input, Json, LocalCalls, OptIn, OptInList, Path,
    Resource, Update, operation,
};
use ports::{CollectionDirectory, WorkspaceFlows, WorkspaceFunctions, referenced_variables};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use store::{Read, Tx};
use utoipa::ToSchema;

/// The most tools of an agent.
const MOST_TOOLS: usize = 128;

/// The longest timeout of a tool in seconds. Only tools of type `agent` can have more.
const LONGEST_CALL: i64 = 60;

/// The name that the model calls the tool by. It is the tool's id.
#[derive(Debug, Clone, ToSchema)]
#[schema(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$")]
pub struct ToolName(String);

impl FromStr for ToolName {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ToolName {
    /// Checks the name for a tool that may be new. A bad name is a `validation_error` here, where other operations
    /// answer `not_found`.
    fn checked(self) -> Result<String> {
        let fits = (1..=64).contains(&self.0.len())
            && self.0.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        let rule = "must be 1 to 64 letters, digits, `_` and `-`";
        if fits { Ok(self.0) } else { Err(Error::invalid("toolId", rule)) }
    }
}

/// A tool to attach.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "description": "Looks up an order by its number.",
    "parameters": { "type": "object", "properties": { "number": { "type": "string" } }, "required": ["number"] },
    "http": { "method": "GET", "url": "https://api.example.com/orders/{number}" },
}))]
pub struct NewTool {
    /// The type of tool.
    #[serde(rename = "type")]
    kind: ToolKind,
    /// A description for the model: what the tool does and when to use it. An `http` or `agent` tool needs one. For other tools,
    /// it is added to the descriptions of their functions.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S")]
    description: Option<String>,
    /// A JSON Schema of the arguments of an `http` tool; an object without properties if not given. Other tools have their
    /// own: an `agent` tool takes a text `input`, and a `function` or `flow` tool takes the
    /// input of the code function or flow.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    parameters: Option<Value>,
    /// Arguments that are always sent. The model does not see them and cannot change them. They limit all functions of the tool:
    /// what a list is fixed to, the others find. Their texts can have the placeholders of instructions. A placeholder that is
    /// the whole text keeps the type of its value, and one without a value refuses the call. An `agent` tool has none.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    fixed_arguments: Option<Map<String, Value>>,
    /// The HTTP request of an `http` tool, which needs one. Other tools have none.
    #[serde(default)]
    http: Option<NewHttpTool>,
    /// The id of what the tool covers: of the collection, for `collection_items` and `collection_search`, of the agent that is
    /// to run, for `agent`, of the published code function, for `function`, and of the published and active flow, for `flow`.
    /// Other tools have none. Agents that are each
    /// other's tools must not form a cycle, nor a chain of more than three tools.
    #[serde(default, rename = "ref")]
    #[schema(minimum = 1)]
    reference: Option<i64>,
    /// For `function`: the version of the code function to call. If not given, runs call the version that is published when they
    /// begin.
    #[serde(default)]
    #[schema(minimum = 1)]
    version: Option<i64>,
    /// What the functions of the tool may do; `read` if not given. An `http`, `agent`, `function` or `flow` tool has none,
    /// `collection_search` only reads, and `messages` needs `read_write`. Your key needs the scopes of the operations that the
    /// functions call.
    #[serde(default)]
    access: Option<ToolAccess>,
    /// Whose data the functions of the tool reach. If not given, it is `contact` in runs that answer a contact over a channel,
    /// and `all` in other runs. With `contact` the model does not choose the contact, and a run that answers none reaches
    /// nothing. A collection without a field of type `contact` can be read in both scopes, and changed only with `all`. An
    /// `http`, `agent`, `function` or `flow` tool has none.
    #[serde(default)]
    scope: Option<ToolScope>,
    /// For `collection_items` and `collection_search`: the key of the field of type `contact` that names the contact of an
    /// item; the only such field of the collection if not given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 63)]
    contact_field: Option<String>,
    /// Whether calls need approval by a person; `never` if not given.
    #[serde(default)]
    approval: ToolApproval,
    /// The maximum number of calls in one run; 30 if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 200)]
    max_calls_per_run: Option<i64>,
    /// The maximum duration of a call in seconds; 15 if not given. For an `agent` tool up to 600, and 120 if not given; for other
    /// tools up to 60, and 20 for a `flow` tool if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 600)]
    timeout_seconds: Option<i64>,
    /// Whether a call with side effects may be repeated with the same arguments in one run; `false` if not given. A
    /// repeated call is not executed: the model receives the first result.
    #[serde(default)]
    repeatable: Option<bool>,
    /// Whether the model has to find the tool with `find_tools` before it can call it, so that the tool adds nothing to prompts
    /// until then; `false` if not given.
    #[serde(default)]
    deferred: Option<bool>,
    /// The name of what checks the outcome of a call with side effects, where a crash or a timeout left that unknown: an `http`
    /// tool with the method `GET`, or a reading function of a tool of the agent. It is called with those of the same arguments
    /// that it takes, and its result goes to the model.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 64)]
    verify_with: Option<String>,
}

/// The HTTP request of an `http` tool.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewHttpTool {
    /// The HTTP method; `POST` if not given.
    #[serde(default)]
    method: Option<HttpMethod>,
    /// The URL. `{name}` in the path or query is replaced with the argument of that name. Other arguments are sent in
    /// the query (`GET`, `DELETE`) or in the JSON body.
    #[schema(min_length = 1, max_length = 2048)]
    url: String,
    /// Headers to send. They are stored encrypted and never returned. A value can refer to variables of the workspace,
    /// also to secrets: `Bearer {{vars.shop.token}}`.
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
}

impl NewTool {
    fn common(&self) -> Common {
        Common {
            approval: self.approval,
            max_calls_per_run: self.max_calls_per_run,
            timeout_seconds: self.timeout_seconds,
            repeatable: self.repeatable.unwrap_or_default(),
            deferred: self.deferred.unwrap_or_default(),
            verify_with: self.verify_with.clone(),
        }
    }

    /// Builds the settings of an `http` tool.
    fn request(
        self,
        read: &mut Read,
        name: &str,
        checks: &Checks<'_>,
        random: &dyn Random,
    ) -> Result<ToolSettings> {
        let required = |param, rule| Error::invalid(param, rule);
        let http = self.http.ok_or_else(|| required("http", "is required for an `http` tool"))?;
        let description =
            self.description.ok_or_else(|| required("description", "is required for an `http` tool"))?;
        let refused = [
            ("ref", self.reference.is_some()),
            ("access", self.access.is_some()),
            ("scope", self.scope.is_some()),
            ("contact_field", self.contact_field.is_some()),
        ];
        refuse(&refused, "cannot be sent for an `http` tool")?;
        let parameters = self.parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
        json_schema::check(&parameters, "parameters")?;
        if parameters.get("type").is_some_and(|kind| kind != "object") {
            return Err(Error::invalid("parameters.type", "must be `object`"));
        }
        http_rules::check_url(&http.url, checks.connector)?;
        let fixed_arguments = self.fixed_arguments.unwrap_or_default();
        http_rules::check_fixed(&fixed_arguments, &parameters)?;
        checks.placeholders.check_fixed(read, &fixed_arguments)?;
        http_rules::check_places(&http.url, &fixed_arguments, &parameters)?;
        let headers = http.headers.unwrap_or_default();
        http_rules::check_headers(&headers)?;
        let header_variables = headers.values().flat_map(|value| referenced_variables(value));
        let header_variables = header_variables.map(str::to_owned).collect::<BTreeSet<_>>();
        let sealed_headers = if headers.is_empty() {
            None
        } else {
            let text = serde_json::to_string(&headers).map_err(Error::internal)?;
            let place = header_place(checks.grants.workspace, name);
            Some(checks.seal.seal(&SEALED_TOOLS, &place, &text, random)?)
        };
        Ok(ToolSettings {
            description,
            parameters,
            fixed_arguments,
            http: Some(HttpTool {
                method: http.method.unwrap_or(HttpMethod::Post),
                url: http.url,
                header_names: headers.into_keys().collect(),
            }),
            sealed_headers,
            header_variables: header_variables.into_iter().collect(),
            approval: self.approval,
            max_calls_per_run: self.max_calls_per_run.unwrap_or(MOST_CALLS),
            timeout_seconds: self.timeout_seconds.unwrap_or(PATIENCE),
            repeatable: self.repeatable.unwrap_or_default(),
            deferred: self.deferred.unwrap_or_default(),
            verify_with: self.verify_with,
            grant: None,
            agent: None,
            code: None,
            flow: None,
        })
    }

    /// Builds the settings of a tool that calls a code function or a flow.
    fn program(self, read: &mut Read, checks: &Checks<'_>) -> Result<ToolSettings> {
        let (common, called) = (self.common(), self.kind.as_str());
        let refused = [
            ("http", self.http.is_some()),
            ("parameters", self.parameters.is_some()),
            ("access", self.access.is_some()),
            ("scope", self.scope.is_some()),
            ("contact_field", self.contact_field.is_some()),
        ];
        refuse(&refused, &format!("cannot be sent for a `{called}` tool"))?;
        let required = || Error::invalid("ref", format!("is required: the id of a {called}"));
        let id = self.reference.ok_or_else(required)?;
        let fixed = self.fixed_arguments.unwrap_or_default();
        let description = self.description.unwrap_or_default();
        let workspace = checks.grants.workspace;
        let settings = if self.kind == ToolKind::Flow {
            checks.grants.may_start_flows()?;
            ToolSettings::of_flow(flow::find(read, checks.flows, workspace, FlowId(id))?, description, fixed)
        } else {
            checks.grants.may_call_functions()?;
            let function =
                code_functions::find(read, checks.functions, workspace, FunctionId(id), self.version)?;
            ToolSettings::of_function(function, self.version, description, fixed)
        };
        http_rules::check_fixed(&settings.fixed_arguments, &settings.parameters)?;
        code_functions::check_fixed(&settings.fixed_arguments, &settings.parameters, called)?;
        checks.placeholders.check_fixed(read, &settings.fixed_arguments)?;
        Ok(common.of(settings))
    }

    /// Builds the settings of a tool that runs another agent.
    fn agent(self, checks: &Checks<'_>) -> Result<ToolSettings> {
        let common = self.common();
        let refused = [
            ("http", self.http.is_some()),
            ("parameters", self.parameters.is_some()),
            ("fixed_arguments", self.fixed_arguments.is_some()),
            ("access", self.access.is_some()),
            ("scope", self.scope.is_some()),
            ("contact_field", self.contact_field.is_some()),
        ];
        refuse(&refused, "cannot be sent for an `agent` tool")?;
        let required = |param, rule| Error::invalid(param, rule);
        let id = self.reference.ok_or_else(|| required("ref", "is required: the id of an agent"))?;
        let description =
            self.description.ok_or_else(|| required("description", "is required for an `agent` tool"))?;
        checks.grants.may_run_agents()?;
        let settings = ToolSettings::of_agent(AgentId(id), description);
        Ok(common.of(settings))
    }

    /// Builds the settings of a tool that calls operations of the service.
    fn grant(self, read: &mut Read, checks: &Checks<'_>) -> Result<ToolSettings> {
        let common = self.common();
        let refused = [("http", self.http.is_some()), ("parameters", self.parameters.is_some())];
        refuse(&refused, "can only be sent for an `http` tool")?;
        let wanted = Wanted {
            kind: self.kind,
            reference: self.reference,
            access: self.access,
            scope: self.scope,
            contact_field: self.contact_field,
        };
        let grant = checks.grants.grant(read, wanted)?;
        let fixed_arguments = self.fixed_arguments.unwrap_or_default();
        http_rules::check_fixed(&fixed_arguments, &Value::Null)?;
        grants::check_fixed(&fixed_arguments, self.kind, grant.access)?;
        checks.placeholders.check_fixed(read, &fixed_arguments)?;
        let settings = ToolSettings::granted(grant, self.description.unwrap_or_default(), fixed_arguments);
        Ok(common.of(settings))
    }
}

/// The settings that tools of all types have, as far as they were sent.
struct Common {
    approval: ToolApproval,
    max_calls_per_run: Option<i64>,
    timeout_seconds: Option<i64>,
    repeatable: bool,
    deferred: bool,
    verify_with: Option<String>,
}

impl Common {
    /// Returns the settings with these in the place of their defaults.
    fn of(self, settings: ToolSettings) -> ToolSettings {
        ToolSettings {
            approval: self.approval,
            max_calls_per_run: self.max_calls_per_run.unwrap_or(settings.max_calls_per_run),
            timeout_seconds: self.timeout_seconds.unwrap_or(settings.timeout_seconds),
            repeatable: self.repeatable,
            deferred: self.deferred,
            verify_with: self.verify_with,
            ..settings
        }
    }
}

/// Returns an error for the first of these fields that was sent.
fn refuse(fields: &[(&str, bool)], rule: &str) -> Result<()> {
    match fields.iter().find(|(_, is_sent)| *is_sent) {
        Some((param, _)) => Err(Error::invalid(*param, rule)),
        None => Ok(()),
    }
}

/// The services for attaching a tool.
#[derive(Clone)]
pub struct ToolServices {
    connector: Arc<Connector>,
    seal: Arc<Seal>,
    operations: Arc<LocalCalls>,
    collections: Arc<CollectionDirectory>,
    functions: Arc<WorkspaceFunctions>,
    flows: Arc<WorkspaceFlows>,
    placeholders: PlaceholderServices,
}

impl FromInput for ToolServices {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let services = input.services;
        Ok(Self {
            connector: services.get()?,
            seal: services.get()?,
            operations: services.get()?,
            collections: services.get()?,
            functions: services.get()?,
            flows: services.get()?,
            placeholders: PlaceholderServices::from_input(input, name)?,
        })
    }

    fn describe(_: &mut Describe, _: &'static str) {}
}

impl ToolServices {
    fn checks<'a>(&'a self, caller: &'a Caller) -> Checks<'a> {
        let grants = GrantChecks {
            operations: &self.operations,
            collections: &self.collections,
            workspace: caller.workspace_id(),
            key: &caller.key,
        };
        let placeholders = self.placeholders.checks(caller.workspace_id());
        let (functions, flows) = (&*self.functions, &*self.flows);
        Checks { connector: &self.connector, seal: &self.seal, grants, functions, flows, placeholders }
    }
}

/// The checker of a new tool, with the key that seals its headers.
struct Checks<'a> {
    connector: &'a Connector,
    seal: &'a Seal,
    grants: GrantChecks<'a>,
    functions: &'a WorkspaceFunctions,
    flows: &'a WorkspaceFlows,
    placeholders: PlaceholderChecks<'a>,
}

impl Checks<'_> {
    fn settings(&self, tx: &mut Tx, new: NewTool, name: &str) -> Result<ToolSettings> {
        let random = tx.random();
        if new.kind != ToolKind::Agent && new.timeout_seconds.is_some_and(|seconds| seconds > LONGEST_CALL) {
            let rule = format!("must be at most {LONGEST_CALL} for this type of tool");
            return Err(Error::invalid("timeout_seconds", rule));
        }
        if new.kind != ToolKind::Function && new.version.is_some() {
            return Err(Error::invalid("version", "can only be sent for a `function` tool"));
        }
        match new.kind {
            ToolKind::Http => new.request(tx, name, self, &*random),
            ToolKind::Agent => new.agent(self),
            ToolKind::Function | ToolKind::Flow => new.program(tx, self),
            _ => new.grant(tx, self),
        }
    }
}

/// The tools that the agent may call
///
/// Lists the agent's tools in the order of their names.
#[operation(get "/agents/{agentId}/tools", scope = "agents:read", ceiling = 128)]
pub fn list_agent_tools(
    read: &mut Read,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    page: OptIn,
) -> Result<OptInList<AgentTool>> {
    AgentRow::find(read, caller.workspace_id(), &agent_id)?;
    let after: String = page.page().after()?.unwrap_or_default();
    let fetch = usize::try_from(page.page().fetch()).unwrap_or(usize::MAX);
    // An agent has at most 128 tools, so it is enough to cut the page from all of them.
    let rows = queries::tools(read, agent_id)?.into_iter().filter(|row| row.name > after).take(fetch);
    let tools = rows.map(ToolRow::tool).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(tools, |tool| tool.name.clone()))
}

/// Give the agent a tool: a function, flow, integration action or remote MCP server
///
/// `toolId` is the name by which the model calls the tool: 1 to 64 letters, digits, `_` and `-`. An existing tool of
/// this name is replaced. The change creates a new version of the agent, unless the tool is the same as before. The types
/// `contacts`, `tasks`, `collection_items`, `collection_search` and `messages` give the model functions that call operations
/// of this API in your workspace: `contacts_find` for a tool with the id `contacts`. The type `agent` lets the model give a
/// text to another agent of the workspace, whose answer is the result; your key needs the scope `runs:execute` for it. The
/// type `function` lets the model call a published code function, which acts with the scopes of the key that published it; your key
/// needs the scope `functions:write` for it. The type `flow` lets the model start a run of a published flow, whose answer or
/// output is the result; your key needs the scope `automations:execute` for it. A member of the team needs a recent sign-in
/// for an `http` tool.
#[operation(put "/agents/{agentId}/tools/{toolId}", scope = "agents:write", recent_sign_in = secrets)]
pub fn attach_agent_tool(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Path(tool_id): Path<ToolName>,
    Body(new): Body<NewTool>,
    services: ToolServices,
) -> Result<Json<AgentTool>> {
    let workspace = caller.workspace_id();
    // Its headers are usually credentials, and can name secrets of the workspace.
    if new.http.is_some() {
        caller.principal.expect_recent_sign_in(tx.now())?;
    }
    if new.kind == ToolKind::Agent {
        // Two agents that become each other's tools at once would not see the cycle.
        AgentRow::lock_set(tx, workspace)?;
    }
    let agent = AgentRow::find_locked(tx, workspace, &agent_id)?;
    let tool_id = tool_id.checked()?;
    let checks = services.checks(caller);
    let kind = new.kind;
    let settings = checks.settings(tx, new, &tool_id)?;
    if let Some(inner) = settings.agent {
        agents_as_tools::check(tx, workspace, agent_id, &[inner], "ref")?;
    }
    let tools = queries::tools(tx, agent_id)?;
    let existing = tools.iter().find(|tool| tool.name == tool_id);
    if existing.is_none() && tools.len() >= MOST_TOOLS {
        return Err(Error::new(Code::LimitReached, format!("An agent has at most {MOST_TOOLS} tools.")));
    }
    if let Some(existing) = existing
        && existing.kind == kind
        && is_same(&existing.settings()?, &settings, &header_place(workspace, &tool_id), &services.seal)
    {
        return Ok(Json(existing.clone().tool()?));
    }
    let now = tx.now();
    let row = ToolRow {
        agent_id,
        name: tool_id,
        workspace_id: workspace,
        kind,
        settings: JsonText::of(&settings),
        created_at: existing.map_or(now, |tool| tool.created_at),
        updated_at: now,
    };
    grants::check_names(&row, &tools)?;
    verification::check(&row, &tools)?;
    queries::put_tool(tx, &row)?;
    next_version(tx, caller, agent)?;
    Ok(Json(row.tool()?))
}

/// Returns whether a tool is unchanged. Sealing the same value twice gives different results, so both are opened to
/// compare them.
fn is_same(stored: &ToolSettings, new: &ToolSettings, place: &str, seal: &Seal) -> bool {
    let headers = |tool: &ToolSettings| {
        tool.sealed_headers.as_ref().map(|sealed| seal.open(place, sealed).unwrap_or_else(|_| sealed.clone()))
    };
    headers(stored) == headers(new)
        && *stored == ToolSettings { sealed_headers: stored.sealed_headers.clone(), ..new.clone() }
}

/// Take a tool from the agent
///
/// Removes the tool and creates a new version of the agent. Earlier versions keep the tool.
#[operation(delete "/agents/{agentId}/tools/{toolId}", scope = "agents:write")]
pub fn detach_agent_tool(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Path(tool_id): Path<String>,
) -> Result<Deleted<AgentTool>> {
    let agent = AgentRow::find_locked(tx, caller.workspace_id(), &agent_id)?;
    if !queries::delete_tool(tx, agent_id, &tool_id)? {
        return Err(Error::not_found("tool"));
    }
    next_version(tx, caller, agent)?;
    Ok(Deleted::of("agent_tool", tool_id))
}

fn next_version(tx: &mut Tx, caller: &Caller, agent: AgentRow) -> Result<()> {
    let update = Update::of(agent, ExpectedVersion::default())?;
    queries::store_version(tx, caller, update, None).map(drop)
}
