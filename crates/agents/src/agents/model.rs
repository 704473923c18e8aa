//! Types of the API: agents.

use super::guardrails::Guardrail;
use super::settings::{Handoff, Memory, ReplyRules, ResponseFormat, Settings};
use super::tool::AgentTool;
use crate::providers::{Tier, Tiers};
use model::{AgentId, Error, JsonText, Metadata, Patch, Result, Timestamp, WorkspaceId, text_enum};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// Whether an agent runs.
    pub enum AgentStatus {
        /// Never activated.
        Draft = "draft",
        /// Runs.
        Active = "active",
        /// Switched off.
        Inactive = "inactive",
        /// Deleted; kept for the runs that name it.
        Archived = "archived",
    }
}

/// An agent.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Agent {
    /// The agent.
    pub id: AgentId,
    /// Always `agent`.
    pub object: &'static str,
    /// The workspace it belongs to.
    pub workspace_id: WorkspaceId,
    /// Its name, unique in the workspace whatever the case.
    pub name: String,
    /// What its current version fixes.
    #[serde(flatten)]
    pub settings: Settings,
    /// The model that the tier stands for at present.
    pub model_revision: String,
    /// Whether it runs.
    pub status: AgentStatus,
    /// Whether it runs when a run names no agent.
    pub is_default: bool,
    /// The current version. Every change makes a new one.
    pub version: i64,
    /// The version that runs: always the current one.
    pub published_version: i64,
    /// The MCP servers that it may use: none, because there are no integrations to connect to yet.
    #[schema(value_type = Vec<Object>)]
    pub mcp_servers: Vec<Value>,
    /// Its tools, by name, where one agent is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<AgentTool>>,
    /// The caller's own notes.
    pub metadata: Metadata,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// An agent to be created.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// Its name, unique in the workspace whatever the case.
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub name: String,
    /// For people.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub description: Option<String>,
    /// What the model is told first.
    #[schema(max_length = 100_000)]
    #[serde(default)]
    pub instructions: Option<String>,
    /// The tier of models; `balanced` if not given.
    #[serde(default)]
    pub model: Option<Tier>,
    /// Randomness; `null` leaves it to the model.
    #[schema(minimum = 0, maximum = 2)]
    #[serde(default)]
    pub temperature: Option<f64>,
    /// The most tokens of one answer; 2,048 if not given.
    #[schema(minimum = 16, maximum = 32_000)]
    #[serde(default)]
    pub max_output_tokens: Option<i64>,
    /// The most model calls of a run; 10 if not given.
    #[schema(minimum = 1, maximum = 50)]
    #[serde(default)]
    pub max_steps: Option<i64>,
    /// The most tool calls of a run; 30 if not given.
    #[schema(minimum = 1, maximum = 200)]
    #[serde(default)]
    pub max_tool_calls: Option<i64>,
    /// The longest time of a run; 120 if not given.
    #[schema(minimum = 5, maximum = 600)]
    #[serde(default)]
    pub timeout_seconds: Option<i64>,
    /// The most Energy of a run.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    #[serde(default)]
    pub energy_limit_per_run: Option<i64>,
    /// The most Energy of a calendar month (UTC).
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    #[serde(default)]
    pub energy_limit_monthly: Option<i64>,
    /// What it remembers of conversations.
    #[serde(default)]
    pub memory: Option<Memory>,
    /// The form of its answers.
    #[serde(default)]
    pub response_format: Option<ResponseFormat>,
    /// Checks of what it is told and says, in their order.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub guardrails: Option<Vec<Guardrail>>,
    /// How it answers people in channels.
    #[serde(default)]
    pub reply: Option<ReplyRules>,
    /// When it leaves a conversation in a channel to people.
    #[serde(default)]
    pub handoff: Option<Handoff>,
    /// What people in channels are told when it fails.
    #[schema(min_length = 1, max_length = 1000)]
    #[serde(default)]
    pub fallback_message: Option<String>,
    /// Must be empty: there are no MCP servers to connect to yet.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    #[serde(default)]
    pub mcp_servers: Option<Vec<Value>>,
    /// `draft` (off) or `active`; `draft` if not given.
    #[serde(default)]
    pub status: Option<NewAgentStatus>,
    /// Whether its first version is published. Every version of an agent is, so this changes nothing.
    #[serde(default)]
    pub publish: Option<bool>,
    /// The caller's own notes.
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

text_enum! {
    /// The states in which an agent can be created.
    pub enum NewAgentStatus {
        /// Off.
        Draft = "draft",
        /// On.
        Active = "active",
    }
}

/// A change of an agent. Fields that are not sent stay as they are.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentPatch {
    /// Its name.
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    #[serde(default)]
    pub name: Option<String>,
    /// For people.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub description: Option<String>,
    /// What the model is told first.
    #[schema(max_length = 100_000)]
    #[serde(default)]
    pub instructions: Option<String>,
    /// The tier of models.
    #[serde(default)]
    pub model: Option<Tier>,
    /// Randomness; `null` leaves it to the model.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 2)]
    #[serde(default)]
    pub temperature: Patch<f64>,
    /// The most tokens of one answer.
    #[schema(minimum = 16, maximum = 32_000)]
    #[serde(default)]
    pub max_output_tokens: Option<i64>,
    /// The most model calls of a run.
    #[schema(minimum = 1, maximum = 50)]
    #[serde(default)]
    pub max_steps: Option<i64>,
    /// The most tool calls of a run.
    #[schema(minimum = 1, maximum = 200)]
    #[serde(default)]
    pub max_tool_calls: Option<i64>,
    /// The longest time of a run, in seconds.
    #[schema(minimum = 5, maximum = 600)]
    #[serde(default)]
    pub timeout_seconds: Option<i64>,
    /// The most Energy of a run; `null` removes the limit.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000_000)]
    #[serde(default)]
    pub energy_limit_per_run: Patch<i64>,
    /// The most Energy of a calendar month (UTC); `null` removes the limit.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000_000)]
    #[serde(default)]
    pub energy_limit_monthly: Patch<i64>,
    /// What it remembers of conversations.
    #[serde(default)]
    pub memory: Option<Memory>,
    /// The form of its answers.
    #[serde(default)]
    pub response_format: Option<ResponseFormat>,
    /// Checks of what it is told and says, in their order.
    #[schema(max_items = 20)]
    #[serde(default)]
    pub guardrails: Option<Vec<Guardrail>>,
    /// How it answers people in channels.
    #[serde(default)]
    pub reply: Option<ReplyRules>,
    /// When it leaves a conversation in a channel to people.
    #[serde(default)]
    pub handoff: Option<Handoff>,
    /// What people in channels are told when it fails; `null` tells them nothing.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 1000)]
    #[serde(default)]
    pub fallback_message: Patch<String>,
    /// Must be empty: there are no MCP servers to connect to yet.
    #[schema(value_type = Option<Vec<Object>>, max_items = 0)]
    #[serde(default)]
    pub mcp_servers: Option<Vec<Value>>,
    /// The caller's own notes; replaces those that are stored.
    #[serde(default)]
    pub metadata: Option<Metadata>,
    /// The version that the change was made for: 409 `version_conflict` where the agent has another by now.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// The same as `version`, under its old name.
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

/// An agent as it is stored.
#[derive(Debug, Clone, diesel::Queryable)]
pub struct AgentRow {
    pub(crate) id: AgentId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) name: String,
    #[expect(dead_code, reason = "the database compares it")]
    name_key: String,
    pub(crate) status: AgentStatus,
    pub(crate) is_default: bool,
    pub(crate) version: i64,
    pub(crate) settings: JsonText,
    pub(crate) metadata: JsonText,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl AgentRow {
    /// What its version fixes.
    pub(crate) fn settings(&self) -> Result<Settings> {
        self.settings.parse()
    }

    /// As callers see it.
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

/// At most 16 pairs, keys up to 64 and values up to 512 characters.
pub(crate) fn check_metadata(metadata: Option<&Metadata>) -> Result<()> {
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

/// # Errors
/// `validation_error`: there are no integrations to connect to.
fn refuse_mcp_servers(servers: Option<&[Value]>) -> Result<()> {
    match servers {
        None | Some([]) => Ok(()),
        Some(_) => Err(Error::invalid(
            "mcp_servers",
            "must be empty: this service cannot connect to MCP servers yet",
        )),
    }
}
