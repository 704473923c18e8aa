//! What an agent is.

use crate::providers::{Tier, Tiers};
use crate::schema_rules;
use model::{AgentId, Error, JsonText, Metadata, Patch, Result, SkillId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Whether an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    /// Never activated.
    Draft,
    /// Runs.
    Active,
    /// Switched off.
    Inactive,
    /// Deleted; kept for the runs that name it.
    Archived,
}

impl AgentStatus {
    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Inactive => "inactive",
            Self::Archived => "archived",
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        [Self::Draft, Self::Active, Self::Inactive, Self::Archived]
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| Error::internal(format!("an agent has the unknown status {text}")))
    }
}

/// What an agent remembers of its conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryMode {
    /// Nothing: every run stands alone.
    None,
    /// The last messages.
    #[default]
    Window,
}

/// How much an agent remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// What it remembers.
    pub mode: MemoryMode,
    /// The last messages of the conversation that it sees.
    #[schema(minimum = 2, maximum = 200)]
    pub max_messages: i64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { mode: MemoryMode::Window, max_messages: 40 }
    }
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResponseKind {
    /// Free text.
    #[default]
    Text,
    /// JSON that fits a schema.
    JsonSchema,
}

/// The form that answers must have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseFormat {
    /// Free text, or JSON.
    #[serde(rename = "type")]
    pub kind: ResponseKind,
    /// With `json_schema`: a JSON Schema (2020-12, at most 64 KB and 10 levels, no remote `$ref`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
}

impl ResponseFormat {
    /// The schema that answers must fit.
    pub fn schema(&self) -> Option<&Value> {
        self.schema.as_ref().filter(|_| self.kind == ResponseKind::JsonSchema)
    }

    pub(crate) fn check(&self) -> Result<()> {
        match (self.kind, &self.schema) {
            (ResponseKind::JsonSchema, Some(schema)) => schema_rules::check(schema, "response_format.schema"),
            (ResponseKind::JsonSchema, None) => {
                Err(Error::invalid("response_format.schema", "is required with `json_schema`"))
            }
            (ResponseKind::Text, Some(_)) => {
                Err(Error::invalid("response_format.schema", "is only for `json_schema`"))
            }
            (ResponseKind::Text, None) => Ok(()),
        }
    }
}

/// A skill that an agent has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillRef {
    /// The skill.
    pub skill_id: SkillId,
    /// A fixed version; `null` follows the skill's default version.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub version: Option<i64>,
}

/// What a version of an agent fixes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// For people.
    pub description: String,
    /// What the model is told first.
    pub instructions: String,
    /// The tier.
    pub model: Tier,
    /// Randomness.
    pub temperature: Option<f64>,
    /// The longest answer of one model call.
    pub max_output_tokens: i64,
    /// Model calls of a run.
    pub max_steps: i64,
    /// Tool calls of a run.
    pub max_tool_calls: i64,
    /// How long a run may take.
    pub timeout_seconds: i64,
    /// The most Energy of a run.
    pub energy_limit_per_run: Option<i64>,
    /// The most Energy of a calendar month (UTC).
    pub energy_limit_monthly: Option<i64>,
    /// What it remembers.
    pub memory: Memory,
    /// The form of its answers.
    pub response_format: ResponseFormat,
    /// Its skills.
    pub skills: Vec<SkillRef>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            description: String::new(),
            instructions: String::new(),
            model: Tier::default(),
            temperature: None,
            max_output_tokens: 2048,
            max_steps: 10,
            max_tool_calls: 30,
            timeout_seconds: 120,
            energy_limit_per_run: None,
            energy_limit_monthly: None,
            memory: Memory::default(),
            response_format: ResponseFormat::default(),
            skills: Vec::new(),
        }
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
    /// For people.
    pub description: String,
    /// What the model is told first.
    pub instructions: String,
    /// The tier of models.
    pub model: Tier,
    /// The model that the tier stands for at present.
    pub model_revision: String,
    /// Randomness, 0 to 2; `null` leaves it to the model.
    pub temperature: Option<f64>,
    /// The most tokens of one answer.
    pub max_output_tokens: i64,
    /// The most model calls of a run.
    pub max_steps: i64,
    /// The most tool calls of a run.
    pub max_tool_calls: i64,
    /// The longest time of a run, in seconds.
    pub timeout_seconds: i64,
    /// The most Energy of a run; `null` is no limit of its own.
    pub energy_limit_per_run: Option<i64>,
    /// The most Energy of a calendar month (UTC); `null` is no limit of its own.
    pub energy_limit_monthly: Option<i64>,
    /// What it remembers of conversations.
    pub memory: Memory,
    /// The form of its answers.
    pub response_format: ResponseFormat,
    /// Its skills.
    pub skills: Vec<SkillRef>,
    /// Whether it runs.
    pub status: AgentStatus,
    /// Whether it runs when a run names no agent.
    pub is_default: bool,
    /// The current version. Every change makes a new one.
    pub version: i64,
    /// The version that runs: always the current one.
    pub published_version: i64,
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
    /// `draft` (off) or `active`; `draft` if not given.
    #[serde(default)]
    pub status: Option<NewAgentStatus>,
    /// The caller's own notes.
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

/// The states in which an agent can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NewAgentStatus {
    /// Off.
    Draft,
    /// On.
    Active,
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
    /// The caller's own notes; replaces those that are stored.
    #[serde(default)]
    pub metadata: Option<Metadata>,
    /// The version that the change was made for: 409 `version_conflict` where the agent has another by now.
    #[schema(minimum = 1)]
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
            memory: self.memory.unwrap_or_default(),
            response_format: self.response_format.clone().unwrap_or_default(),
            skills: Vec::new(),
        };
        settings.response_format.check()?;
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
        settings.response_format.check()
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
    status: String,
    pub(crate) is_default: bool,
    pub(crate) version: i64,
    pub(crate) settings: JsonText,
    pub(crate) metadata: JsonText,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl AgentRow {
    /// Whether it runs.
    pub(crate) fn status(&self) -> Result<AgentStatus> {
        AgentStatus::parse(&self.status)
    }

    /// What its version fixes.
    pub(crate) fn settings(&self) -> Result<Settings> {
        Ok(self.settings.parse()?)
    }

    /// As callers see it.
    pub(crate) fn agent(self, tiers: &Tiers) -> Result<Agent> {
        let settings = self.settings()?;
        Ok(Agent {
            object: "agent",
            status: self.status()?,
            id: self.id,
            workspace_id: self.workspace_id,
            name: self.name,
            description: settings.description,
            instructions: settings.instructions,
            model: settings.model,
            model_revision: tiers.get(settings.model).label(),
            temperature: settings.temperature,
            max_output_tokens: settings.max_output_tokens,
            max_steps: settings.max_steps,
            max_tool_calls: settings.max_tool_calls,
            timeout_seconds: settings.timeout_seconds,
            energy_limit_per_run: settings.energy_limit_per_run,
            energy_limit_monthly: settings.energy_limit_monthly,
            memory: settings.memory,
            response_format: settings.response_format,
            skills: settings.skills,
            is_default: self.is_default,
            version: self.version,
            published_version: self.version,
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
