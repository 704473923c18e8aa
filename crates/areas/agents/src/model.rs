//! Request bodies, responses and rows of agents.

use super::settings::{Handoff, Memory, ReplyRules, ResponseFormat, Settings};
use super::tools::AgentTool;
use crate::schema::agents;
use diesel::prelude::*;
use guardrails::Guardrail;
use model::{AgentId, Error, JsonText, Metadata, Patch, Result, Timestamp, WorkspaceId, text_enum};
use providers::{Tier, Tiers};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// The state of an agent.
    pub enum AgentStatus {
        /// Created, but never activated. It does not run.
        Draft = "draft",
        /// The agent can run.
        Active = "active",
        /// Deactivated. It does not run.
        Inactive = "inactive",
        /// Deleted. It is kept for its runs.
        Archived = "archived",
    }
}

/// An agent.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Support", "model_revision": "smollm2-135m", "status": "active", "version": 3,
    "published_version": 3, "mcp_servers": [],
}))]
pub struct Agent {
    /// The agent's id.
    pub id: AgentId,
    /// Always `agent`.
    pub object: &'static str,
    /// The id of the workspace.
    pub workspace_id: WorkspaceId,
    /// The name, unique in the workspace regardless of case.
    pub name: String,
    /// The settings of the current version.
    #[serde(flatten)]
    pub settings: Settings,
    /// The model that the tier currently stands for.
    pub model_revision: String,
    /// The state of the agent.
    pub status: AgentStatus,
    /// Whether the agent executes runs that name no agent.
    pub is_default: bool,
    /// The current version. Every change creates a new version.
    pub version: i64,
    /// The published version, which is always the current one.
    pub published_version: i64,
    /// The MCP servers that the agent can use. Always empty, because MCP servers are not supported yet.
    #[schema(value_type = Vec<Object>)]
    pub mcp_servers: Vec<Value>,
    /// The agent's tools by name. Only when a single agent is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<AgentTool>>,
    /// Your own key-value data.
    pub metadata: Metadata,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// An agent to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Support", "instructions": "Answer customers' questions about orders. Be brief." }))]
pub struct NewAgent {
    /// The name, unique in the workspace regardless of case.
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub name: String,
    /// A description for people.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub description: Option<String>,
    /// Instructions for the model, sent before the conversation. `{{vars.key}}` stands for a variable of the workspace that is
    /// not a secret, `{{contact.$name}}` or `{{contact.id}}` for the contact whom a run answers, `{{channel.id}}` for the
    /// channel, `{{business.name}}` for the business profile, and `{{now}}` for the time, with the values that they have when a
    /// run begins. A placeholder that nothing fills is a 400 `unknown_variable`.
    #[schema(max_length = 100_000)]
    #[serde(default)]
    pub instructions: Option<String>,
    /// The model tier; `balanced` if not given.
    #[serde(default)]
    pub model: Option<Tier>,
    /// The sampling temperature. `null` uses the model's default.
    #[schema(minimum = 0, maximum = 2)]
    #[serde(default)]
    pub temperature: Option<f64>,
    /// The maximum number of tokens in one answer; 2,048 if not given.
    #[schema(minimum = 16, maximum = 32_000)]
    #[serde(default)]
    pub max_output_tokens: Option<i64>,
    /// The maximum number of model calls in a run; 10 if not given.
    #[schema(minimum = 1, maximum = 50)]
    #[serde(default)]
    pub max_steps: Option<i64>,
    /// The maximum number of tool calls in a run; 30 if not given.
    #[schema(minimum = 1, maximum = 200)]
    #[serde(default)]
    pub max_tool_calls: Option<i64>,
    /// The maximum duration of a run in seconds; 120 if not given.
    #[schema(minimum = 5, maximum = 600)]
    #[serde(default)]
    pub timeout_seconds: Option<i64>,
    /// The maximum Energy of one run.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    #[serde(default)]
    pub energy_limit_per_run: Option<i64>,
    /// The maximum Energy in a calendar month (UTC).
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    #[serde(default)]
    pub energy_limit_monthly: Option<i64>,
    /// What the agent remembers of a conversation.
    #[serde(default)]
    pub memory: Option<Memory>,
    /// The format of the agent's answers.
    #[serde(default)]
    pub response_format: Option<ResponseFormat>,
    /// Checks of the agent's input and output, applied in order.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub guardrails: Option<Vec<Guardrail>>,
    /// How the agent replies to people in channels.
    #[serde(default)]
    pub reply: Option<ReplyRules>,
    /// When the agent hands a channel conversation over to people.
    #[serde(default)]
    pub handoff: Option<Handoff>,
    /// The message that people in channels receive when the agent fails.
    #[schema(min_length = 1, max_length = 1000)]
    #[serde(default)]
    pub fallback_message: Option<String>,
    /// Must be empty: MCP servers are not supported yet.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    #[serde(default)]
    pub mcp_servers: Option<Vec<Value>>,
    /// The initial state; `draft` if not given.
    #[serde(default)]
    pub status: Option<NewAgentStatus>,
    /// Whether to publish the first version. Every version is published, so this has no effect.
    #[serde(default)]
    pub publish: Option<bool>,
    /// Your own key-value data.
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

text_enum! {
    /// The states in which an agent can be created.
    pub enum NewAgentStatus {
        /// The agent does not run until it is activated.
        Draft = "draft",
        /// The agent can run at once.
        Active = "active",
    }
}

/// A change of an agent. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "instructions": "Answer in two sentences at most.", "temperature": 0.2 }))]
pub struct AgentPatch {
    /// The name.
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    #[serde(default)]
    pub name: Option<String>,
    /// A description for people.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub description: Option<String>,
    /// Instructions for the model, sent before the conversation. `{{vars.key}}` stands for a variable of the workspace that is
    /// not a secret, `{{contact.$name}}` or `{{contact.id}}` for the contact whom a run answers, `{{channel.id}}` for the
    /// channel, `{{business.name}}` for the business profile, and `{{now}}` for the time, with the values that they have when a
    /// run begins. A placeholder that nothing fills is a 400 `unknown_variable`.
    #[schema(max_length = 100_000)]
    #[serde(default)]
    pub instructions: Option<String>,
    /// The model tier.
    #[serde(default)]
    pub model: Option<Tier>,
    /// The sampling temperature. `null` uses the model's default.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 2)]
    #[serde(default)]
    pub temperature: Patch<f64>,
    /// The maximum number of tokens in one answer.
    #[schema(minimum = 16, maximum = 32_000)]
    #[serde(default)]
    pub max_output_tokens: Option<i64>,
    /// The maximum number of model calls in a run.
    #[schema(minimum = 1, maximum = 50)]
    #[serde(default)]
    pub max_steps: Option<i64>,
    /// The maximum number of tool calls in a run.
    #[schema(minimum = 1, maximum = 200)]
    #[serde(default)]
    pub max_tool_calls: Option<i64>,
    /// The maximum duration of a run in seconds.
    #[schema(minimum = 5, maximum = 600)]
    #[serde(default)]
    pub timeout_seconds: Option<i64>,
    /// The maximum Energy of one run. `null` removes the limit.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000_000)]
    #[serde(default)]
    pub energy_limit_per_run: Patch<i64>,
    /// The maximum Energy in a calendar month (UTC). `null` removes the limit.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000_000)]
    #[serde(default)]
    pub energy_limit_monthly: Patch<i64>,
    /// What the agent remembers of a conversation.
    #[serde(default)]
    pub memory: Option<Memory>,
    /// The format of the agent's answers.
    #[serde(default)]
    pub response_format: Option<ResponseFormat>,
    /// Checks of the agent's input and output, applied in order.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub guardrails: Option<Vec<Guardrail>>,
    /// How the agent replies to people in channels.
    #[serde(default)]
    pub reply: Option<ReplyRules>,
    /// When the agent hands a channel conversation over to people.
    #[serde(default)]
    pub handoff: Option<Handoff>,
    /// The message that people in channels receive when the agent fails. `null` sends no message.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 1000)]
    #[serde(default)]
    pub fallback_message: Patch<String>,
    /// Must be empty: MCP servers are not supported yet.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    #[serde(default)]
    pub mcp_servers: Option<Vec<Value>>,
    /// Your own key-value data. Replaces the stored metadata.
    #[serde(default)]
    pub metadata: Option<Metadata>,
    /// The expected version. If the agent has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// Deprecated name of `version`.
    #[schema(deprecated, minimum = 1)]
    #[serde(default)]
    pub expected_version: Option<i64>,
}

impl NewAgent {
    pub(crate) fn settings(&self) -> Result<Settings> {
        let defaults = Settings::default();
        let settings = Settings {
            description: self.description.clone().unwrap_or_default(),
            instructions: self.instructions.clone().unwrap_or_default(),
            model: self.model.unwrap_or_default(),
            temperature: self.temperature,
            max_output_tokens: self.max_output_tokens.unwrap_or(defaults.max_output_tokens),
            max_steps: self.max_steps.unwrap_or(defaults.max_steps),
            max_tool_calls: self.max_tool_calls.unwrap_or(defaults.max_tool_calls),
            timeout_seconds: self.timeout_seconds.unwrap_or(defaults.timeout_seconds),
            energy_limit_per_run: self.energy_limit_per_run,
            energy_limit_monthly: self.energy_limit_monthly,
            memory: self.memory.clone().unwrap_or_default(),
            response_format: self.response_format.clone().unwrap_or_default(),
            guardrails: self.guardrails.clone().unwrap_or_default(),
            reply: self.reply.unwrap_or_default(),
            handoff: self.handoff.clone().unwrap_or_default(),
            fallback_message: self.fallback_message.clone(),
            skills: Vec::new(),
        };
        refuse_mcp_servers(self.mcp_servers.as_deref())?;
        settings.check()?;
        Ok(settings)
    }
}

impl AgentPatch {
    pub(crate) fn apply(self, settings: &mut Settings) -> Result<()> {
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        set(&mut settings.description, self.description);
        set(&mut settings.instructions, self.instructions);
        set(&mut settings.model, self.model);
        self.temperature.apply(&mut settings.temperature);
        set(&mut settings.max_output_tokens, self.max_output_tokens);
        set(&mut settings.max_steps, self.max_steps);
        set(&mut settings.max_tool_calls, self.max_tool_calls);
        set(&mut settings.timeout_seconds, self.timeout_seconds);
        self.energy_limit_per_run.apply(&mut settings.energy_limit_per_run);
        self.energy_limit_monthly.apply(&mut settings.energy_limit_monthly);
        set(&mut settings.memory, self.memory);
        set(&mut settings.response_format, self.response_format);
        set(&mut settings.guardrails, self.guardrails);
        set(&mut settings.reply, self.reply);
        set(&mut settings.handoff, self.handoff);
        self.fallback_message.apply(&mut settings.fallback_message);
        refuse_mcp_servers(self.mcp_servers.as_deref())?;
        settings.check()
    }
}

/// A row of `agents`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = agents)]
pub struct AgentRow {
    /// The id.
    #[diesel(skip_insertion)]
    pub id: AgentId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The name.
    pub name: String,
    pub(crate) name_key: String,
    /// The status.
    pub status: AgentStatus,
    /// Whether it runs for requests that name no agent.
    pub is_default: bool,
    /// The number of the current version.
    pub version: i64,
    /// The [`Settings`] of the current version.
    pub settings: JsonText,
    pub(crate) metadata: JsonText,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

operation::resource! {
    AgentRow, agents, AgentId, "agent";
    unique "name": name_key;
    at most 1000 "agents per workspace";
    live: agents::status.ne(AgentStatus::Archived);
}

impl AgentRow {
    /// Renames the agent.
    pub(crate) fn rename(&mut self, name: &str) {
        name.trim().clone_into(&mut self.name);
        self.name_key = self.name.to_lowercase();
    }

    /// Parses the settings of the current version.
    ///
    /// # Errors
    /// `internal_error` if the row is damaged.
    pub fn settings(&self) -> Result<Settings> {
        self.settings.parse()
    }

    /// Builds the response.
    pub(crate) fn agent(self, tiers: &Tiers) -> Result<Agent> {
        let settings = self.settings()?;
        Ok(Agent {
            object: "agent",
            status: self.status,
            id: self.id,
            workspace_id: self.workspace_id,
            name: self.name,
            model_revision: tiers.get(settings.model).label(),
            settings,
            is_default: self.is_default,
            version: self.version,
            published_version: self.version,
            mcp_servers: Vec::new(),
            tools: None,
            metadata: self.metadata.parse()?,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// Checks the limits of metadata: at most 16 pairs, keys of 1 to 64 characters, and values of up to 512.
///
/// # Errors
/// `validation_error`.
pub fn check_metadata(metadata: Option<&Metadata>) -> Result<()> {
    let Some(metadata) = metadata else { return Ok(()) };
    if metadata.len() > 16 {
        return Err(Error::invalid("metadata", "must have at most 16 pairs"));
    }
    for (key, value) in metadata {
        if key.is_empty() || key.chars().count() > 64 {
            return Err(Error::invalid("metadata", "must have keys of 1 to 64 characters"));
        }
        if value.chars().count() > 512 {
            return Err(Error::invalid(format!("metadata.{key}"), "must have at most 512 characters"));
        }
    }
    Ok(())
}

/// Rejects MCP servers, because the service cannot connect to any yet.
///
/// # Errors
/// `validation_error`.
fn refuse_mcp_servers(servers: Option<&[Value]>) -> Result<()> {
    match servers {
        None | Some([]) => Ok(()),
        Some(_) => Err(Error::invalid(
            "mcp_servers",
            "must be empty: this service cannot connect to MCP servers yet",
        )),
    }
}
