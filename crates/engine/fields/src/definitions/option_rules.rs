//! Which options each type of field takes, and which values they may have.

use crate::values::json_schema;
use crate::{Choice, FieldOptions, FieldType};
use expressions::decimal::MOST_INTEGER;
use expressions::decimal::{self, Decimal};
use expressions::text;
use model::{FieldError, OptionId};
use serde_json::Value;
use std::collections::BTreeSet;

/// The most choices of a field.
pub const MOST_CHOICES: usize = 200;

/// The most bytes that a compiled regular expression takes.
const LARGEST_PATTERN: usize = 1 << 20;

/// The options that a type takes.
pub(crate) fn taken_by(kind: FieldType) -> &'static [&'static str] {
    match kind {
        FieldType::Text | FieldType::LongText | FieldType::Email | FieldType::Url => {
            &["max_length", "pattern"]
        }
        FieldType::Phone => &["max_length", "pattern", "default_country"],
        FieldType::Number | FieldType::Percent | FieldType::Duration => &["precision", "min", "max"],
        FieldType::Currency => &["precision", "min", "max", "currency"],
        FieldType::Rating => &["max"],
        FieldType::Integer => &["min", "max"],
        FieldType::Datetime => &["time_zone"],
        FieldType::Select | FieldType::MultiSelect => &["choices"],
        FieldType::Relation => {
            &["target_collection_id", "cardinality", "reverse_field_id", "reverse_field_key", "on_delete"]
        }
        FieldType::Contact | FieldType::User | FieldType::File => &["max_items"],
        FieldType::Json => &["json_schema"],
        FieldType::Formula => &["expression", "result_type", "result_error"],
        FieldType::Rollup => &["relation", "field", "aggregate", "result_type", "result_error"],
        FieldType::Lookup => &["relation", "field", "result_type", "result_error"],
        FieldType::AutoNumber
        | FieldType::Boolean
        | FieldType::Tags
        | FieldType::Date
        | FieldType::Time
        | FieldType::CreatedAt
        | FieldType::UpdatedAt
        | FieldType::CreatedBy => &[],
    }
}

/// The options that are set, by name.
pub fn as_map(options: &FieldOptions) -> serde_json::Map<String, Value> {
    match serde_json::to_value(options) {
        Ok(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}

/// Takes out what a type does not take: for a field that gets another type.
pub fn restricted(options: &FieldOptions, kind: FieldType) -> FieldOptions {
    let mut map = as_map(options);
    map.retain(|name, _| taken_by(kind).contains(&name.as_str()));
    serde_json::from_value(Value::Object(map)).unwrap_or_default()
}

/// What is wrong with the options of a field, each mistake below `path` (such as `fields[2].options`).
pub fn mistakes(kind: FieldType, options: &FieldOptions, path: &str) -> Vec<FieldError> {
    let mut found = Vec::new();
    let mut wrong = |name: &str, rule: String| found.push(FieldError::new(format!("{path}.{name}"), rule));
    for name in as_map(options).keys().filter(|name| !taken_by(kind).contains(&name.as_str())) {
        wrong(name, format!("is not an option of the type `{}`", kind.as_str()));
    }
    if let Some(most) = options.max_length
        && kind != FieldType::LongText
        && most > 1_000
    {
        wrong("max_length", "must be at most 1000 for this type".to_owned());
    }
    if let Some(pattern) = &options.pattern
        && let Err(error) =
            regex::RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(LARGEST_PATTERN).build()
    {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        wrong("pattern", format!("is not a regular expression that can be used: {why}"));
    }
    if let Some(code) = &options.default_country
        && code.parse::<phonenumber::country::Id>().is_err()
    {
        wrong("default_country", "must be the ISO 3166 code of a country, such as ES".to_owned());
    }
    if let Some(zone) = &options.time_zone
        && zone.parse::<chrono_tz::Tz>().is_err()
    {
        wrong("time_zone", "must be the name of a time zone, such as Europe/Madrid".to_owned());
    }
    for (name, limit) in [("min", &options.min), ("max", &options.max)] {
        if let Some(loss) = limit.as_ref().and_then(|limit| decimal::kept(&decimal::of(limit)).err()) {
            wrong(name, loss.rule().to_owned());
        }
    }
    if let (Some(min), Some(max)) = (&options.min, &options.max)
        && decimal::of(min) > decimal::of(max)
    {
        wrong("max", "must not be less than `min`".to_owned());
    }
    for (name, rule) in whole_limits(kind, options) {
        wrong(name, rule);
    }
    if kind == FieldType::Relation && options.target_collection_id.is_none() {
        wrong("target_collection_id", "is required".to_owned());
    }
    found.extend(choice_mistakes(options, path));
    if let Some(schema) = &options.json_schema
        && let Err(error) = json_schema::check(schema, "json_schema")
    {
        let rule = error.message().trim_start_matches("`json_schema` ").to_owned();
        found.push(FieldError::new(format!("{path}.json_schema"), rule));
    }
    found
}

/// Limits of types whose values are whole.
fn whole_limits(kind: FieldType, options: &FieldOptions) -> Vec<(&'static str, String)> {
    let (least, most) = match kind {
        FieldType::Integer => (-MOST_INTEGER, MOST_INTEGER),
        FieldType::Rating => (1, 10),
        _ => return Vec::new(),
    };
    [("min", &options.min), ("max", &options.max)]
        .into_iter()
        .filter_map(|(name, limit)| {
            let limit = decimal::of(limit.as_ref()?);
            let fits = limit.is_integer() && (Decimal::from(least)..=most.into()).contains(&limit);
            (!fits).then(|| (name, format!("must be a whole number from {least} to {most}")))
        })
        .collect()
}

fn choice_mistakes(options: &FieldOptions, path: &str) -> Vec<FieldError> {
    let mut found = Vec::new();
    let choices = options.choices();
    if choices.len() > MOST_CHOICES {
        let rule = format!("must have at most {MOST_CHOICES} choices");
        found.push(FieldError::new(format!("{path}.choices"), rule));
    }
    let (mut keys, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for (place, choice) in choices.iter().enumerate() {
        if !choice.key.is_empty() && !keys.insert(choice.key.as_str()) {
            let param = format!("{path}.choices[{place}].key");
            found.push(FieldError::new(param, "is also the key of another choice"));
        }
        if !labels.insert(text::name_key(choice.label.trim())) {
            let param = format!("{path}.choices[{place}].label");
            found.push(FieldError::new(param, "is also the label of another choice"));
        }
    }
    found
}

/// Gives choices that have none an id and a key, counting up from `next`. Those of `stored` keep theirs: a choice is
/// known by its id, else by its key.
///
/// # Errors
/// An id that the field does not have, or a key that differs from the choice's.
pub fn settle_choices(
    choices: &mut [Choice],
    stored: &[Choice],
    next: &mut i64,
    path: &str,
) -> Result<(), FieldError> {
    for place in 0..choices.len() {
        let others: Vec<String> = choices.iter().map(|choice| choice.key.clone()).collect();
        let Some(choice) = choices.get_mut(place) else { continue };
        choice.label = choice.label.trim().to_owned();
        let known = stored.iter().find(|old| {
            if choice.id.0 == 0 {
                !choice.key.is_empty() && old.key == choice.key
            } else {
                old.id == choice.id
            }
        });
        if let Some(old) = known {
            if !choice.key.is_empty() && choice.key != old.key {
                let param = format!("{path}.choices[{place}].key");
                return Err(FieldError::new(param, "of a choice cannot be changed"));
            }
            choice.id = old.id;
            choice.key.clone_from(&old.key);
            continue;
        }
        if choice.id.0 != 0 {
            let param = format!("{path}.choices[{place}].id");
            return Err(FieldError::new(param, "is not a choice of this field"));
        }
        choice.id = OptionId(*next);
        *next += 1;
        if choice.key.is_empty() {
            let taken = |key: &str| {
                others.iter().any(|other| other == key) || stored.iter().any(|old| old.key == key)
            };
            choice.key = crate::definitions::field_keys::free_key(&choice.label, "choice", taken);
        }
    }
    Ok(())
}
