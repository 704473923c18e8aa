//! Functions of texts, and of what may be missing.

use super::function::{Arguments, Given, LazyArguments, functions};
use super::pattern::Pattern;
use super::wanted::Wanted as W;
use crate::values::failure::Failure;
use crate::values::types::Type;
use crate::values::value::Value;
use regex::Regex;
use serde_json::Value as Json;

use Given::{Alike, Always};

functions! {
    "default"(W::Alike, W::Alike) gives Alike,
        "The first argument if it has a value, otherwise the second. An empty text or list is no value; `false` and 0 are.", r#"$contact.nickname | default: "there""# => r#""there""#,
        Lazy default;
    "is_set"(W::Anything) gives Always(Type::Boolean),
        "Whether the reference exists and is not null.", "is_set($contact.nickname)" => "false",
        Lazy is_set;
    "capitalize"(W::Text) gives Always(Type::Text),
        "The text with a capital first letter.", r#""red shoe" | capitalize"# => r#""Red shoe""#,
        Plain |a| a.of_text(capitalized);
    "truncate"(W::Text, W::Number, W::Text) least 2 gives Always(Type::Text),
        "The text, cut to so many characters with the third argument, or `…`, at its end.", "name | truncate: 5" => r#""Red …""#,
        Plain truncated;
    "split"(W::Text, W::Text) gives Always(Type::List),
        "The parts of the text between the places of the second. An empty second text gives the characters.", r#""a, b" | split: ", ""# => r#"["a","b"]"#,
        Plain split;
    "matches"(W::Text, W::Pattern) gives Always(Type::Boolean),
        "Whether the text has a part that fits the regular expression.", r#""Order 1042" | matches: "[0-9]+""# => "true",
        Plain |a| with_pattern(a, |pattern| Ok(Value::Boolean(pattern.is_match(&a.text(0)))));
    "match"(W::Text, W::Pattern) gives Always(Type::List),
        "The first part of the text that fits the regular expression, followed by its groups, or no value.", r#"match("Order 1042", "([A-Z])[a-z]+ ([0-9]+)")[2]"# => r#""1042""#,
        Plain found;
    "time"(W::Time) gives Always(Type::Time),
        "The date or time that a text shows: RFC 3339, or without an offset a time in the time zone.", r#"time("2026-11-21T23:30:00Z") = sold_at"# => "true",
        Plain |a| Ok(a.at(0).clone());
}

/// The first value, or the second one if the first has none or fails.
fn default<'a>(arguments: &LazyArguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    match arguments.value(0) {
        Ok(value) if !value.is_empty() => Ok(value),
        Err(limit) if limit.is_limit() => Err(limit),
        _ => arguments.value(1),
    }
}

fn is_set<'a>(arguments: &LazyArguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    match arguments.value(0) {
        Ok(value) => Ok(Value::Boolean(!value.is_nothing())),
        Err(Failure::Missing(_)) => Ok(Value::Boolean(false)),
        Err(other) => Err(other),
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn truncated<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    let most = arguments.count(1);
    let end = if arguments.has(2) { arguments.text(2).into_owned() } else { "…".to_owned() };
    arguments.of_text(|text| {
        if text.chars().count() <= most {
            return text.to_owned();
        }
        let kept = most.saturating_sub(end.chars().count());
        text.chars().take(kept).chain(end.chars()).take(most).collect()
    })
}

fn split<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    if !arguments.has(0) {
        return Ok(Value::Null);
    }
    let (text, between) = (arguments.text(0), arguments.text(1));
    arguments.environment.expect_short(text.len())?;
    let parts: Vec<Json> = if between.is_empty() {
        text.chars().map(|letter| letter.to_string().into()).collect()
    } else {
        text.split(&*between).map(Json::from).collect()
    };
    arguments.environment.charge(parts.len())?;
    Ok(Value::List(parts.into()))
}

/// Runs a function with the regular expression of the call: compiled once if it is written there.
fn with_pattern<'a>(
    arguments: &Arguments<'_, 'a>,
    run: impl FnOnce(&Regex) -> Result<Value<'a>, Failure>,
) -> Result<Value<'a>, Failure> {
    /// The steps that compiling one costs.
    const STEPS: usize = 2_000;
    arguments.environment.expect_short(arguments.text(0).len())?;
    match arguments.pattern {
        Some(pattern) => run(pattern.regex()),
        None => {
            arguments.environment.charge(STEPS)?;
            run(Pattern::computed(&arguments.text(1))?.regex())
        }
    }
}

fn found<'a>(arguments: &Arguments<'_, 'a>) -> Result<Value<'a>, Failure> {
    with_pattern(arguments, |pattern| {
        let text = arguments.text(0);
        let Some(captures) = pattern.captures(&text) else { return Ok(Value::Null) };
        let groups = captures.iter().map(|group| group.map_or(Json::Null, |group| group.as_str().into()));
        Ok(Value::List(groups.collect::<Vec<_>>().into()))
    })
}
