//! Guardrails: what they are to detect, as agents state it, and the pure detection in texts and values.

mod detectors;
mod functions;
mod prompt_injection;
mod settings;
mod topics;

pub use functions::{FunctionQuestion, FunctionRule};
pub use settings::{
    Guardrail, GuardrailAction, GuardrailKind, GuardrailStage, GuardrailTopic, GuardrailTopics,
    GuardrailWord, PiiKind, check, pattern,
};
pub use topics::{TopicReport, TopicRules};

use self::detectors::{Detector, plain};
use model::{FunctionId, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Guardrails of an agent with compiled patterns.
#[derive(Default)]
pub struct CompiledGuardrails(Vec<CompiledGuardrail>);

struct CompiledGuardrail {
    on: Vec<GuardrailStage>,
    kind: GuardrailKind,
    action: GuardrailAction,
    detectors: Vec<Detector>,
    replacement: String,
    topics: Option<GuardrailTopics>,
    function: Option<FunctionId>,
}

/// Result of guardrails for a value.
#[derive(Debug, PartialEq)]
pub struct Inspection {
    /// The value after masking and replacing.
    pub value: Value,
    /// The findings.
    pub report: GuardrailReport,
}

/// Report of guardrails, as stored in a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardrailReport {
    /// The inspected value is blocked.
    pub blocked: bool,
    /// The run ends and is handed off to people.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub handoff: bool,
    /// The findings, in the order of the guardrails.
    pub findings: Vec<Finding>,
}

/// Matches of one guardrail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its place among the agent's guardrails, from 0.
    pub guardrail: usize,
    /// What it detects.
    #[serde(rename = "type")]
    pub kind: GuardrailKind,
    /// What is done.
    pub action: GuardrailAction,
    /// The number of matches.
    pub matches: usize,
    /// What the code function said about it, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl CompiledGuardrails {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// `internal_error` for patterns that were not checked.
    pub fn new(guardrails: &[Guardrail]) -> Result<Self> {
        guardrails.iter().map(CompiledGuardrail::new).collect::<Result<_>>().map(Self)
    }

    /// Returns whether a guardrail inspects this stage.
    pub fn inspects(&self, stage: GuardrailStage) -> bool {
        self.0.iter().any(|guard| guard.on.contains(&stage))
    }

    /// Looks at a text, and leaves of it what may go further: nothing where it is blocked.
    pub fn inspect(&self, stage: GuardrailStage, text: &mut String) -> Option<GuardrailReport> {
        inspect(self.on(stage), text)
    }

    /// Looks at the text of an answer as [`inspect`](Self::inspect) does. `is_checked` says whether it must be JSON where a
    /// guardrail asks for that.
    pub fn inspect_output(&self, text: &mut String, is_checked: bool) -> Option<GuardrailReport> {
        let guardrails = self.on(GuardrailStage::Output);
        inspect(guardrails.filter(|(_, guard)| is_checked || guard.kind != GuardrailKind::Json), text)
    }

    /// Looks at a value. `None` where nothing was found.
    pub fn inspect_value(&self, stage: GuardrailStage, value: Value) -> Option<Inspection> {
        look(self.on(stage), value)
    }

    /// The guardrails that look there, with their places.
    fn on(&self, stage: GuardrailStage) -> impl Iterator<Item = (usize, &CompiledGuardrail)> {
        self.0.iter().enumerate().filter(move |(_, guard)| guard.on.contains(&stage))
    }
}

fn inspect<'a>(
    guardrails: impl Iterator<Item = (usize, &'a CompiledGuardrail)>,
    text: &mut String,
) -> Option<GuardrailReport> {
    let mut guardrails = guardrails.peekable();
    guardrails.peek()?;
    let Inspection { value, report } = look(guardrails, Value::String(text.clone()))?;
    *text = if report.blocked { String::new() } else { plain(&value).into_owned() };
    Some(report)
}

/// Looks at a value. `None` where nothing was found.
fn look<'a>(
    guardrails: impl Iterator<Item = (usize, &'a CompiledGuardrail)>,
    mut value: Value,
) -> Option<Inspection> {
    let mut report = GuardrailReport::default();
    for (place, guard) in guardrails {
        let (matches, masked) = guard.masked(&value);
        if matches == 0 {
            continue;
        }
        let (kind, action) = (guard.kind, guard.action);
        report.findings.push(Finding { guardrail: place, kind, action, matches, reason: None });
        match guard.action {
            GuardrailAction::Flag => {}
            GuardrailAction::Mask => value = masked,
            GuardrailAction::Replace => value = Value::String(guard.replacement.clone()),
            GuardrailAction::Block => report.blocked = true,
            GuardrailAction::Handoff => (report.blocked, report.handoff) = (true, true),
        }
        if report.blocked {
            break;
        }
    }
    (!report.findings.is_empty()).then_some(Inspection { value, report })
}

impl CompiledGuardrail {
    fn new(guardrail: &Guardrail) -> Result<Self> {
        Ok(Self {
            on: guardrail.on.clone(),
            kind: guardrail.kind,
            action: guardrail.action,
            detectors: detectors::detectors(guardrail)?,
            replacement: guardrail.replacement.clone().unwrap_or_default(),
            topics: guardrail.topics.clone(),
            function: guardrail.function_id,
        })
    }

    /// Returns the number of matches, and the value without them.
    fn masked(&self, value: &Value) -> (usize, Value) {
        let mut matches = 0;
        let mut left = value.clone();
        for detector in &self.detectors {
            left = detector.masked(left, &mut matches);
        }
        (matches, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn guardrails(rules: Value) -> CompiledGuardrails {
        let rules: Vec<Guardrail> = serde_json::from_value(rules).unwrap();
        check(&rules, true).unwrap();
        CompiledGuardrails::new(&rules).unwrap()
    }

    fn look(rules: Value, text: &str) -> Option<(String, GuardrailReport)> {
        let mut text = text.to_owned();
        let report = guardrails(rules).inspect(GuardrailStage::Input, &mut text)?;
        Some((text, report))
    }

    fn masked(rule: Value, text: &str) -> String {
        let mut rule = rule;
        rule["on"] = json!(["input"]);
        rule["action"] = json!("mask");
        look(json!([rule]), text).map_or_else(|| text.to_owned(), |(text, _)| text)
    }

    #[test]
    fn personal_data_is_found() {
        for (text, expected) in [
            ("Write to ada.b+c@mail.example.org!", "Write to [email]!"),
            ("DE89 3704 0044 0532 0130 00, GB82WEST12345698765432", "[iban], [iban]"),
            ("DE88370400440532013000", "DE88370400440532013000"),
            ("4111 1111 1111 1111 or 4111-1111-1111-1112", "[card] or 4111-1111-1111-1112"),
            ("from 192.168.0.1 to 1.2.3.400", "from [ip] to 1.2.3.400"),
            (
                "+49 30 1234567, 0049 30 1234567, 030 1234567, (555) 123-4567",
                "[phone], [phone], [phone], [phone]",
            ),
            (
                "on 2026-01-01 at 10:00 for 1,250.00 in 20 days, order 4711",
                "on 2026-01-01 at 10:00 for 1,250.00 in 20 days, order 4711",
            ),
        ] {
            assert_eq!(masked(json!({ "type": "pii" }), text), expected);
        }
        assert_eq!(
            masked(json!({ "type": "pii", "pii": ["ip"] }), "a@b.example 10.0.0.1"),
            "a@b.example [ip]"
        );
    }

    #[test]
    fn words_and_patterns_are_found() {
        let words = json!({ "type": "blocklist", "words": ["darn", "C++", "größe"] });
        assert_eq!(
            masked(words.clone(), "DARN, darned c++ code of GRÖSSE and GRÖßE"),
            "***, darned *** code of GRÖSSE and ***"
        );
        assert_eq!(masked(json!({ "type": "regex", "pattern": "[0-9]*" }), "a12b"), "a***b");
        assert_eq!(masked(json!({ "type": "max_length", "max_characters": 2 }), "äöü"), "äö");
        assert!(
            look(
                json!([{ "on": ["output"], "type": "max_length", "max_characters": 2, "action": "flag" }]),
                "äöü"
            )
            .is_none()
        );
    }

    #[test]
    fn what_is_behind_too_many_matches_counts_as_one() {
        let text = "A".repeat(10_007);
        let rules = json!([{ "on": ["input"], "type": "regex", "pattern": "[A-Z]", "action": "mask" }]);
        let (masked, report) = look(rules, &text).unwrap();
        assert_eq!((masked, report.findings[0].matches), ("***".repeat(10_001), 10_001));
    }

    #[test]
    fn they_work_in_their_order_until_one_blocks() {
        let rules = json!([
            { "on": ["input"], "type": "pii", "action": "mask" },
            { "on": ["input"], "type": "regex", "pattern": "email", "action": "flag" },
            { "on": ["input"], "type": "blocklist", "words": ["email"], "action": "block" },
            { "on": ["input"], "type": "max_length", "max_characters": 1, "action": "replace", "replacement": "x" },
        ]);
        let (text, report) = look(rules.clone(), "a@b.example c@d.example").unwrap();
        assert!(report.blocked && text.is_empty());
        let found: Vec<_> = report.findings.iter().map(|one| (one.guardrail, one.matches)).collect();
        assert_eq!(found, [(0, 2), (1, 2), (2, 2)]);
        let (text, report) = look(rules, "hello").unwrap();
        assert_eq!((text.as_str(), report.blocked), ("x", false));
    }

    #[test]
    fn rules_that_cannot_work_are_named() {
        for (rule, param) in [
            (json!({ "type": "regex", "action": "flag" }), "guardrails[0].pattern"),
            (json!({ "type": "regex", "pattern": "(", "action": "flag" }), "guardrails[0].pattern"),
            (
                json!({ "type": "regex", "pattern": "(?:x{1000}){1000}", "action": "flag" }),
                "guardrails[0].pattern",
            ),
            (json!({ "type": "regex", "pattern": "(?=x)", "action": "flag" }), "guardrails[0].pattern"),
            (json!({ "type": "blocklist", "action": "flag" }), "guardrails[0].words"),
            (json!({ "type": "pii", "pattern": "x", "action": "flag" }), "guardrails[0].pattern"),
            (json!({ "type": "max_length", "action": "flag" }), "guardrails[0].max_characters"),
            (json!({ "type": "pii", "action": "replace" }), "guardrails[0].replacement"),
            (json!({ "type": "pii", "action": "mask", "replacement": "x" }), "guardrails[0].replacement"),
            (json!({ "type": "pii", "action": "handoff" }), "guardrails[0].action"),
            (json!({ "type": "topic", "action": "block" }), "guardrails[0].topics"),
            (json!({ "type": "topic", "topics": {}, "action": "block" }), "guardrails[0].topics"),
            (
                json!({ "type": "topic", "topics": { "allowed": ["a"], "blocked": ["b"] }, "action": "block" }),
                "guardrails[0].topics",
            ),
            (
                json!({ "type": "topic", "topics": { "allowed": ["a"] }, "action": "mask" }),
                "guardrails[0].action",
            ),
            (
                json!({ "type": "topic", "topics": { "allowed": ["a"] }, "action": "replace", "replacement": "x" }),
                "guardrails[0].action",
            ),
            (
                json!({ "type": "topic", "on": ["tool_result"], "topics": { "allowed": ["a"] }, "action": "flag" }),
                "guardrails[0].on[0]",
            ),
            (
                json!({ "type": "pii", "topics": { "allowed": ["a"] }, "action": "flag" }),
                "guardrails[0].topics",
            ),
            (json!({ "type": "json", "action": "flag" }), "guardrails[0].on[0]"),
            (json!({ "type": "json", "on": ["output"], "action": "mask" }), "guardrails[0].action"),
            (
                json!({ "type": "prompt_injection", "on": ["tool_result", "output"], "action": "flag" }),
                "guardrails[0].on[1]",
            ),
            (
                json!({ "type": "pii", "on": ["tool_call"], "action": "replace", "replacement": "x" }),
                "guardrails[0].action",
            ),
        ] {
            let mut rule = rule;
            if rule["on"].is_null() {
                rule["on"] = json!(["input"]);
            }
            let rules: Vec<Guardrail> = serde_json::from_value(json!([rule])).unwrap();
            let error = check(&rules, false).unwrap_err();
            assert_eq!(error.param_name(), Some(param), "{rule}");
        }
    }
}
