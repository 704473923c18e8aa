//! Guardrails: inspection of inputs, answers, tool calls and their results, and the actions on findings.

mod detectors;
mod prompt_injection;

use self::detectors::{Detector, plain};
use crate::run::{Ending, StepRow, ToolOutput, effect_key};
use agents::Settings;
use agents::guardrails::{Guardrail, GuardrailAction, GuardrailKind, GuardrailStage};
use model::{JsonText, Result};
use providers::{Completion, Finish, ToolCall, json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Guardrails of an agent with compiled patterns.
#[derive(Default)]
pub(crate) struct CompiledGuardrails(Vec<CompiledGuardrail>);

struct CompiledGuardrail {
    on: Vec<GuardrailStage>,
    kind: GuardrailKind,
    action: GuardrailAction,
    detectors: Vec<Detector>,
    replacement: String,
}

/// Result of guardrails for a value.
#[derive(Debug, PartialEq)]
struct Inspection {
    /// The value after masking and replacing.
    value: Value,
    report: GuardrailReport,
}

/// Report of guardrails, as stored in a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardrailReport {
    /// The inspected value is blocked.
    pub(crate) blocked: bool,
    /// The run ends and is handed off to people.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) handoff: bool,
    pub(crate) findings: Vec<Finding>,
}

/// Matches of one guardrail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// Its place among the agent's guardrails, from 0.
    pub(crate) guardrail: usize,
    #[serde(rename = "type")]
    pub(crate) kind: GuardrailKind,
    pub(crate) action: GuardrailAction,
    /// The number of matches.
    pub(crate) matches: usize,
}

/// Report of guardrails, with the place of the findings.
pub(crate) struct GuardrailFinding {
    pub(crate) stage: GuardrailStage,
    /// The inspected call or step, as the guardrail step shows it.
    pub(crate) at: Value,
    pub(crate) report: GuardrailReport,
}

impl GuardrailReport {
    /// Returns the ending of the run, if the findings end it.
    pub(crate) fn ending(&self, stage: GuardrailStage, settings: &Settings) -> Option<Ending> {
        if self.handoff {
            return Some(Ending::Incomplete("handoff", settings.fallback_message.clone()));
        }
        // Without a tool's call or result the run can go on.
        let ends = matches!(stage, GuardrailStage::Input | GuardrailStage::Output);
        (self.blocked && ends).then_some(Ending::Incomplete("guardrail", None))
    }
}

impl CompiledGuardrails {
    pub(crate) fn new(guardrails: &[Guardrail]) -> Result<Self> {
        guardrails.iter().map(CompiledGuardrail::new).collect::<Result<_>>().map(Self)
    }

    /// Returns whether a guardrail inspects this stage.
    pub(crate) fn inspects(&self, stage: GuardrailStage) -> bool {
        self.0.iter().any(|guard| guard.on.contains(&stage))
    }

    /// Looks at a text, and leaves of it what may go further: nothing where it is blocked.
    pub(crate) fn inspect(&self, stage: GuardrailStage, text: &mut String) -> Option<GuardrailReport> {
        inspect(self.on(stage), text)
    }

    /// Looks at what the model says and at the calls that it asks for, and leaves of them what may go further. With
    /// `has_schema` the schema checks its form, and a wrong one is sent back.
    pub(crate) fn inspect_answer(&self, answer: &mut Completion, has_schema: bool) -> Vec<GuardrailFinding> {
        // What comes with calls is no answer yet, and what was cut before it began is asked for once more.
        let begun = answer.finish != Finish::Length || !answer.text.trim().is_empty();
        let is_checked = answer.tool_calls.is_empty() && begun && !has_schema;
        let stage = GuardrailStage::Output;
        let guardrails = self.on(stage).filter(|(_, guard)| is_checked || guard.kind != GuardrailKind::Json);
        let said = inspect(guardrails, &mut answer.text).map(|report| GuardrailFinding {
            stage,
            at: json!({}),
            report,
        });
        let calls = answer.tool_calls.iter_mut().filter_map(|call| {
            let at = json!({ "tool": call.name });
            let report = self.inspect_call(call)?;
            Some(GuardrailFinding { stage: GuardrailStage::ToolCall, at, report })
        });
        said.into_iter().chain(calls).collect()
    }

    /// Looks at the arguments of a call, and leaves of them what may be sent.
    fn inspect_call(&self, call: &mut ToolCall) -> Option<GuardrailReport> {
        let arguments = json::exact(&effect_key::arguments_of(call));
        let Inspection { value, mut report } = look(self.on(GuardrailStage::ToolCall), arguments.clone())?;
        if report.blocked {
            call.arguments = effect_key::withheld().to_string();
        } else if value.is_object() && value != arguments {
            call.arguments = value.to_string();
        } else if value != arguments {
            // What was cut is no object any more, and nothing that a tool could be called with.
            report.blocked = true;
            call.arguments = effect_key::withheld().to_string();
        }
        Some(report)
    }

    /// Looks at what a tool brought, and leaves of it what the model may see.
    pub(crate) fn inspect_result(&self, step: &mut StepRow) -> Option<GuardrailFinding> {
        let stage = GuardrailStage::ToolResult;
        self.on(stage).next()?;
        let mut output: ToolOutput = step.output.as_ref()?.parse().ok()?;
        let result = json::exact(&output.result);
        let Inspection { value, report } = look(self.on(stage), result.clone())?;
        let run = output.run.take();
        if report.blocked {
            output = ToolOutput::error("the result was withheld by a guardrail");
        } else if value != result {
            output = ToolOutput::new(output.ok, &value);
        }
        output.run = run;
        step.output = Some(JsonText::of(&output));
        Some(GuardrailFinding { stage, at: json!({ "position": step.position }), report })
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
        report.findings.push(Finding { guardrail: place, kind: guard.kind, action: guard.action, matches });
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

    fn guardrails(rules: Value) -> CompiledGuardrails {
        let rules: Vec<Guardrail> = serde_json::from_value(rules).unwrap();
        agents::guardrails::check(&rules, true).unwrap();
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

    fn called(rules: Value, arguments: &str) -> (String, Option<GuardrailReport>) {
        let mut call = ToolCall { id: String::new(), name: "t".into(), arguments: arguments.to_owned() };
        let report = guardrails(rules).inspect_call(&mut call);
        (call.arguments, report)
    }

    #[test]
    fn every_text_of_arguments_is_looked_at_as_it_reads() {
        let rule = |kind: Value, action: &str| {
            let mut rule = kind;
            rule["on"] = json!(["tool_call"]);
            rule["action"] = json!(action);
            json!([rule])
        };
        let words = json!({ "type": "blocklist", "words": ["bomb"] });
        let masked = called(rule(words.clone(), "mask"), r#"{ "a": ["x\nbomb", 7], "bomb": null }"#).0;
        assert_eq!(masked, r#"{"a":["x\n***",7],"***":null}"#);
        let card = r#"{"card":4111111111111111,"sum":12.5}"#;
        assert_eq!(called(rule(json!({ "type": "pii" }), "mask"), card).0, r#"{"card":"[card]","sum":12.5}"#);
        let (flagged, report) = called(rule(words.clone(), "flag"), r#"{ "a": "bomb" }"#);
        assert_eq!((flagged.as_str(), report.unwrap().blocked), (r#"{ "a": "bomb" }"#, false));
        assert_eq!(called(rule(words.clone(), "block"), r#"{"a":"b"}"#), (r#"{"a":"b"}"#.to_owned(), None));
        let long = json!({ "type": "max_length", "max_characters": 10 });
        for (rule, arguments) in [
            (rule(words.clone(), "block"), r#"{"a":"bomb"}"#),
            (rule(words, "block"), "a bomb that is no JSON"),
            (rule(long, "mask"), r#"{"a":"twelve"}"#),
        ] {
            let (left, report) = called(rule, arguments);
            assert_eq!(
                (left, report.unwrap().blocked),
                (effect_key::withheld().to_string(), true),
                "{arguments}"
            );
        }
    }

    #[test]
    fn answers_must_be_json_where_nothing_else_checks_them() {
        let guardrails = guardrails(json!([{ "on": ["output"], "type": "json", "action": "handoff" }]));
        let ended = |finish: Finish, text: &str, calls: &[&str], has_schema| {
            let call = |name: &&str| ToolCall {
                id: String::new(),
                name: (*name).to_owned(),
                arguments: String::new(),
            };
            let mut answer = Completion {
                text: text.to_owned(),
                tool_calls: calls.iter().map(call).collect(),
                finish,
                usage: None,
            };
            guardrails.inspect_answer(&mut answer, has_schema).pop().map(|found| found.report)
        };
        let checked = |text: &str, calls: &[&str], has_schema| ended(Finish::Stop, text, calls, has_schema);
        for fine in ["{}", " [1, 2]\n", "\"text\"", "7"] {
            assert_eq!(checked(fine, &[], false), None, "{fine}");
        }
        for wrong in ["", "{", "Sure: {}", "{} {}"] {
            let report = checked(wrong, &[], false).unwrap();
            assert!(report.blocked && report.handoff, "{wrong}");
            let settings = Settings { fallback_message: Some("One moment.".into()), ..Settings::default() };
            let ending = report.ending(GuardrailStage::Output, &settings);
            assert!(
                matches!(ending, Some(Ending::Incomplete("handoff", Some(text))) if text == "One moment.")
            );
        }
        assert_eq!(checked("I look.", &["look"], false), None);
        assert_eq!(checked("no JSON", &[], true), None);
        assert_eq!(ended(Finish::Length, " ", &[], false), None);
        assert!(ended(Finish::Length, "{", &[], false).is_some());
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
            let error = agents::guardrails::check(&rules, false).unwrap_err();
            assert_eq!(error.param_name(), Some(param), "{rule}");
        }
    }
}
