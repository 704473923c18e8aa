//! Settings of an agent's version: how it answers, within which limits, and what it remembers.

use super::guardrails::{self, Guardrail};
use crate::providers::Tier;
use fields::json_schema;
use model::{Error, Result, SkillId, text_enum};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// What an agent remembers of its conversations.
    #[derive(Default)]
    pub enum MemoryMode {
        /// Nothing: every run stands alone.
        None = "none",
        /// The last messages.
        Window = "window",
        /// The last messages, and those before them in short: the fast tier summarises older ones where they become too
        /// many or fill 60 % of the context.
        #[default]
        Summary = "summary",
    }
}

/// How much an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// What it remembers.
    pub mode: MemoryMode,
    /// The last messages of the conversation that it sees in full.
    #[schema(minimum = 2, maximum = 200)]
    pub max_messages: i64,
    /// Facts that it is told in every run, whatever else it remembers: at most 2,048 bytes of UTF-8.
    #[schema(max_length = 2048)]
    pub pinned: Option<String>,
}

/// The most bytes of pinned facts.
const MOST_PINNED: usize = 2048;

impl Default for Memory {
    fn default() -> Self {
        Self { mode: MemoryMode::Summary, max_messages: 40, pinned: None }
    }
}

text_enum! {
    /// The form of an answer.
    #[derive(Default)]
    pub enum ResponseKind {
        /// Free text.
        #[default]
        Text = "text",
        /// JSON that fits a schema.
        JsonSchema = "json_schema",
    }
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
            (ResponseKind::JsonSchema, Some(schema)) => json_schema::check(schema, "response_format.schema"),
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

/// How an agent answers people in channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReplyRules {
    /// It waits this long for further messages before it answers them together.
    #[schema(minimum = 0, maximum = 30)]
    pub debounce_seconds: i64,
    /// It never waits longer than this.
    #[schema(minimum = 5, maximum = 60)]
    pub max_wait_seconds: i64,
    /// Whether a long answer is sent as several messages.
    pub split_messages: bool,
}

impl Default for ReplyRules {
    fn default() -> Self {
        Self { debounce_seconds: 2, max_wait_seconds: 15, split_messages: false }
    }
}

/// When an agent leaves a conversation in a channel to people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Handoff {
    /// Whether it does.
    pub enabled: bool,
    /// Words of the person that ask for it.
    #[schema(max_items = 50)]
    pub keywords: Vec<HandoffKeyword>,
    /// It takes the conversation back after this silence of people; `null` never.
    #[schema(minimum = 1, maximum = 43_200)]
    pub resume_after_minutes: Option<i64>,
}

/// A word or phrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(min_length = 1, max_length = 100, pattern = r"\S")]
pub struct HandoffKeyword(pub String);

/// What a version of an agent fixes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentSettings)]
pub struct Settings {
    /// For people.
    pub description: String,
    /// What the model is told first.
    pub instructions: String,
    /// The tier of models.
    pub model: Tier,
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
    /// Checks of what it is told and says, in their order.
    #[serde(default)]
    #[schema(required = true)]
    pub guardrails: Vec<Guardrail>,
    /// How it answers people in channels.
    #[serde(default)]
    #[schema(required = true)]
    pub reply: ReplyRules,
    /// When it leaves a conversation in a channel to people.
    #[serde(default)]
    #[schema(required = true)]
    pub handoff: Handoff,
    /// What people in channels are told when it fails, and what a run says that a guardrail hands off; `null` is nothing.
    #[serde(default)]
    #[schema(required = true)]
    pub fallback_message: Option<String>,
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
            guardrails: Vec::new(),
            reply: ReplyRules::default(),
            handoff: Handoff::default(),
            fallback_message: None,
            skills: Vec::new(),
        }
    }
}

impl Settings {
    /// What a schema cannot say.
    pub(super) fn check(&self) -> Result<()> {
        if self.reply.debounce_seconds > self.reply.max_wait_seconds {
            return Err(Error::invalid("reply.debounce_seconds", "must not be above `max_wait_seconds`"));
        }
        if self.memory.pinned.as_ref().is_some_and(|pinned| pinned.len() > MOST_PINNED) {
            let rule = format!("must have at most {MOST_PINNED} bytes");
            return Err(Error::invalid("memory.pinned", rule));
        }
        guardrails::check(&self.guardrails, self.handoff.enabled)?;
        self.response_format.check()
    }
}
