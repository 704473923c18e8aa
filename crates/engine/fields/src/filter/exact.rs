//! Conditions that compare texts exactly: what a value says as text is, or is not, one text.

use super::condition::{Condition, Test};
use super::range::Range;
use crate::checking::value;
use crate::definitions::column::SystemColumn;
use crate::definitions::set::FieldSet;
use crate::definitions::subject::Subject;
use crate::key;
use crate::values::kind::Family;
use expressions::{decimal, text};
use serde_json::Value;

impl Condition {
    /// Holds where the value of `subject`, as text, is `wanted`: strings as they are, numbers in their shortest form,
    /// `true` and `false`, times as they are returned, choices by key, and lists where one of their elements is it. With
    /// `negated` it holds where this one does not, and so for records without a value. `None` for a field that is gone.
    pub fn exact(fields: &FieldSet, subject: Subject, wanted: &str, negated: bool) -> Option<Self> {
        let family = subject.family(fields)?;
        let test = match family {
            Family::Text => {
                let wanted = text::nfc(wanted).into_owned();
                if negated { Test::NotText(wanted) } else { Test::Text(vec![wanted]) }
            }
            Family::Choices | Family::Ids => {
                let element = match family {
                    Family::Choices => Some(Value::from(text::nfc(wanted))),
                    _ => wanted.parse::<i64>().ok().filter(|id| id.to_string() == wanted).map(Value::from),
                };
                // No list has an element that is none.
                let element = element.unwrap_or(Value::Null);
                if negated { Test::HasNot(element) } else { Test::Has(vec![element]) }
            }
            Family::Json => {
                let wanted = text::nfc(wanted).into_owned();
                if negated { Test::SaysNot(wanted) } else { Test::Says(wanted) }
            }
            _ => {
                let key = match subject {
                    Subject::Field(id) => fields.field_by_id(id).and_then(|field| {
                        let value = written(family, wanted)?;
                        let mut k = Vec::new();
                        key::push_field(&mut k, field, Some(&value), false);
                        (k != [key::NOTHING]).then_some(k)
                    }),
                    Subject::System(column) => column_key(column, wanted),
                };
                let ranges = key.map(Range::of).into_iter().collect();
                if negated { Test::Outside(ranges) } else { Test::Within(ranges) }
            }
        };
        Some(Self { subject, family, test })
    }
}

/// Whether the JSON of a value is this text.
fn says(value: &Value, text: &str) -> bool {
    let json = value.to_string();
    json == text
}

/// The value that says just this as text.
fn written(family: Family, text: &str) -> Option<Value> {
    match family {
        Family::Number => {
            let number = decimal::kept(&decimal::parse(text)?.ok()?).ok()?;
            says(&number, text).then_some(number)
        }
        Family::Boolean => text.parse::<bool>().ok().map(Value::from),
        Family::Date => value::date(text).map(|_| text.into()),
        Family::Datetime => {
            value::datetime(text, None).filter(|moment| moment.rfc3339() == text).map(|_| text.into())
        }
        // Whole minutes are kept without seconds.
        Family::Time => {
            value::time(text).filter(|_| !text.ends_with(":00") || text.len() == 5).map(|_| text.into())
        }
        _ => Some(text.into()),
    }
}

fn column_key(column: SystemColumn, text: &str) -> Option<Vec<u8>> {
    let number = match column.family() {
        Family::Datetime => value::datetime(text, None).filter(|moment| moment.rfc3339() == text)?.millis(),
        _ => text.parse::<i64>().ok().filter(|number| number.to_string() == text)?,
    };
    let mut k = Vec::new();
    key::push_integer(&mut k, number, false);
    Some(k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::sample::{choices, field};
    use crate::{ColumnValue, Columns, Data, FieldOptions, FieldType, Filter, Record};
    use proptest::prelude::*;
    use serde_json::json;

    struct Bare;

    impl Columns for Bare {
        fn id(&self) -> i64 {
            7
        }
        fn column(&self, column: SystemColumn) -> ColumnValue<'_> {
            match column {
                SystemColumn::CreatedBy => ColumnValue::Text("api_key:1".into()),
                SystemColumn::ExternalKey => ColumnValue::Empty,
                SystemColumn::CreatedAt => ColumnValue::Integer(0),
                _ => ColumnValue::Integer(5),
            }
        }
        fn has_cut_relations(&self) -> bool {
            false
        }
    }

    fn fields() -> FieldSet {
        let plain = FieldOptions::default;
        FieldSet::from_iter([
            field(1, "text", FieldType::Text, plain()),
            field(2, "number", FieldType::Number, plain()),
            field(3, "tags", FieldType::Tags, plain()),
            field(4, "users", FieldType::User, plain()),
            field(5, "flag", FieldType::Boolean, plain()),
            field(6, "day", FieldType::Date, plain()),
            field(7, "at", FieldType::Datetime, plain()),
            field(8, "choice", FieldType::Select, choices(&["5", "b"])),
            field(9, "time", FieldType::Time, plain()),
            field(10, "json", FieldType::Json, plain()),
        ])
    }

    /// What the documentation says, without any engine.
    fn naive(value: Option<&Value>, wanted: &str, negated: bool) -> bool {
        let says = |value: &Value| match value {
            Value::String(text) => text == wanted,
            other => super::says(other, wanted),
        };
        let is = match value {
            None => false,
            Some(Value::Array(elements)) => elements.iter().any(says),
            Some(value) => says(value),
        };
        is != negated
    }

    fn value_of(name: &str, pick: usize) -> Option<Value> {
        let values = match name {
            "text" => json!(["", "5", "b", "B ", "true", "2026-01-02"]),
            "number" => json!([5, 5.5, -0.25, 1000000000]),
            "tags" => json!([["5", "b"], ["true"], ["c"]]),
            "users" => json!([[5], [6, 7], [50]]),
            "flag" => json!([true, false]),
            "day" => json!(["2026-01-02", "2026-01-03"]),
            "at" => json!(["2026-01-02T00:00:00.000Z", "2026-01-02T00:00:00.001Z"]),
            "choice" => json!(["5", "b"]),
            "json" => json!([5, "5", [5, "b"], { "b": "5" }, true, 5.5]),
            _ => json!(["05:05", "05:05:05"]),
        };
        values.as_array().unwrap().get(pick).cloned()
    }

    proptest! {
        #[test]
        fn texts_are_compared_exactly(picks in prop::collection::vec(0_usize..7, 10), negated: bool) {
            let fields = fields();
            let mut data = Data::new();
            for (field, pick) in fields.iter().zip(picks) {
                data.extend(value_of(&field.key, pick).map(|value| (field.key.clone(), value)));
            }
            let record = Record { columns: &Bare, data: &data };
            for field in &fields {
                for wanted in [
                    "", "5", "5.0", "05", "+5", "5.5", "-0.25", "1e9", "1000000000", "b", "B", "B ", "true", "True", "6",
                    "2026-01-02", "2026-1-2", "2026-01-02T00:00:00.000Z", "2026-01-02T00:00:00Z", "05:05", "05:05:00",
                    "null", "{\"b\":\"5\"}",
                ] {
                    let one = Condition::exact(&fields, Subject::Field(field.id), wanted, negated).unwrap();
                    let holds = Filter::One(one.clone()).fits(&fields, record, &mut |_, _| Ok(false)).unwrap();
                    prop_assert_eq!(holds, naive(data.get(&field.key), wanted, negated), "{} {} {:?}", field.key, wanted, one);
                }
            }
        }
    }

    #[test]
    fn columns_that_every_record_has_are_compared_too() {
        let (fields, data) = (fields(), Data::new());
        let record = Record { columns: &Bare, data: &data };
        for (name, wanted, holds) in [
            ("version", "5", true),
            ("version", "5.0", false),
            ("created_at", "1970-01-01T00:00:00.000Z", true),
            ("created_at", "1970-01-01", false),
            ("created_by", "api_key:1", true),
            ("external_key", "", false),
        ] {
            let subject = Subject::named(&fields, name).unwrap();
            for negated in [false, true] {
                let filter = Filter::One(Condition::exact(&fields, subject, wanted, negated).unwrap());
                let fits = filter.fits(&fields, record, &mut |_, _| Ok(false)).unwrap();
                assert_eq!(fits, holds != negated, "{name} {wanted}");
            }
        }
    }
}
