//! Guardrails of a run: inspection of its answers, tool calls and their results, and the endings that findings cause.

use crate::run::{Ending, StepRow, ToolOutput, effect_key};
use ::guardrails::{CompiledGuardrails, GuardrailReport, GuardrailStage, Inspection};
use agents::Settings;
use model::JsonText;
use providers::{Completion, Finish, ToolCall, json};
use serde_json::{Value, json};

/// Report of guardrails, with the place of the findings.
pub(crate) struct GuardrailFinding {
    pub(crate) stage: GuardrailStage,
    /// The inspected call or step, as the guardrail step shows it.
    pub(crate) at: Value,
    pub(crate) report: GuardrailReport,
}

/// Returns the ending of the run, if the findings end it.
pub(crate) fn ending(report: &GuardrailReport, stage: GuardrailStage, settings: &Settings) -> Option<Ending> {
    if report.handoff {
        return Some(Ending::Incomplete("handoff", settings.fallback_message.clone()));
    }
    // Without a tool's call or result the run can go on.
    let ends = matches!(stage, GuardrailStage::Input | GuardrailStage::Output);
    (report.blocked && ends).then_some(Ending::Incomplete("guardrail", None))
}

/// Looks at what the model says and at the calls that it asks for, and leaves of them what may go further. With `has_schema` the
/// schema checks its form, and a wrong one is sent back.
pub(crate) fn inspect_answer(
    guardrails: &CompiledGuardrails,
    answer: &mut Completion,
    has_schema: bool,
) -> Vec<GuardrailFinding> {
    // What comes with calls is no answer yet, and what was cut before it began is asked for once more.
    let begun = answer.finish != Finish::Length || !answer.text.trim().is_empty();
    let is_checked = answer.tool_calls.is_empty() && begun && !has_schema;
    let said = guardrails.inspect_output(&mut answer.text, is_checked).map(|report| GuardrailFinding {
        stage: GuardrailStage::Output,
        at: json!({}),
        report,
    });
    let calls = answer.tool_calls.iter_mut().filter_map(|call| {
        let at = json!({ "tool": call.name });
        let report = inspect_call(guardrails, call)?;
        Some(GuardrailFinding { stage: GuardrailStage::ToolCall, at, report })
    });
    said.into_iter().chain(calls).collect()
}

/// Looks at the arguments of a call, and leaves of them what may be sent.
fn inspect_call(guardrails: &CompiledGuardrails, call: &mut ToolCall) -> Option<GuardrailReport> {
    let arguments = json::exact(&effect_key::arguments_of(call));
    let Inspection { value, mut report } =
        guardrails.inspect_value(GuardrailStage::ToolCall, arguments.clone())?;
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
pub(crate) fn inspect_result(
    guardrails: &CompiledGuardrails,
    step: &mut StepRow,
) -> Option<GuardrailFinding> {
    let stage = GuardrailStage::ToolResult;
    if !guardrails.inspects(stage) {
        return None;
    }
    let mut output: ToolOutput = step.output.as_ref()?.parse().ok()?;
    let result = json::exact(&output.result);
    let Inspection { value, report } = guardrails.inspect_value(stage, result.clone())?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use ::guardrails::Guardrail;

    fn guardrails(rules: Value) -> CompiledGuardrails {
        let rules: Vec<Guardrail> = serde_json::from_value(rules).unwrap();
        ::guardrails::check(&rules, true).unwrap();
        CompiledGuardrails::new(&rules).unwrap()
    }

    fn called(rules: Value, arguments: &str) -> (String, Option<GuardrailReport>) {
        let mut call = ToolCall { id: String::new(), name: "t".into(), arguments: arguments.to_owned() };
        let report = inspect_call(&guardrails(rules), &mut call);
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
            inspect_answer(&guardrails, &mut answer, has_schema).pop().map(|found| found.report)
        };
        let checked = |text: &str, calls: &[&str], has_schema| ended(Finish::Stop, text, calls, has_schema);
        for fine in ["{}", " [1, 2]\n", "\"text\"", "7"] {
            assert_eq!(checked(fine, &[], false), None, "{fine}");
        }
        for wrong in ["", "{", "Sure: {}", "{} {}"] {
            let report = checked(wrong, &[], false).unwrap();
            assert!(report.blocked && report.handoff, "{wrong}");
            let settings = Settings { fallback_message: Some("One moment.".into()), ..Settings::default() };
            let ending = ending(&report, GuardrailStage::Output, &settings);
            assert!(
                matches!(ending, Some(Ending::Incomplete("handoff", Some(text))) if text == "One moment.")
            );
        }
        assert_eq!(checked("I look.", &["look"], false), None);
        assert_eq!(checked("no JSON", &[], true), None);
        assert_eq!(ended(Finish::Length, " ", &[], false), None);
        assert!(ended(Finish::Length, "{", &[], false).is_some());
    }
}
