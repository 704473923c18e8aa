//! Settings of guardrails: what is looked for, where, and what then happens. How they are applied stands with
//! the runs.

use model::{Error, FieldError, Result, text_enum};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The most memory that a caller's pattern may need, in bytes.
const LARGEST_PATTERN: usize = 1 << 20;

text_enum! {
    /// Where a guardrail looks.
    pub enum GuardrailStage {
        /// At the input of a run, before the model sees it.
        Input = "input",
        /// At the arguments of a tool's call, before it is made.
        ToolCall = "tool_call",
        /// At what a tool brought, before the model sees it.
        ToolResult = "tool_result",
        /// At what the model says, before anybody sees it.
        Output = "output",
    }
}

text_enum! {
    /// What a guardrail looks for.
    pub enum GuardrailKind {
        /// What `pattern` matches.
        Regex = "regex",
        /// The `words`, as whole words whatever the case.
        Blocklist = "blocklist",
        /// Personal data of the kinds in `pii`.
        Pii = "pii",
        /// A text longer than `max_characters`.
        MaxLength = "max_length",
        /// Texts that try to give the model instructions, at `input` and `tool_result`.
        PromptInjection = "prompt_injection",
        /// An answer that is not JSON, at `output`. Answers that must fit a schema are not looked at: a wrong one is sent back.
        Json = "json",
    }
}

text_enum! {
    /// What happens when a guardrail finds something.
    pub enum GuardrailAction {
        /// The run ends as `incomplete` with the reason `guardrail`. A tool's call is not made and a tool's result withheld,
        /// which the model is told, and the run goes on.
        Block = "block",
        /// What was found is masked; a text that is too long is cut.
        Mask = "mask",
        /// The whole text becomes `replacement`.
        Replace = "replace",
        /// The run ends as `incomplete` with the reason `handoff` and the agent's `fallback_message` as its output. The
        /// agent's `handoff` must be enabled.
        Handoff = "handoff",
        /// Nothing: the finding is in the run's steps.
        Flag = "flag",
    }
}

text_enum! {
    /// A kind of personal data.
    pub enum PiiKind {
        /// Addresses of e-mail.
        Email = "email",
        /// International bank account numbers with the right check digits.
        Iban = "iban",
        /// Numbers of payment cards with the right check digit.
        Card = "card",
        /// IPv4 addresses.
        Ip = "ip",
        /// Phone numbers, as `+49 30 1234567`, `030 1234567` or `(555) 123-4567`.
        Phone = "phone",
    }
}

/// A word or phrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(min_length = 1, max_length = 100, pattern = r"\S")]
pub struct GuardrailWord(pub String);

/// A check of what an agent is told or says. An agent's guardrails are applied in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Guardrail {
    /// Where it looks.
    #[schema(min_items = 1, max_items = 4)]
    pub on: Vec<GuardrailStage>,
    /// What it looks for.
    #[serde(rename = "type")]
    pub kind: GuardrailKind,
    /// What happens when it finds something.
    pub action: GuardrailAction,
    /// With `regex`: a regular expression without look-around and back-references.
    #[schema(min_length = 1, max_length = 1000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// With `blocklist`: the words.
    #[schema(min_items = 1, max_items = 500)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<GuardrailWord>>,
    /// With `pii`: the kinds; all if not given.
    #[schema(min_items = 1, max_items = 5)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pii: Option<Vec<PiiKind>>,
    /// With `max_length`: the most characters.
    #[schema(minimum = 1, maximum = 100_000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_characters: Option<i64>,
    /// With `replace`: what the text becomes.
    #[schema(min_length = 1, max_length = 1000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
}

/// Checks what a schema cannot say. `hands_off` says whether the agent may leave a conversation to people.
pub(crate) fn check(guardrails: &[Guardrail], hands_off: bool) -> Result<()> {
    let errors = guardrails.iter().enumerate().flat_map(|(place, guardrail)| {
        let at = move |name: &str| format!("guardrails[{place}].{name}");
        let mut errors = guardrail.field_errors(&at);
        errors.extend(guardrail.place_errors(&at));
        if guardrail.action == GuardrailAction::Handoff && !hands_off {
            let rule = "can be `handoff` only where `handoff.enabled` is true";
            errors.push(FieldError::new(at("action"), rule));
        }
        errors
    });
    Error::all_invalid(errors.collect()).map_or(Ok(()), Err)
}

impl Guardrail {
    /// Fields that its kind or action needs or does not have.
    fn field_errors(&self, at: &impl Fn(&str) -> String) -> Vec<FieldError> {
        let kind = self.kind;
        let fields = [
            ("pattern", self.pattern.is_some(), kind == GuardrailKind::Regex, true, "`regex`"),
            ("words", self.words.is_some(), kind == GuardrailKind::Blocklist, true, "`blocklist`"),
            ("pii", self.pii.is_some(), kind == GuardrailKind::Pii, false, "`pii`"),
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
        if let Some(Err(error)) = self.pattern.as_deref().map(pattern) {
            errors.push(FieldError::new(at("pattern"), format_args!("cannot be used: {error}")));
        }
        errors
    }

    /// Places where its kind cannot look, and actions that it cannot take there.
    fn place_errors(&self, at: &impl Fn(&str) -> String) -> Vec<FieldError> {
        use GuardrailStage::{Input, Output, ToolCall, ToolResult};
        let places: &[GuardrailStage] = match self.kind {
            GuardrailKind::Json => &[Output],
            GuardrailKind::PromptInjection => &[Input, ToolResult],
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
        if self.on.contains(&ToolCall) && self.action == GuardrailAction::Replace {
            let rule = "cannot be `replace` on `tool_call`: a text cannot stand for arguments";
            errors.push(FieldError::new(at("action"), rule));
        }
        errors
    }
}

/// Compiles a caller's pattern.
pub(crate) fn pattern(text: &str) -> std::result::Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(LARGEST_PATTERN).build()
}
