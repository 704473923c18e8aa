//! The settings of a version of an agent: model, limits, memory and behavior.

use fields::json_schema;
use guardrails::Guardrail;
use model::{Error, Result, SkillId, text_enum};
use ports::SkillPin;
use providers::Tier;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// What an agent remembers of its conversations.
    #[derive(Default)]
    pub enum MemoryMode {
        /// Nothing: every run is independent.
        None = "none",
        /// The last messages.
        Window = "window",
        /// The last messages, with a summary of earlier ones. The fast tier summarizes older messages when there are
        /// too many of them or when they fill 60% of the context.
        #[default]
        Summary = "summary",
    }
}

/// How much of a conversation an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// What the agent remembers.
    pub mode: MemoryMode,
    /// How many of the last messages the model receives in full.
    #[schema(minimum = 2, maximum = 200)]
    pub max_messages: i64,
    /// Facts that the model receives in every run. At most 2,048 bytes of UTF-8.
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
    /// The format of an answer.
    #[derive(Default)]
    pub enum ResponseKind {
        /// Free text.
        #[default]
        Text = "text",
        /// JSON that matches a schema.
        JsonSchema = "json_schema",
    }
}

/// The required format of answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseFormat {
    /// The format.
    #[serde(rename = "type")]
    pub kind: ResponseKind,
    /// For `json_schema`: a JSON Schema (2020-12) of at most 64 KB and 10 levels, without remote `$ref`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
}

impl ResponseFormat {
    /// Returns the schema that answers must match, if there is one.
    pub fn schema(&self) -> Option<&Value> {
        self.schema.as_ref().filter(|_| self.kind == ResponseKind::JsonSchema)
    }

    /// Checks the rules that the published schema cannot express.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn check(&self) -> Result<()> {
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

/// A skill of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillRef {
    /// The id of the skill.
    pub skill_id: SkillId,
    /// A fixed version. `null` uses the skill's default version.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub version: Option<i64>,
}

impl SkillRef {
    /// The version of the skill that the agent has.
    pub fn pin(&self) -> SkillPin {
        SkillPin { skill: self.skill_id, version: self.version }
    }
}

/// How an agent replies to people in channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReplyRules {
    /// How long the agent waits for further messages before it answers them together, in seconds.
    #[schema(minimum = 0, maximum = 30)]
    pub debounce_seconds: i64,
    /// The longest time that the agent waits, in seconds.
    #[schema(minimum = 5, maximum = 60)]
    pub max_wait_seconds: i64,
    /// Whether a long answer is split into several messages.
    pub split_messages: bool,
}

impl Default for ReplyRules {
    fn default() -> Self {
        Self { debounce_seconds: 2, max_wait_seconds: 15, split_messages: false }
    }
}

/// When an agent hands a channel conversation over to people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Handoff {
    /// Whether handoff is enabled.
    pub enabled: bool,
    /// Words that request a handoff when a person sends them.
    #[schema(max_items = 50)]
    pub keywords: Vec<HandoffKeyword>,
    /// The agent takes the conversation back when people have not replied for this many minutes. `null` means never.
    #[schema(minimum = 1, maximum = 43_200)]
    pub resume_after_minutes: Option<i64>,
}

/// A word or phrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(min_length = 1, max_length = 100, pattern = r"\S")]
pub struct HandoffKeyword(pub String);

/// The settings of a version of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentSettings)]
#[schema(example = json!({
    "description": "Answers customers' questions.",
    "instructions": "Answer customers' questions about orders. Be brief.", "model": "balanced",
    "max_output_tokens": 2048, "max_steps": 10, "max_tool_calls": 30, "timeout_seconds": 120,
    "memory": { "mode": "summary", "max_messages": 40 }, "guardrails": [],
    "reply": { "debounce_seconds": 2, "max_wait_seconds": 15, "split_messages": false },
    "handoff": { "enabled": false, "keywords": [] }, "skills": [],
}))]
pub struct Settings {
    /// A description for people.
    pub description: String,
    /// Instructions for the model, sent before the conversation.
    pub instructions: String,
    /// The model tier.
    pub model: Tier,
    /// The sampling temperature, 0 to 2. `null` uses the model's default.
    pub temperature: Option<f64>,
    /// The maximum number of tokens in one answer.
    pub max_output_tokens: i64,
    /// The maximum number of model calls in a run.
    pub max_steps: i64,
    /// The maximum number of tool calls in a run.
    pub max_tool_calls: i64,
    /// The maximum duration of a run in seconds.
    pub timeout_seconds: i64,
    /// The maximum Energy of one run. `null` means no limit.
    pub energy_limit_per_run: Option<i64>,
    /// The maximum Energy in a calendar month (UTC). `null` means no limit.
    pub energy_limit_monthly: Option<i64>,
    /// What the agent remembers of a conversation.
    pub memory: Memory,
    /// The format of the agent's answers.
    pub response_format: ResponseFormat,
    /// Checks of the agent's input and output, applied in order.
    #[serde(default)]
    #[schema(required = true)]
    pub guardrails: Vec<Guardrail>,
    /// How the agent replies to people in channels.
    #[serde(default)]
    #[schema(required = true)]
    pub reply: ReplyRules,
    /// When the agent hands a channel conversation over to people.
    #[serde(default)]
    #[schema(required = true)]
    pub handoff: Handoff,
    /// The message that people in channels receive when the agent fails, and the output of a run that a guardrail hands
    /// off. `null` means none.
    #[serde(default)]
    #[schema(required = true)]
    pub fallback_message: Option<String>,
    /// The agent's skills.
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
    /// Checks the rules that the published schema cannot express.
    pub(super) fn check(&self) -> Result<()> {
        if self.reply.debounce_seconds > self.reply.max_wait_seconds {
            return Err(Error::invalid(
                "reply.debounce_seconds",
                "must not be greater than `max_wait_seconds`",
            ));
        }
        if self.memory.pinned.as_ref().is_some_and(|pinned| pinned.len() > MOST_PINNED) {
            let rule = format!("must have at most {MOST_PINNED} bytes");
            return Err(Error::invalid("memory.pinned", rule));
        }
        guardrails::check(&self.guardrails, self.handoff.enabled)?;
        self.response_format.check()
    }
}
