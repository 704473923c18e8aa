//! Guardrails of type `function`: what a code function is asked about a text, and what its answer means.

use super::settings::{GuardrailAction, GuardrailKind, GuardrailStage};
use super::{CompiledGuardrails, Finding, GuardrailReport};
use model::{FunctionId, JsonText};
use serde::{Deserialize, Serialize};

/// The longest reason that is recorded, in characters.
const LONGEST_REASON: usize = 500;

/// A question to a code function: its input.
#[derive(Debug, Serialize)]
pub struct FunctionQuestion<'a> {
    /// Which text it is.
    pub stage: GuardrailStage,
    /// The text: of arguments and results, their JSON.
    pub text: &'a str,
    /// The tool that is called, or that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
}

/// The answer of a code function: its output.
#[derive(Debug, Deserialize)]
struct Verdict {
    allow: bool,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    reason: Option<String>,
}

/// A guardrail that asks a code function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionRule {
    place: usize,
    /// The function.
    pub function: FunctionId,
    action: GuardrailAction,
    replacement: String,
}

impl CompiledGuardrails {
    /// Returns the guardrails that ask code functions about this text, in their order.
    pub fn functions(&self, stage: GuardrailStage) -> Vec<FunctionRule> {
        let rule = |(place, guard): (usize, &super::CompiledGuardrail)| {
            let (action, replacement) = (guard.action, guard.replacement.clone());
            Some(FunctionRule { place, function: guard.function?, action, replacement })
        };
        self.on(stage).filter_map(rule).collect()
    }
}

impl FunctionRule {
    /// Takes an answer, or the reason why there is none: records it in the report, and leaves of the text what may go further. A
    /// function that fails blocks the text, unless the guardrail only flags.
    pub fn take(&self, answer: Result<&JsonText, &str>, text: &mut String, report: &mut GuardrailReport) {
        let verdict = answer.map_err(str::to_owned).and_then(|output| {
            let verdict = output.parse::<Verdict>();
            verdict.map_err(|_| "its output has no `allow` that is true or false".to_owned())
        });
        let reason = match verdict {
            Ok(Verdict { text: Some(masked), reason, .. }) if self.action == GuardrailAction::Mask => {
                if *text == masked {
                    return;
                }
                *text = masked;
                reason
            }
            Ok(Verdict { allow: true, .. }) => return,
            Ok(Verdict { reason, .. }) => {
                match self.action {
                    GuardrailAction::Flag => {}
                    GuardrailAction::Replace => self.replacement.clone_into(text),
                    GuardrailAction::Handoff => (report.blocked, report.handoff) = (true, true),
                    // Without a masked text nothing of it may go further.
                    GuardrailAction::Mask | GuardrailAction::Block => report.blocked = true,
                }
                reason
            }
            Err(why) => {
                report.blocked |= self.action != GuardrailAction::Flag;
                Some(format!("The function failed: {why}"))
            }
        };
        if report.blocked {
            text.clear();
        }
        let reason = reason.map(|reason| reason.replace('\0', "").chars().take(LONGEST_REASON).collect());
        let kind = GuardrailKind::Function;
        report.findings.push(Finding {
            guardrail: self.place,
            kind,
            action: self.action,
            matches: 1,
            reason,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn taken(action: &str, answer: Result<Value, &str>) -> (String, GuardrailReport) {
        let mut rule = json!({ "on": ["output"], "type": "function", "function_id": 7, "action": action });
        if action == "replace" {
            rule["replacement"] = "other".into();
        }
        let rules = vec![serde_json::from_value(rule).unwrap()];
        crate::check(&rules, true).unwrap();
        let rules = CompiledGuardrails::new(&rules).unwrap().functions(GuardrailStage::Output);
        let (mut text, mut report) = ("secret".to_owned(), GuardrailReport::default());
        let answer = answer.map(|answer| JsonText::of(&answer));
        rules[0].take(answer.as_ref().map_err(|why| *why), &mut text, &mut report);
        (text, report)
    }

    #[test]
    fn answers_act_as_the_guardrail_says() {
        let refusal = || Ok(json!({ "allow": false, "reason": "Too long." }));
        for (action, answer, text, blocked) in [
            ("block", Ok(json!({ "allow": true, "text": "ignored" })), "secret", false),
            ("block", refusal(), "", true),
            ("handoff", refusal(), "", true),
            ("flag", refusal(), "secret", false),
            ("replace", refusal(), "other", false),
            ("mask", Ok(json!({ "allow": false, "text": "***" })), "***", false),
            ("mask", Ok(json!({ "allow": true, "text": "***" })), "***", false),
            ("mask", refusal(), "", true),
            ("flag", Err("function_timeout"), "secret", false),
            ("mask", Err("function_timeout"), "", true),
            ("replace", Ok(json!({ "text": "x" })), "", true),
            ("block", Ok(json!("yes")), "", true),
        ] {
            let case = format!("{action} {answer:?}");
            let (left, report) = taken(action, answer);
            assert_eq!((left.as_str(), report.blocked), (text, blocked), "{case}");
        }
        let (_, report) = taken("block", refusal());
        assert_eq!(report.findings[0].reason.as_deref(), Some("Too long."));
        let (_, report) = taken("block", Err("function_timeout"));
        assert_eq!(report.findings[0].reason.as_deref(), Some("The function failed: function_timeout"));
        assert!(taken("handoff", refusal()).1.handoff && !taken("handoff", Err("x")).1.handoff);
    }
}
