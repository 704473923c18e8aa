//! Settings of guardrails: the text to detect, the stages, and the action.

use model::{Error, FieldError, FunctionId, Result, text_enum};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The most bytes of memory that a caller's pattern may need when compiled.
const LARGEST_PATTERN: usize = 1 << 20;

text_enum! {
    /// Which text a guardrail checks.
    pub enum GuardrailStage {
        /// The input of a run, before the model receives it.
        Input = "input",
        /// The arguments of a tool call, before the tool is called.
        ToolCall = "tool_call",
        /// The result of a tool, before the model receives it.
        ToolResult = "tool_result",
        /// The model's output, before the caller receives it.
        Output = "output",
    }
}

text_enum! {
    /// What a guardrail detects.
    pub enum GuardrailKind {
        /// Text that matches `pattern`.
        Regex = "regex",
        /// The `words`, matched as whole words and case-insensitively.
        Blocklist = "blocklist",
        /// Personal data of the types in `pii`.
        Pii = "pii",
        /// Text longer than `max_characters`.
        MaxLength = "max_length",
        /// Text that tries to give the model instructions. For `input` and `tool_result`.
        PromptInjection = "prompt_injection",
        /// Text about topics that are not wanted, as the fast tier classifies it. For `input` and `output`. The check costs Energy.
        Topic = "topic",
        /// What the code function `function_id` does not allow. It is called with `{stage, text, tool}` and returns
        /// `{allow, text, reason}`. If it fails, the text is blocked, unless the action is `flag`.
        Function = "function",
        /// Output that is not JSON. For `output`. Output that must match a schema is not checked: the model is asked to
        /// correct it.
        Json = "json",
    }
}

text_enum! {
    /// What happens when a guardrail detects something.
    pub enum GuardrailAction {
        /// The run ends as `incomplete` with the reason `guardrail`. A tool call or a tool result is withheld instead,
        /// the model is informed, and the run continues.
        Block = "block",
        /// The detected text is masked. Text that is too long is truncated.
        Mask = "mask",
        /// The whole text is replaced with `replacement`.
        Replace = "replace",
        /// The run ends as `incomplete` with the reason `handoff`, and its output is the agent's `fallback_message`.
        /// The agent's `handoff` must be enabled.
        Handoff = "handoff",
        /// The text is not changed. The finding is recorded in the run's steps.
        Flag = "flag",
    }
}

text_enum! {
    /// A type of personal data.
    pub enum PiiKind {
        /// E-mail addresses.
        Email = "email",
        /// International bank account numbers with valid check digits.
        Iban = "iban",
        /// Payment card numbers with a valid check digit.
        Card = "card",
        /// IPv4 addresses.
        Ip = "ip",
        /// Telephone numbers, such as `+49 30 1234567`, `030 1234567` or `(555) 123-4567`.
        Phone = "phone",
    }
}

/// A word or phrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(min_length = 1, max_length = 100, pattern = r"\S")]
pub struct GuardrailWord(pub String);

/// A topic, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(min_length = 1, max_length = 100, pattern = r"\S")]
pub struct GuardrailTopic(pub String);

/// The topics of a guardrail of type `topic`: either those that are allowed or those that are blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardrailTopics {
    /// The only topics that a text may be about. Greetings, thanks and texts without a topic are always allowed.
    #[schema(min_items = 1, max_items = 20)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<GuardrailTopic>>,
    /// The topics that a text must not be about.
    #[schema(min_items = 1, max_items = 20)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Vec<GuardrailTopic>>,
}

/// A check of an agent's input or output. An agent's guardrails are applied in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Guardrail {
    /// The text to check.
    #[schema(min_items = 1, max_items = 4)]
    pub on: Vec<GuardrailStage>,
    /// What to detect.
    #[serde(rename = "type")]
    pub kind: GuardrailKind,
    /// What to do when something is detected.
    pub action: GuardrailAction,
    /// For `regex`: a regular expression without look-around and backreferences.
    #[schema(min_length = 1, max_length = 1000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// For `blocklist`: the words.
    #[schema(min_items = 1, max_items = 500)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<GuardrailWord>>,
    /// For `pii`: the types to detect; all if not given.
    #[schema(min_items = 1, max_items = 5)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pii: Option<Vec<PiiKind>>,
    /// For `topic`: the topics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<GuardrailTopics>,
    /// For `function`: the id of a published code function that only reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function_id: Option<FunctionId>,
    /// For `max_length`: the maximum number of characters.
    #[schema(minimum = 1, maximum = 100_000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_characters: Option<i64>,
    /// For `replace`: the replacement text.
    #[schema(min_length = 1, max_length = 1000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
}

/// Checks the rules that the published schema cannot express. `hands_off` says whether the agent can hand
/// conversations off to people.
///
/// # Errors
/// `validation_error`.
pub fn check(guardrails: &[Guardrail], hands_off: bool) -> Result<()> {
    let errors = guardrails.iter().enumerate().flat_map(|(place, guardrail)| {
        let at = move |name: &str| format!("guardrails[{place}].{name}");
        let mut errors = guardrail.field_errors(&at);
        errors.extend(guardrail.place_errors(&at));
        if guardrail.action == GuardrailAction::Handoff && !hands_off {
            let rule = "can be `handoff` only if `handoff.enabled` is true";
            errors.push(FieldError::new(at("action"), rule));
        }
        errors
    });
    Error::all_invalid(errors.collect()).map_or(Ok(()), Err)
}

impl Guardrail {
    /// Returns an error for each member that the kind or the action requires or does not allow.
    fn field_errors(&self, at: &impl Fn(&str) -> String) -> Vec<FieldError> {
        let kind = self.kind;
        let fields = [
            ("pattern", self.pattern.is_some(), kind == GuardrailKind::Regex, true, "`regex`"),
            ("words", self.words.is_some(), kind == GuardrailKind::Blocklist, true, "`blocklist`"),
            ("pii", self.pii.is_some(), kind == GuardrailKind::Pii, false, "`pii`"),
            ("function_id", self.function_id.is_some(), kind == GuardrailKind::Function, true, "`function`"),
            ("topics", self.topics.is_some(), kind == GuardrailKind::Topic, true, "`topic`"),
            (
                "max_characters",
                self.max_characters.is_some(),
                kind == GuardrailKind::MaxLength,
                true,
                "`max_length`",
            ),
            (
                "replacement",
                self.replacement.is_some(),
                self.action == GuardrailAction::Replace,
                true,
                "the action `replace`",
            ),
        ];
        let mut errors = Vec::new();
        for (name, is_given, belongs, is_needed, with) in fields {
            if is_given && !belongs {
                errors.push(FieldError::new(at(name), format_args!("is only for {with}")));
            } else if !is_given && belongs && is_needed {
                errors.push(FieldError::new(at(name), format_args!("is required with {with}")));
            }
        }
        if self.topics.as_ref().is_some_and(|topics| topics.allowed.is_some() == topics.blocked.is_some()) {
            errors.push(FieldError::new(at("topics"), "must have either `allowed` or `blocked`"));
        }
        if let Some(Err(error)) = self.pattern.as_deref().map(pattern) {
            errors.push(FieldError::new(at("pattern"), format_args!("cannot be used: {error}")));
        }
        errors
    }

    /// Returns an error for each stage and action that the kind does not support.
    fn place_errors(&self, at: &impl Fn(&str) -> String) -> Vec<FieldError> {
        use GuardrailStage::{Input, Output, ToolCall, ToolResult};
        let places: &[GuardrailStage] = match self.kind {
            GuardrailKind::Json => &[Output],
            GuardrailKind::PromptInjection => &[Input, ToolResult],
            GuardrailKind::Topic => &[Input, Output],
            _ => &[Input, ToolCall, ToolResult, Output],
        };
        let wrong = self.on.iter().enumerate().filter(|(_, stage)| !places.contains(stage));
        let mut errors: Vec<FieldError> = wrong
            .map(|(place, _)| {
                let named: Vec<String> = places.iter().map(|stage| format!("`{}`", stage.as_str())).collect();
                let rule = format!("must be {} for this type", named.join(" or "));
                FieldError::new(at(&format!("on[{place}]")), rule)
            })
            .collect();
        if self.kind == GuardrailKind::Json && self.action == GuardrailAction::Mask {
            errors.push(FieldError::new(at("action"), "cannot be `mask`: there is nothing to mask"));
        }
        if self.kind == GuardrailKind::Topic && self.action == GuardrailAction::Mask {
            errors.push(FieldError::new(at("action"), "cannot be `mask`: a topic is that of the whole text"));
        }
        if self.kind == GuardrailKind::Topic
            && self.on.contains(&Input)
            && self.action == GuardrailAction::Replace
        {
            errors.push(FieldError::new(at("action"), "cannot be `replace` for the topic of an `input`"));
        }
        let changes = matches!(self.action, GuardrailAction::Mask | GuardrailAction::Replace);
        if self.kind == GuardrailKind::Function && self.on.contains(&Input) && changes {
            errors.push(FieldError::new(at("action"), "cannot change an `input` for this type"));
        }
        if self.on.contains(&ToolCall) && self.action == GuardrailAction::Replace {
            let rule = "cannot be `replace` for `tool_call`: text cannot replace arguments";
            errors.push(FieldError::new(at("action"), rule));
        }
        errors
    }
}

/// Compiles a caller's pattern.
///
/// # Errors
/// The pattern is invalid or too large.
pub fn pattern(text: &str) -> std::result::Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(LARGEST_PATTERN).build()
}
