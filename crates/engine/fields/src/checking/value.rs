//! Values of fields: what a caller may write, and the one form in which it is kept (data-crm.md B.1).

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;

use crate::definitions::field::Field;
use crate::definitions::options::{Cardinality, FieldOptions};
use crate::values::invisible;
use crate::values::kind::FieldType;
use crate::values::phone;
use crate::values::problem::Problem;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use expressions::decimal::MOST_INTEGER;
use expressions::decimal::{self, Decimal};
use expressions::text;
use input::{nearest, numbers};
use model::Timestamp;
use serde_json::Value;

/// How willing to be with values of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each value has the JSON type of its field.
    #[default]
    Strict,
    /// Text is read as what the field wants (`typecast=true`, and all imports).
    Typecast,
}

/// The most bytes of a `json` value.
const MOST_JSON: usize = 64 * 1024;

type Checked = Result<Option<Value>, Problem>;

/// The form in which `value` is kept; `None` for one that is empty (`null`, an empty list).
///
/// References are only checked for their form here: whether what they name exists is for the caller to ask.
///
/// # Errors
/// Why it does not fit.
pub fn check(field: &Field, value: &Value, mode: Mode) -> Checked {
    if field.is_read_only() {
        return Err(Problem::new("read_only_field", "is set by the service and cannot be written"));
    }
    let blank = mode == Mode::Typecast && value.as_str().is_some_and(invisible::is_blank);
    if value.is_null() || (blank && !is_text(field.kind)) {
        return Ok(None);
    }
    match field.kind {
        FieldType::Text | FieldType::LongText | FieldType::Email | FieldType::Url | FieldType::Phone => {
            check_text(field, value, mode)
        }
        FieldType::Number | FieldType::Currency | FieldType::Percent | FieldType::Duration => {
            check_number(field, value, mode)
        }
        FieldType::Integer | FieldType::Rating => check_integer(field, value, mode),
        FieldType::Boolean => check_boolean(value, mode),
        FieldType::Date => check_date(value, mode),
        FieldType::Datetime => check_datetime(field, value),
        FieldType::Time => check_time(value),
        FieldType::Select => check_choice(field, value, mode).map(|key| Some(key.into())),
        FieldType::MultiSelect => check_choices(field, value, mode),
        FieldType::Tags => check_tags(value, mode),
        FieldType::Relation | FieldType::Contact | FieldType::User | FieldType::File => {
            check_ids(field, value, mode)
        }
        FieldType::Json => check_json(field, value, mode),
        FieldType::AutoNumber
        | FieldType::Formula
        | FieldType::Rollup
        | FieldType::Lookup
        | FieldType::CreatedAt
        | FieldType::UpdatedAt
        | FieldType::CreatedBy => Err(Problem::new("read_only_field", "cannot be written")),
    }
}

/// Whether a value is a text that shows nothing, which is none for a field that requires one.
pub fn is_blank(kind: FieldType, value: &Value) -> bool {
    is_text(kind) && value.as_str().is_some_and(invisible::is_blank)
}

fn is_text(kind: FieldType) -> bool {
    matches!(
        kind,
        FieldType::Text | FieldType::LongText | FieldType::Email | FieldType::Url | FieldType::Phone
    )
}

fn wrong_type(wanted: &str) -> Problem {
    Problem::new("invalid_type", format!("must be {wanted}"))
}

fn check_text(field: &Field, value: &Value, mode: Mode) -> Checked {
    let text = match (value, mode) {
        (Value::String(text), _) => text.clone(),
        (Value::Number(_) | Value::Bool(_), Mode::Typecast) => value.to_string(),
        _ => return Err(wrong_type("a string")),
    };
    if text.is_empty() {
        return Ok(Some(text.into()));
    }
    let text = match field.kind {
        FieldType::Phone => {
            let country = field.phone_country().and_then(|code| code.parse().ok());
            phone::international(&text, country)?
        }
        FieldType::Email => {
            email(&text).ok_or_else(|| Problem::new("invalid_format", "must be an e-mail address"))?
        }
        FieldType::Url if !is_url(&text) => {
            return Err(Problem::new("invalid_format", "must be an http or https address"));
        }
        _ => text,
    };
    let text = match field.form {
        Some(form) => form(&text).map_err(|rule| Problem::new("invalid_format", rule))?,
        None => text,
    };
    let ceiling = if field.kind == FieldType::LongText { 100_000 } else { 1_000 };
    let most = field.options.max_length.unwrap_or(ceiling).clamp(1, ceiling);
    if text.chars().count() > usize::try_from(most).unwrap_or(usize::MAX) {
        return Err(Problem::new("too_long", format!("must have at most {most} characters")));
    }
    if field.pattern().is_some_and(|pattern| !pattern.is_match(&text)) {
        return Err(Problem::new("pattern_mismatch", "does not match the field's pattern"));
    }
    Ok(Some(text.into()))
}

/// The e-mail address that a text is: without `mailto:`, white space around it, and characters that nobody sees.
pub fn email(text: &str) -> Option<String> {
    const SCHEME: &str = "mailto:";
    let text = invisible::bare(text);
    let is_link = text.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    let address = text.get(SCHEME.len()..).filter(|_| is_link).unwrap_or(&text).trim();
    is_address(address).then(|| address.to_owned())
}

/// Whether a text is an e-mail address.
pub fn is_email(text: &str) -> bool {
    email(text).is_some()
}

/// Good enough to catch mistakes: one `@` with something before it, and a name with a dot behind it.
fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let sound =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c.is_control());
    let is_of_name = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    sound(local)
        && local.len() <= 64
        && !local.contains(['@', '<', '>', ',', ';', ':'])
        && sound(domain)
        && domain.split('.').count() > 1
        && domain.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(is_of_name)
        })
}

/// Whether it is an `http` or `https` address.
pub fn is_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// The number in a JSON number, or in text under [`Mode::Typecast`].
fn number(value: &Value, mode: Mode, wanted: &str) -> Result<Decimal, Problem> {
    let number = match (value, mode) {
        (Value::Number(number), _) => Some(Ok(decimal::of(number))),
        (Value::String(text), Mode::Typecast) => decimal::parse(text.trim()),
        _ => None,
    };
    Ok(number.ok_or_else(|| wrong_type(wanted))??)
}

fn check_number(field: &Field, value: &Value, mode: Mode) -> Checked {
    let number = number(value, mode, "a number")?;
    let precision = field.options.precision.map(|precision| precision.clamp(0, 8));
    if let Some(precision) = precision.filter(|precision| decimal::places(&number) > *precision) {
        return Err(Problem::new("too_precise", format!("must have at most {precision} decimal places")));
    }
    let kept = decimal::kept(&number)?;
    in_range(field, &number)?;
    Ok(Some(kept))
}

fn in_range(field: &Field, number: &Decimal) -> Result<(), Problem> {
    let (mut min, mut max) = (field.options.min.clone(), field.options.max.clone());
    if field.kind == FieldType::Rating {
        (min, max) = (min.or(Some(0.into())), max.or(Some(5.into())));
    }
    if let Some(min) = min.filter(|min| *number < decimal::of(min)) {
        return Err(Problem::new("out_of_range", format!("must be at least {min}")));
    }
    if let Some(max) = max.filter(|max| *number > decimal::of(max)) {
        return Err(Problem::new("out_of_range", format!("must be at most {max}")));
    }
    Ok(())
}

fn check_integer(field: &Field, value: &Value, mode: Mode) -> Checked {
    let number = number(value, mode, "a whole number")?;
    if !number.is_integer() {
        return Err(wrong_type("a whole number"));
    }
    if number.abs() > MOST_INTEGER {
        return Err(Problem::new("out_of_range", "must be between -2^53 and 2^53"));
    }
    in_range(field, &number)?;
    Ok(Some(decimal::kept(&number)?))
}

fn check_boolean(value: &Value, mode: Mode) -> Checked {
    if let Value::Bool(_) = value {
        return Ok(Some(value.clone()));
    }
    let word = match (value, mode) {
        (Value::String(text), Mode::Typecast) => text.trim().to_lowercase(),
        (Value::Number(number), Mode::Typecast) => number.to_string(),
        _ => return Err(wrong_type("true or false")),
    };
    match word.as_str() {
        "true" | "yes" | "y" | "1" | "on" | "checked" | "sí" | "si" | "sim" | "ja" | "oui" => {
            Ok(Some(true.into()))
        }
        "false" | "no" | "n" | "0" | "off" | "unchecked" | "não" | "nao" | "nein" | "non" => {
            Ok(Some(false.into()))
        }
        _ => Err(wrong_type("true or false")),
    }
}

/// Reads `YYYY-MM-DD`, exactly so.
pub fn date(text: &str) -> Option<NaiveDate> {
    let shaped = text.len() == 10
        && text.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if shaped { NaiveDate::parse_from_str(text, "%Y-%m-%d").ok() } else { None }
}

fn check_date(value: &Value, mode: Mode) -> Checked {
    let text = value.as_str().map(str::trim);
    let day = text.and_then(|text| match mode {
        Mode::Strict => date(value.as_str().unwrap_or_default()),
        Mode::Typecast => date(text.get(..10).unwrap_or(text)),
    });
    day.map(|day| Some(day.format("%Y-%m-%d").to_string().into()))
        .ok_or_else(|| wrong_type("a date such as 2026-11-21"))
}

/// Reads RFC 3339; without an offset it is the time in `zone`.
pub fn datetime(text: &str, zone: Option<chrono_tz::Tz>) -> Option<Timestamp> {
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return in_calendar(moment.timestamp_millis());
    }
    let zone = zone?;
    let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f")
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f"))
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M"))
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M"))
        .ok()
        .or_else(|| date(text).map(|day| day.and_time(NaiveTime::MIN)))?;
    in_calendar(calendar::instant(zone, local).millis())
}

/// Years 0001 to 9999: what RFC 3339 can write.
fn in_calendar(millis: i64) -> Option<Timestamp> {
    (-62_135_596_800_000..=253_402_300_799_999).contains(&millis).then(|| Timestamp::from_millis(millis))
}

fn check_datetime(field: &Field, value: &Value) -> Checked {
    let zone = field.options.time_zone.as_deref().and_then(|name| name.parse().ok());
    let moment = value.as_str().and_then(|text| datetime(text.trim(), zone));
    moment
        .map(|moment| Some(moment.rfc3339().into()))
        .ok_or_else(|| wrong_type("a time in RFC 3339, such as 2026-11-21T09:30:00Z"))
}

/// Reads `HH:MM` or `HH:MM:SS`.
pub fn time(text: &str) -> Option<NaiveTime> {
    match text.len() {
        5 => NaiveTime::parse_from_str(text, "%H:%M").ok(),
        8 => {
            NaiveTime::parse_from_str(text, "%H:%M:%S").ok().filter(|time| time.nanosecond() < 1_000_000_000)
        }
        _ => None,
    }
}

fn check_time(value: &Value) -> Checked {
    let time = value
        .as_str()
        .and_then(|text| time(text.trim()))
        .ok_or_else(|| wrong_type("a time such as 09:30"))?;
    let form = if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    Ok(Some(time.format(form).to_string().into()))
}

/// The key of the choice that a value names; labels are taken under [`Mode::Typecast`].
fn check_choice(field: &Field, value: &Value, mode: Mode) -> Result<String, Problem> {
    let text = match (value, mode) {
        (Value::String(text), _) => text.clone(),
        (Value::Number(_) | Value::Bool(_), Mode::Typecast) => value.to_string(),
        _ => return Err(wrong_type("the key of a choice")),
    };
    if field.options.choice(&text).is_some() {
        return Ok(text);
    }
    if mode == Mode::Typecast {
        let folded = text::fold(text.trim());
        let labelled = field.options.choices().iter().find(|choice| text::fold(&choice.label) == folded);
        if let Some(choice) = labelled {
            return Ok(choice.key.clone());
        }
    }
    Err(Problem::new("unknown_option", unknown_choice(&field.options, &text)))
}

/// The most choices that a message lists.
const MOST_LISTED: usize = 20;

/// The rule that a text breaks which names no choice. Callers that cannot look the choices up, such as agents, correct
/// themselves by it.
pub(crate) fn unknown_choice(options: &FieldOptions, wrong: &str) -> String {
    let shown = cut(wrong);
    let live = options.choices().iter().filter(|choice| !choice.archived);
    let keys: Vec<&str> = live.map(|choice| choice.key.as_str()).collect();
    if let Some(near) = nearest(wrong, keys.iter().copied()) {
        return format!("has no choice `{shown}`; did you mean `{near}`?");
    }
    match keys.len() {
        1..=MOST_LISTED => format!("has no choice `{shown}`; its choices are `{}`", keys.join("`, `")),
        _ => format!("has no choice `{shown}`"),
    }
}

fn check_choices(field: &Field, value: &Value, mode: Mode) -> Checked {
    let split;
    let values = match (value, mode) {
        (Value::Array(values), _) => values,
        (Value::String(text), Mode::Typecast) => {
            split = text
                .split([',', ';'])
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(Value::from)
                .collect();
            &split
        }
        _ => return Err(wrong_type("a list of the keys of choices")),
    };
    let mut keys: Vec<String> = Vec::new();
    for value in values {
        let key = check_choice(field, value, mode)?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(if keys.is_empty() { None } else { Some(keys.into()) })
}

/// The most tags of a record.
pub const MOST_TAGS: usize = 100;
/// The most characters of a tag.
const LONGEST_TAG: usize = 60;

/// The form in which a tag is kept: composed, in lower case, without white space around it.
///
/// # Errors
/// Why it is none.
pub fn tag(text: &str) -> Result<String, Problem> {
    let tag = text::nfc(invisible::trimmed(text)).to_lowercase();
    let rule = if tag.is_empty() || tag.chars().count() > LONGEST_TAG {
        format!("must have 1 to {LONGEST_TAG} characters")
    } else if tag.contains(|character: char| character.is_control() || matches!(character, ',' | ';')) {
        "must not contain commas, semicolons or control characters".to_owned()
    } else {
        return Ok(tag);
    };
    Err(Problem::new("invalid_format", rule))
}

fn check_tags(value: &Value, mode: Mode) -> Checked {
    let wanted = || wrong_type("a list of tags");
    let texts: Vec<&str> = match (value, mode) {
        (Value::Array(values), _) => {
            values.iter().map(|value| value.as_str().ok_or_else(wanted)).collect::<Result<_, _>>()?
        }
        (Value::String(text), Mode::Typecast) => {
            text.split([',', ';']).filter(|part| !invisible::is_blank(part)).collect()
        }
        _ => return Err(wanted()),
    };
    let mut tags: Vec<String> = Vec::new();
    for text in texts {
        let in_list =
            |problem: Problem| Problem { message: format!("has a tag that {}", problem.message), ..problem };
        let tag = tag(text).map_err(in_list)?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    if tags.len() > MOST_TAGS {
        return Err(Problem::new("too_many", format!("must have at most {MOST_TAGS} tags")));
    }
    Ok(if tags.is_empty() { None } else { Some(tags.into()) })
}

/// The most records that a relation field of one record may point to.
pub const MOST_RELATED: usize = 1_000;

/// How many ids a value of the field can have.
fn most_ids(field: &Field) -> usize {
    match (field.kind, field.options.cardinality()) {
        (FieldType::Relation, Cardinality::One) => 1,
        (FieldType::Relation, Cardinality::Many) => MOST_RELATED,
        _ => usize::try_from(field.options.max_items.unwrap_or(100)).unwrap_or(100),
    }
}

/// Checks ids. The stored form is always a list, also for a field that takes one id and no list.
fn check_ids(field: &Field, value: &Value, mode: Mode) -> Checked {
    let split;
    let most = most_ids(field);
    let wanted = || wrong_type(if most == 1 { "an id, or a list of one id" } else { "a list of ids" });
    let values = match (value, mode) {
        (Value::Array(values), _) => values,
        (Value::Number(_), _) if most == 1 || mode == Mode::Typecast => {
            split = vec![value.clone()];
            &split
        }
        (Value::String(text), Mode::Typecast) => {
            split = text
                .split([',', ';'])
                .map(|part| serde_json::from_str(part.trim()).unwrap_or(Value::Null))
                .collect();
            &split
        }
        _ => return Err(wanted()),
    };
    let mut ids: Vec<i64> = Vec::new();
    for value in values {
        let id = value.as_i64().filter(|id| *id > 0).ok_or_else(wanted)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if ids.len() > most {
        let ids = if most == 1 { "id" } else { "ids" };
        return Err(Problem::new("too_many", format!("must have at most {most} {ids}")));
    }
    Ok(if ids.is_empty() { None } else { Some(ids.into()) })
}

fn check_json(field: &Field, value: &Value, mode: Mode) -> Checked {
    let parsed;
    let value = match (value, mode) {
        (Value::String(text), Mode::Typecast) => {
            match (serde_json::from_str(text), numbers::lossy(text.as_bytes(), "")) {
                (Ok(_), Some(_)) => {
                    let rule = "must have numbers of at most 15 significant digits";
                    return Err(Problem::new("too_precise", rule));
                }
                (Ok(json), None) => parsed = json,
                (Err(_), _) => parsed = value.clone(),
            }
            &parsed
        }
        _ => value,
    };
    if value.to_string().len() > MOST_JSON {
        return Err(Problem::new("too_long", "must have at most 64 KB of JSON"));
    }
    if let Some(schema) = field.json_schema()
        && let Err(error) = schema.validate(value)
    {
        return Err(Problem::new(
            "schema_mismatch",
            format!("does not fit the field's JSON Schema: {}", cut(&input::sentence(&error))),
        ));
    }
    Ok(Some(value.clone()))
}

/// Enough of a caller's text to be recognised in a message.
fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Whether a value that is JSON is this text (NFC), or a list of which one element is: texts as they are, numbers in their
/// shortest form, everything else as JSON. `null` is no text.
pub(crate) fn json_says(value: &Value, text: &str) -> bool {
    let one = |value: &Value| {
        let json = match value {
            Value::Null => return false,
            Value::String(own) => return text::nfc(own) == text,
            Value::Number(number) => decimal::kept(&decimal::of(number))
                .map_or_else(|_| value.to_string(), |kept| kept.to_string()),
            other => other.to_string(),
        };
        json == text
    };
    match value {
        Value::Array(elements) => elements.iter().any(one),
        value => one(value),
    }
}

/// Whether two JSON values are the same: numbers by what they are worth, objects whatever the order of their keys.
pub(crate) fn same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => decimal::of(one) == decimal::of(other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_json(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same_json(value, other)))
        }
        _ => one == other,
    }
}
