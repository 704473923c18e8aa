//! Text search of guardrails, in every text of a value.

use super::prompt_injection;
use super::settings::{Guardrail, GuardrailKind, GuardrailWord, PiiKind, pattern};
use model::{Error, Result};
use regex::Regex;
use serde_json::Value;
use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

/// The replacement of masked text without a name of its own.
const MASK: &str = "***";

/// The maximum number of matches of a pattern in a text. Each search can read the whole rest of the text, so a pattern that
/// matches at every letter would take quadratic time. The rest behind the last match counts as one match.
const MOST_SEARCHES: usize = 10_000;

/// Detector of one kind of text.
pub(crate) enum Detector {
    /// With what takes its place.
    Pattern(Regex, &'static str),
    Personal(PiiKind, Regex),
    Longer(usize),
    NotJson,
}

/// Returns the detectors of a guardrail.
///
/// # Errors
/// `internal_error` for patterns that were not checked.
pub(crate) fn detectors(guardrail: &Guardrail) -> Result<Vec<Detector>> {
    Ok(match guardrail.kind {
        GuardrailKind::Regex => {
            let found = pattern(guardrail.pattern.as_deref().unwrap_or_default());
            vec![Detector::Pattern(found.map_err(Error::internal)?, MASK)]
        }
        GuardrailKind::Blocklist => {
            vec![Detector::Pattern(words(guardrail.words.as_deref().unwrap_or_default())?, MASK)]
        }
        GuardrailKind::Pii => {
            let wanted = guardrail.pii.as_deref().unwrap_or(&PiiKind::ALL);
            let patterns = PERSONAL.as_ref().map_err(|error| Error::internal(error.clone()))?;
            let wanted = patterns.iter().filter(|(kind, _)| wanted.contains(kind));
            wanted.map(|(kind, pattern)| Detector::Personal(*kind, pattern.clone())).collect()
        }
        GuardrailKind::MaxLength => {
            let most = guardrail.max_characters.unwrap_or(i64::MAX);
            vec![Detector::Longer(usize::try_from(most).unwrap_or(usize::MAX))]
        }
        GuardrailKind::PromptInjection => {
            let patterns = prompt_injection::patterns()?;
            patterns
                .iter()
                .map(|pattern| Detector::Pattern(pattern.clone(), prompt_injection::MASK))
                .collect()
        }
        GuardrailKind::Json => vec![Detector::NotJson],
        // A model finds them.
        GuardrailKind::Topic | GuardrailKind::Function => Vec::new(),
    })
}

impl Detector {
    /// The value without what is found in it. Adds to `matches` how often that is.
    pub(crate) fn masked(&self, value: Value, matches: &mut usize) -> Value {
        match self {
            Self::Pattern(pattern, with) => {
                each_text(value, &mut |text| mask(pattern, text, with, |_| true, matches))
            }
            Self::Personal(kind, pattern) => each_text(value, &mut |text| {
                mask(pattern, text, mask_of(*kind), |found| is_personal(*kind, found), matches)
            }),
            Self::Longer(most) => {
                let text = plain(&value);
                let Some((end, _)) = text.char_indices().nth(*most) else { return value };
                *matches += 1;
                Value::String(text.get(..end).unwrap_or_default().to_owned())
            }
            Self::NotJson => {
                let is_json = serde_json::from_str::<serde::de::IgnoredAny>(plain(&value).trim()).is_ok();
                *matches += usize::from(!is_json);
                value
            }
        }
    }
}

/// A value as text: what it says, or its JSON.
pub(crate) fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

/// Changes every text in a value, names of fields and digits of numbers included. JSON's own spelling would hide what
/// stands behind a line break.
fn each_text(value: Value, change: &mut impl FnMut(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(&text)),
        Value::Number(number) => {
            let text = number.to_string();
            let changed = change(&text);
            if changed == text { Value::Number(number) } else { Value::String(changed) }
        }
        Value::Array(items) => items.into_iter().map(|item| each_text(item, change)).collect(),
        Value::Object(fields) => {
            let changed = fields.into_iter().map(|(name, value)| (change(&name), each_text(value, change)));
            Value::Object(changed.collect())
        }
        other @ (Value::Null | Value::Bool(_)) => other,
    }
}

fn mask(
    pattern: &Regex,
    text: &str,
    with: &str,
    counts: impl Fn(&str) -> bool,
    matches: &mut usize,
) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut copied = 0;
    for (number, found) in pattern.find_iter(text).enumerate() {
        let is_last = number == MOST_SEARCHES;
        // What matches nothing, as `x*` does between letters, has found nothing.
        if !is_last && (found.is_empty() || !counts(found.as_str())) {
            continue;
        }
        masked.push_str(text.get(copied..found.start()).unwrap_or_default());
        masked.push_str(with);
        *matches += 1;
        if is_last {
            return masked;
        }
        copied = found.end();
    }
    masked.push_str(text.get(copied..).unwrap_or_default());
    masked
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

/// Checks what a pattern cannot: check digits and ranges.
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
