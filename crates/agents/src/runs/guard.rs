//! Guardrails at work: what they find in a text, and what becomes of it.

use super::engine::RunEngine;
use super::step::step_at;
use super::trace::{StepKind, StepRow, ToolOutput};
use super::work::Work;
use crate::agents::guardrails::{
    Guardrail, GuardrailAction, GuardrailKind, GuardrailStage, GuardrailWord, PiiKind, pattern,
};
use model::{Error, JsonText, Result};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

/// What stands in the place of what was masked, where it has no name of its own.
const MASK: &str = "***";

/// An agent's guardrails, ready to look.
#[derive(Default)]
pub(super) struct Guards(Vec<Guard>);

struct Guard {
    on: Vec<GuardrailStage>,
    kind: GuardrailKind,
    action: GuardrailAction,
    finders: Vec<Finder>,
    replacement: String,
}

enum Finder {
    Pattern(Regex),
    Personal(PiiKind, Regex),
    Longer(usize),
}

/// What guardrails made of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// What is left of it.
    pub(super) text: String,
    pub(super) report: Report,
}

/// What guardrails found, as stored in a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    /// Whether the text goes no further.
    pub(super) blocked: bool,
    pub(super) findings: Vec<Finding>,
}

/// What one guardrail found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    /// Its place among the agent's guardrails, from 0.
    pub(super) guardrail: usize,
    #[serde(rename = "type")]
    pub(super) kind: GuardrailKind,
    pub(super) action: GuardrailAction,
    /// How often.
    pub(super) matches: usize,
}

impl RunEngine {
    /// Adds what guardrails found to a run's steps. It is written with what follows.
    pub(super) fn note(&self, work: &mut Work, stage: GuardrailStage, input: &Value, report: &Report) {
        let now = self.db().clock().now();
        let mut step = step_at(now, &*self.db().random(), work, StepKind::Guardrail);
        "completed".clone_into(&mut step.status);
        stage.as_str().clone_into(&mut step.name);
        step.input = Some(JsonText::of(input));
        step.output = Some(JsonText::of(report));
        step.completed_at = Some(now);
        work.steps.push(step);
    }
}

impl Guards {
    pub(super) fn new(guardrails: &[Guardrail]) -> Result<Self> {
        guardrails.iter().map(Guard::new).collect::<Result<_>>().map(Self)
    }

    /// Whether anything is looked for at this stage.
    pub(super) fn watch(&self, stage: GuardrailStage) -> bool {
        self.0.iter().any(|guard| guard.on.contains(&stage))
    }

    /// Looks at a text, and leaves of it what may go further: nothing where it is blocked.
    pub(super) fn look_at(&self, stage: GuardrailStage, text: &mut String) -> Option<Report> {
        let verdict = self.look(stage, text)?;
        *text = if verdict.report.blocked { String::new() } else { verdict.text };
        Some(verdict.report)
    }

    /// Looks at what a tool brought, and leaves of it what the model may see.
    pub(super) fn look_at_result(&self, step: &mut StepRow) -> Option<Report> {
        let mut output: ToolOutput = step.output.as_ref()?.parse().ok()?;
        let text = match &output.result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let verdict = self.look(GuardrailStage::ToolResult, &text)?;
        if verdict.report.blocked {
            output = ToolOutput::error("the result was withheld by a guardrail");
        } else if verdict.text != text {
            // What was masked in JSON is JSON still where only texts were masked.
            let read =
                if output.result.is_string() { None } else { serde_json::from_str(&verdict.text).ok() };
            output.result = read.unwrap_or(Value::String(verdict.text));
        }
        step.output = Some(JsonText::of(&output));
        Some(verdict.report)
    }

    /// Looks at a text. `None` where nothing was found.
    fn look(&self, stage: GuardrailStage, text: &str) -> Option<Verdict> {
        let mut verdict = Verdict { text: text.to_owned(), report: Report::default() };
        for (place, guard) in self.0.iter().enumerate().filter(|(_, guard)| guard.on.contains(&stage)) {
            let (matches, masked) = guard.masked(&verdict.text);
            if matches == 0 {
                continue;
            }
            let finding = Finding { guardrail: place, kind: guard.kind, action: guard.action, matches };
            verdict.report.findings.push(finding);
            match guard.action {
                GuardrailAction::Flag => {}
                GuardrailAction::Mask => verdict.text = masked,
                GuardrailAction::Replace => verdict.text.clone_from(&guard.replacement),
                GuardrailAction::Block => {
                    verdict.report.blocked = true;
                    break;
                }
            }
        }
        (!verdict.report.findings.is_empty()).then_some(verdict)
    }
}

impl Guard {
    fn new(guardrail: &Guardrail) -> Result<Self> {
        let finders = match guardrail.kind {
            GuardrailKind::Regex => {
                vec![Finder::Pattern(pattern(guardrail.pattern.as_deref().unwrap_or_default())?)]
            }
            GuardrailKind::Blocklist => {
                vec![Finder::Pattern(words(guardrail.words.as_deref().unwrap_or_default())?)]
            }
            GuardrailKind::Pii => {
                let all = PERSONAL.as_ref().map_err(|error| Error::internal(error.clone()))?;
                let wanted = |kind| guardrail.pii.as_ref().is_none_or(|kinds| kinds.contains(&kind));
                let wanted = all.iter().filter(|(kind, _)| wanted(*kind));
                wanted.map(|(kind, pattern)| Finder::Personal(*kind, pattern.clone())).collect()
            }
            GuardrailKind::MaxLength => {
                let most = guardrail.max_characters.unwrap_or(i64::MAX);
                vec![Finder::Longer(usize::try_from(most).unwrap_or(usize::MAX))]
            }
        };
        Ok(Self {
            on: guardrail.on.clone(),
            kind: guardrail.kind,
            action: guardrail.action,
            finders,
            replacement: guardrail.replacement.clone().unwrap_or_default(),
        })
    }

    /// How often something was found, and the text without it.
    fn masked(&self, text: &str) -> (usize, String) {
        let mut text = text.to_owned();
        let mut matches = 0;
        for finder in &self.finders {
            text = match finder {
                Finder::Pattern(pattern) => mask(pattern, &text, MASK, |_| true, &mut matches),
                Finder::Personal(kind, pattern) => {
                    mask(pattern, &text, mask_of(*kind), |found| is_personal(*kind, found), &mut matches)
                }
                Finder::Longer(most) => match text.char_indices().nth(*most) {
                    Some((end, _)) => {
                        matches += 1;
                        text.get(..end).unwrap_or_default().to_owned()
                    }
                    None => text,
                },
            };
        }
        (matches, text)
    }
}

fn mask(
    pattern: &Regex,
    text: &str,
    with: &str,
    counts: impl Fn(&str) -> bool,
    matches: &mut usize,
) -> String {
    let replaced = pattern.replace_all(text, |found: &regex::Captures<'_>| {
        let found = found.get(0).map_or("", |whole| whole.as_str());
        // What matches nothing, as `x*` does between letters, has found nothing.
        if found.is_empty() || !counts(found) {
            return found.to_owned();
        }
        *matches += 1;
        with.to_owned()
    });
    replaced.into_owned()
}

/// Whole words, whatever the case. A word that begins or ends with a sign has no edge there.
fn words(words: &[GuardrailWord]) -> Result<Regex> {
    let edge = |letter: Option<char>| {
        if letter.is_some_and(|c| c.is_alphanumeric() || c == '_') { r"\b" } else { "" }
    };
    let choices: Vec<String> = words
        .iter()
        .map(|GuardrailWord(word)| {
            let word = word.trim();
            format!("{}{}{}", edge(word.chars().next()), regex::escape(word), edge(word.chars().last()))
        })
        .collect();
    regex::RegexBuilder::new(&choices.join("|"))
        .case_insensitive(true)
        .size_limit(16 << 20)
        .build()
        .map_err(Error::internal)
}

/// The patterns of personal data, compiled when first needed.
static PERSONAL: LazyLock<std::result::Result<Vec<(PiiKind, Regex)>, regex::Error>> =
    LazyLock::new(|| PiiKind::ALL.into_iter().map(|kind| Ok((kind, personal(kind)?))).collect());

fn personal(kind: PiiKind) -> std::result::Result<Regex, regex::Error> {
    let pattern = match kind {
        PiiKind::Email => r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}",
        PiiKind::Iban => r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b",
        PiiKind::Card => r"\b\d(?:[ -]?\d){12,18}\b",
        PiiKind::Ip => r"\b\d{1,3}(?:\.\d{1,3}){3}\b",
        PiiKind::Phone => {
            r"(?:\+|\b00)\d[\d ()./-]{5,17}\d\b|\b0\d[\d ()/-]{5,14}\d\b|\(?\b\d{3}\)?[ .-]\d{3}[ .-]\d{4}\b"
        }
    };
    Regex::new(pattern)
}

fn mask_of(kind: PiiKind) -> &'static str {
    match kind {
        PiiKind::Email => "[email]",
        PiiKind::Iban => "[iban]",
        PiiKind::Card => "[card]",
        PiiKind::Ip => "[ip]",
        PiiKind::Phone => "[phone]",
    }
}

/// What a pattern cannot tell: whether check digits fit.
fn is_personal(kind: PiiKind, found: &str) -> bool {
    match kind {
        PiiKind::Email | PiiKind::Phone => true,
        PiiKind::Ip => found.parse::<Ipv4Addr>().is_ok(),
        PiiKind::Card => {
            let digits = found.chars().rev().filter_map(|letter| letter.to_digit(10));
            let sum: u32 = digits
                .enumerate()
                .map(|(place, digit)| if place % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 })
                .sum();
            sum.is_multiple_of(10)
        }
        PiiKind::Iban => {
            let letters: Vec<char> = found.chars().filter(|letter| *letter != ' ').collect();
            let moved = letters.iter().skip(4).chain(letters.iter().take(4));
            let rest = moved.filter_map(|letter| letter.to_digit(36)).fold(0u64, |rest, value| {
                let shifted = if value < 10 { rest * 10 } else { rest * 100 };
                (shifted + u64::from(value)) % 97
            });
            rest == 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn look(rules: Value, text: &str) -> Option<Verdict> {
        let rules: Vec<Guardrail> = serde_json::from_value(rules).unwrap();
        crate::agents::guardrails::check(&rules).unwrap();
        Guards::new(&rules).unwrap().look(GuardrailStage::Input, text)
    }

    fn masked(rule: Value, text: &str) -> String {
        let mut rule = rule;
        rule["on"] = json!(["input"]);
        rule["action"] = json!("mask");
        look(json!([rule]), text).map_or_else(|| text.to_owned(), |verdict| verdict.text)
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
    fn they_work_in_their_order_until_one_blocks() {
        let rules = json!([
            { "on": ["input"], "type": "pii", "action": "mask" },
            { "on": ["input"], "type": "regex", "pattern": "email", "action": "flag" },
            { "on": ["input"], "type": "blocklist", "words": ["email"], "action": "block" },
            { "on": ["input"], "type": "max_length", "max_characters": 1, "action": "replace", "replacement": "x" },
        ]);
        let verdict = look(rules.clone(), "a@b.example c@d.example").unwrap();
        assert!(verdict.report.blocked);
        let found: Vec<_> = verdict.report.findings.iter().map(|one| (one.guardrail, one.matches)).collect();
        assert_eq!(found, [(0, 2), (1, 2), (2, 2)]);
        let verdict = look(rules, "hello").unwrap();
        assert_eq!((verdict.text.as_str(), verdict.report.blocked), ("x", false));
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
        ] {
            let mut rule = rule;
            rule["on"] = json!(["input"]);
            let rules: Vec<Guardrail> = serde_json::from_value(json!([rule])).unwrap();
            let error = crate::agents::guardrails::check(&rules).unwrap_err();
            assert_eq!(error.param_name(), Some(param), "{rule}");
        }
    }
}
