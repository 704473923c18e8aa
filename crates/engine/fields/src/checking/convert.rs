//! Values of one type as values of another.

use crate::checking::value::{self, Mode};
use crate::{Field, FieldOptions, FieldType};
use bigdecimal::RoundingMode;
use expressions::decimal;
use serde_json::Value;

/// The result of converting a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Converted {
    /// It fits as it is.
    Kept,
    /// It is written otherwise, and says the same.
    Changed(Value),
    /// Part of it is lost: decimals were rounded, all but the first choice left out.
    Cut(Value),
    /// It cannot be a value of the new type.
    Lost,
}

impl Converted {
    /// The new value, where `old` was the old one.
    pub fn value(self, old: Value) -> Option<Value> {
        match self {
            Self::Kept => Some(old),
            Self::Changed(value) | Self::Cut(value) => Some(value),
            Self::Lost => None,
        }
    }
}

/// Whether values of a type can become values of another at all: not those that name other objects, and nothing becomes
/// what the service sets by itself.
pub fn is_possible(from: FieldType, to: FieldType) -> bool {
    !from.is_reference() && !to.is_reference() && !to.is_read_only()
}

/// A value of a field that had the type `from` with `options`, as one of `to`. One that was converted before, or
/// written since, stays as it is.
pub fn convert(from: FieldType, options: &FieldOptions, to: &Field, value: &Value) -> Converted {
    let spelled = spelled(from, options, to.kind, value);
    let value_now = spelled.as_ref().unwrap_or(value);
    match value::check(to, value_now, Mode::Strict) {
        Ok(Some(same)) if same == *value => return Converted::Kept,
        Ok(Some(new)) => return Converted::Changed(new),
        Ok(None) => return Converted::Lost,
        Err(_) => {}
    }
    if let Some(part) = part(to, value_now) {
        return part;
    }
    match value::check(to, value_now, Mode::Typecast) {
        Ok(Some(new)) => Converted::Changed(new),
        _ => Converted::Lost,
    }
}

/// What a value says, in the words of the new type, where its own words would say something else there: the label of a
/// choice as text, the day of a moment.
fn spelled(from: FieldType, options: &FieldOptions, to: FieldType, value: &Value) -> Option<Value> {
    let label = |key: &Value| {
        let key = key.as_str()?;
        Some(options.choice(key).map_or(key, |(_, choice)| choice.label.as_str()).to_owned())
    };
    let is_text = matches!(
        to,
        FieldType::Text | FieldType::LongText | FieldType::Email | FieldType::Url | FieldType::Phone
    );
    match (from, value) {
        (FieldType::Select, Value::String(_)) if is_text => label(value).map(Value::from),
        (FieldType::MultiSelect | FieldType::Tags, Value::Array(keys)) if is_text => {
            Some(keys.iter().filter_map(label).collect::<Vec<_>>().join(", ").into())
        }
        (FieldType::MultiSelect, Value::Array(keys)) if to == FieldType::Tags => {
            Some(keys.iter().filter_map(label).collect::<Vec<_>>().into())
        }
        (FieldType::Select, Value::String(_)) if to == FieldType::Tags => Some(vec![label(value)?].into()),
        (FieldType::Select, Value::String(_)) if to == FieldType::MultiSelect => {
            Some(Value::Array(vec![value.clone()]))
        }
        (FieldType::Json, value) if is_text && !value.is_string() => Some(value.to_string().into()),
        (FieldType::Date, Value::String(day)) if to == FieldType::Datetime && value::date(day).is_some() => {
            Some(format!("{day}T00:00:00Z").into())
        }
        (FieldType::Datetime | FieldType::CreatedAt | FieldType::UpdatedAt, Value::String(moment))
            if matches!(to, FieldType::Date | FieldType::Time) =>
        {
            local(options, moment, to)
        }
        (FieldType::Boolean, Value::Bool(value)) if is_number(to) => Some(i64::from(*value).into()),
        _ => None,
    }
}

fn is_number(kind: FieldType) -> bool {
    matches!(
        kind,
        FieldType::Number
            | FieldType::Currency
            | FieldType::Percent
            | FieldType::Rating
            | FieldType::Duration
            | FieldType::Integer
    )
}

/// Day or time of a moment in the field's time zone, UTC if it has none.
fn local(options: &FieldOptions, moment: &str, to: FieldType) -> Option<Value> {
    let zone: chrono_tz::Tz =
        options.time_zone.as_deref().and_then(|name| name.parse().ok()).unwrap_or_default();
    let moment = chrono::DateTime::parse_from_rfc3339(moment).ok()?.with_timezone(&zone);
    let form = if to == FieldType::Date { "%Y-%m-%d" } else { "%H:%M:%S" };
    Some(moment.format(form).to_string().into())
}

/// What is left of a value that the new type has no room for.
fn part(to: &Field, value: &Value) -> Option<Converted> {
    let cut = |value: Value| value::check(to, &value, Mode::Strict).ok().flatten().map(Converted::Cut);
    match value {
        Value::Array(values) if to.kind == FieldType::Select => {
            cut(values.first()?.clone()).map(|first| if values.len() == 1 { whole(first) } else { first })
        }
        Value::Number(_) | Value::String(_) if is_number(to.kind) => {
            let number = match value {
                Value::Number(number) => decimal::of(number),
                other => decimal::parse(other.as_str()?.trim())?.ok()?,
            };
            let places = match to.kind {
                FieldType::Integer | FieldType::Rating => 0,
                _ => to.options.precision?,
            };
            let rounded = number.with_scale_round(places, RoundingMode::HalfUp);
            if rounded == number { None } else { cut(decimal::kept(&rounded).ok()?) }
        }
        _ => None,
    }
}

fn whole(converted: Converted) -> Converted {
    match converted {
        Converted::Cut(value) => Converted::Changed(value),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Choice;
    use model::OptionId;
    use serde_json::json;

    fn choices() -> FieldOptions {
        let choice = |id, key: &str, label: &str| Choice {
            id: OptionId(id),
            key: key.to_owned(),
            label: label.to_owned(),
            color: None,
            archived: false,
        };
        FieldOptions {
            choices: Some(vec![choice(1, "red", "Dark red"), choice(2, "blue", "Blue")]),
            ..FieldOptions::default()
        }
    }

    #[test]
    fn choices_and_texts_become_tags() {
        use Converted::Changed;
        use FieldType::*;
        let none = FieldOptions::default;
        for (from, options, to, value, expected) in [
            (Select, choices(), Tags, json!("red"), json!(["dark red"])),
            (MultiSelect, choices(), Tags, json!(["red", "blue"]), json!(["dark red", "blue"])),
            (Text, none(), Tags, json!("Red, blue;"), json!(["red", "blue"])),
            (Tags, none(), Text, json!(["red", "blue"]), json!("red, blue")),
        ] {
            let field = Field::draft("x", to, none());
            assert_eq!(convert(from, &options, &field, &value), Changed(expected), "{from:?} {value}");
        }
    }

    #[test]
    fn values_become_values_of_other_types() {
        use Converted::{Changed, Cut, Kept, Lost};
        use FieldType::*;
        let none = FieldOptions::default;
        let two = || FieldOptions { precision: Some(2), ..none() };
        let madrid = || FieldOptions { time_zone: Some("Europe/Madrid".to_owned()), ..none() };
        let cases: Vec<(FieldType, FieldOptions, FieldType, FieldOptions, Value, Converted)> = vec![
            (Text, none(), LongText, none(), json!("a"), Kept),
            (Text, none(), Number, none(), json!("12.50"), Changed(json!(12.5))),
            (Text, none(), Number, none(), json!("twelve"), Lost),
            (Text, none(), Integer, none(), json!("7"), Changed(json!(7))),
            (Text, none(), Integer, none(), json!("7.6"), Cut(json!(8))),
            (Text, none(), Boolean, none(), json!("yes"), Changed(json!(true))),
            (Text, none(), Date, none(), json!("2026-11-21"), Kept),
            (Text, none(), Email, none(), json!("a@b.de"), Kept),
            (Text, none(), Email, none(), json!("a"), Lost),
            (Text, none(), Select, choices(), json!("dark RED"), Changed(json!("red"))),
            (Text, none(), Select, choices(), json!("green"), Lost),
            (Text, none(), MultiSelect, choices(), json!("Blue; red"), Changed(json!(["blue", "red"]))),
            (Number, none(), Text, none(), json!(2.5), Changed(json!("2.5"))),
            (Number, none(), Integer, none(), json!(2), Kept),
            (Number, none(), Integer, none(), json!(2.5), Cut(json!(3))),
            (Number, none(), Currency, two(), json!(2.346), Cut(json!(2.35))),
            (Number, none(), Boolean, none(), json!(1), Changed(json!(true))),
            (Number, none(), Boolean, none(), json!(3), Lost),
            (Number, none(), Rating, none(), json!(9), Lost),
            (Boolean, none(), Integer, none(), json!(true), Changed(json!(1))),
            (Boolean, none(), Text, none(), json!(false), Changed(json!("false"))),
            (Date, none(), Datetime, none(), json!("2026-11-21"), Changed(json!("2026-11-21T00:00:00.000Z"))),
            (
                Datetime,
                madrid(),
                Date,
                none(),
                json!("2026-11-21T23:30:00.000Z"),
                Changed(json!("2026-11-22")),
            ),
            (Datetime, none(), Time, none(), json!("2026-11-21T23:30:00.000Z"), Changed(json!("23:30"))),
            (Select, choices(), Text, none(), json!("red"), Changed(json!("Dark red"))),
            (Select, choices(), MultiSelect, choices(), json!("red"), Changed(json!(["red"]))),
            (MultiSelect, choices(), Select, choices(), json!(["red"]), Changed(json!("red"))),
            (MultiSelect, choices(), Select, choices(), json!(["red", "blue"]), Cut(json!("red"))),
            (MultiSelect, choices(), Text, none(), json!(["red", "blue"]), Changed(json!("Dark red, Blue"))),
            (Json, none(), Text, none(), json!({ "a": 1 }), Changed(json!("{\"a\":1}"))),
            (Text, none(), Json, none(), json!("a"), Kept),
            (AutoNumber, none(), Integer, none(), json!(3), Kept),
        ];
        for (from, options, to, to_options, value, expected) in cases {
            let field = Field::draft("f", to, to_options);
            let found = convert(from, &options, &field, &value);
            assert_eq!(found, expected, "{from:?} -> {to:?}: {value}");
            // What was converted is converted again where the work was interrupted.
            if let Some(once) = found.value(value) {
                let repeated = convert(from, &options, &field, &once).value(once.clone());
                assert_eq!(repeated, Some(once), "{from:?} -> {to:?} twice");
            }
        }
    }
}
