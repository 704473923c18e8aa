//! What conditions compare with: read as each kind of value wants it (data-crm.md C.4).

use super::comparison::{Comparison, name_of};
use super::condition::{Condition, Test};
use super::like::Pattern;
use super::op::Op;
use super::range::{Range, behind, joined};
use super::relative;
use crate::checking::value;
use crate::definitions::column::SystemColumn;
use crate::definitions::field::Field;
use crate::definitions::options::{Choice, FieldOptions};
use crate::definitions::set::FieldSet;
use crate::definitions::subject::Subject;
use crate::key;
use crate::values::kind::{Family, FieldType};
use crate::values::phone;
use bigdecimal::ToPrimitive;
use chrono::NaiveDate;
use chrono_tz::Tz;
use expressions::decimal::{self, Decimal};
use expressions::text;
use model::{Error, Result, Timestamp, whole_number};
use serde_json::Value;

/// The most operands of `in`.
const MOST_LISTED: usize = 200;

/// What reading an operand goes by.
struct Reader<'a> {
    field: Option<&'a Field>,
    system: Option<SystemColumn>,
    family: Family,
    op: Op,
    param: &'a str,
    now: Timestamp,
    zone: Tz,
}

impl Condition {
    /// Reads a comparison.
    ///
    /// # Errors
    /// 400 `validation_error`: an operator that the type does not take, or an operand that it cannot be compared with.
    pub fn of(fields: &FieldSet, comparison: &Comparison, now: Timestamp) -> Result<Condition> {
        let Comparison { subject, op, value, param } = comparison;
        // A stored filter has no place in the request, so messages name the field.
        let stored = param.is_empty().then(|| name_of(*subject, fields));
        let param = stored.as_deref().unwrap_or(param);
        let family = subject
            .family(fields)
            .ok_or_else(|| Error::invalid(param, "uses a field that no longer exists"))?;
        if !op.fits(family) {
            let rule =
                format!("cannot be used with `{}`: this field supports {}", op.as_str(), Op::names(family));
            return Err(Error::invalid(param, rule));
        }
        let (field, system) = match subject {
            Subject::Field(id) => (fields.field_by_id(*id), None),
            Subject::System(system) => (None, Some(*system)),
        };
        let zone =
            field.and_then(|field| field.options.time_zone.as_deref()).and_then(|zone| zone.parse().ok());
        let reader = Reader { field, system, family, op: *op, param, now, zone: zone.unwrap_or(Tz::UTC) };
        Ok(Condition { subject: *subject, family, test: reader.test(value)? })
    }
}

impl Reader<'_> {
    fn wrong(&self, rule: impl std::fmt::Display) -> Error {
        Error::invalid(self.param, rule)
    }

    fn test(&self, value: &Value) -> Result<Test> {
        if self.family == Family::Json {
            return Ok(match (self.op, value) {
                (Op::Neq, Value::Null) => Test::Filled,
                (_, Value::Null) => Test::Empty,
                (Op::Neq, _) => Test::NotJson(value.clone()),
                _ => Test::Json(value.clone()),
            });
        }
        if self.op == Op::In {
            return self.listed(value);
        }
        let is_text = self.family == Family::Text;
        let asks_for_nothing = value.is_null()
            || value.as_str().is_some_and(|text| text.is_empty() || (text == "null" && !is_text));
        match self.op {
            Op::Eq if asks_for_nothing => return Ok(Test::Empty),
            Op::Neq if asks_for_nothing => return Ok(Test::Filled),
            _ => {}
        }
        let text = self.text_of(value)?;
        match (self.op, self.family) {
            (Op::Like | Op::Ilike, Family::Select) => Ok(self.labels_like(&text)),
            (Op::Like | Op::Ilike, _) => Ok(Test::Like(Box::new(Pattern::new(&text, self.op == Op::Ilike)))),
            (Op::Eq, Family::Text) => Ok(Test::Text(vec![text::nfc(&text).into_owned()])),
            (Op::Neq, Family::Text) => Ok(Test::NotText(text::nfc(&text).into_owned())),
            (Op::Eq, Family::Choices | Family::Ids) => Ok(Test::Has(vec![self.element(&text)?])),
            (Op::Neq, Family::Choices | Family::Ids) => Ok(Test::HasNot(self.element(&text)?)),
            (Op::Eq, _) => Ok(Test::Within(joined(vec![self.equal(&text)?]))),
            (Op::Neq, _) => Ok(Test::Outside(joined(vec![self.equal(&text)?]))),
            _ => {
                let key = self.key(&text)?;
                let mut range = Range::values();
                match self.op {
                    Op::Gt => range.from = behind(&key),
                    Op::Gte => range.from = key,
                    Op::Lt => range.to = key,
                    _ => range.to = behind(&key),
                }
                Ok(Test::Within(joined(vec![range])))
            }
        }
    }

    /// The operands of `in`: a list, or text in which commas part them and `\,` is a comma.
    fn listed(&self, value: &Value) -> Result<Test> {
        let texts: Vec<String> = match value {
            Value::Array(values) => values.iter().map(|value| self.text_of(value)).collect::<Result<_>>()?,
            Value::String(text) => {
                split(text).into_iter().map(|text| self.number(&text).unwrap_or(text)).collect()
            }
            _ => return Err(self.wrong("must be a list")),
        };
        if texts.is_empty() || texts.len() > MOST_LISTED {
            return Err(self.wrong(format_args!("must list 1 to {MOST_LISTED} values")));
        }
        Ok(match self.family {
            Family::Text => Test::Text(texts.iter().map(|text| text::nfc(text).into_owned()).collect()),
            Family::Choices | Family::Ids => {
                Test::Has(texts.iter().map(|text| self.element(text)).collect::<Result<_>>()?)
            }
            _ => Test::Within(joined(texts.iter().map(|text| self.equal(text)).collect::<Result<_>>()?)),
        })
    }

    /// An operand as text, which a query string has anyway.
    fn text_of(&self, value: &Value) -> Result<String> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) if matches!(self.family, Family::Number | Family::Ids) => value.to_string(),
            Value::Bool(_) if self.family == Family::Boolean => value.to_string(),
            _ => return Err(self.wrong(self.wanted())),
        };
        if text.contains('\0') {
            return Err(self.wrong("must not contain the NUL character"));
        }
        Ok(self.number(&text).unwrap_or(text))
    }

    /// A telephone number in the form in which it is stored, where the text is one and is compared as a whole.
    fn number(&self, text: &str) -> Option<String> {
        let field = self.field.filter(|field| field.kind == FieldType::Phone)?;
        let is_whole = matches!(self.op, Op::Eq | Op::Neq | Op::In);
        let country = field.phone_country().filter(|_| is_whole)?.parse().ok();
        phone::international(text, country).ok()
    }

    fn wanted(&self) -> &'static str {
        match self.family {
            Family::Text => "must be text",
            Family::Number if self.system.is_some() => "must be a whole number",
            Family::Number => "must be a number",
            Family::Boolean => "must be true or false",
            Family::Date => "must be a date such as 2026-11-21, or relative to today such as today-7d",
            Family::Datetime => "must be a time in RFC 3339, a date, or relative such as now-2h or today-7d",
            Family::Time => "must be a time such as 09:30",
            Family::Select | Family::Choices => "must be the key of a choice",
            Family::Ids => "must be an id",
            Family::Json => "must be JSON",
        }
    }

    /// The keys of the values that are equal to an operand: of a moment, or of all moments of a day.
    fn equal(&self, text: &str) -> Result<Range> {
        if self.family == Family::Datetime
            && let Some(day) = self.day(text)
        {
            let bound = |day: Option<NaiveDate>| {
                let moment = day.and_then(|day| relative::midnight(day, self.zone));
                moment.map(|moment| self.moment_key(moment)).ok_or_else(|| self.wrong(self.wanted()))
            };
            return Ok(Range { from: bound(Some(day))?, to: bound(day.succ_opt())? });
        }
        self.key(text).map(Range::of)
    }

    /// The key of an operand.
    fn key(&self, text: &str) -> Result<Vec<u8>> {
        let wrong = || self.wrong(self.wanted());
        let mut key = Vec::with_capacity(16);
        match self.family {
            Family::Text => key::push_text(&mut key, Some(text), false),
            Family::Number if self.system.is_some() => {
                key::push_integer(&mut key, whole(text).ok_or_else(wrong)?, false);
            }
            Family::Datetime => {
                let day = || self.day(text).and_then(|day| relative::midnight(day, self.zone));
                let moment = value::datetime(text, None)
                    .or_else(|| relative::moment(text, self.now))
                    .or_else(day)
                    .or_else(|| value::datetime(text, Some(self.zone)));
                key = self.moment_key(moment.ok_or_else(wrong)?);
            }
            _ => {
                let value = self.value(text)?;
                let field = self.field.ok_or_else(wrong)?;
                key::push_field(&mut key, field, Some(&value), false);
            }
        }
        Ok(key)
    }

    fn moment_key(&self, moment: Timestamp) -> Vec<u8> {
        let mut key = Vec::with_capacity(9);
        key::push_integer(&mut key, moment.millis(), false);
        key
    }

    /// An operand as a value of its field.
    fn value(&self, text: &str) -> Result<Value> {
        let value = match self.family {
            Family::Number => match decimal::parse(text).map(|number| decimal::kept(&number?)) {
                Some(Err(loss)) => return Err(self.wrong(loss.rule())),
                number => number.and_then(Result::ok),
            },
            Family::Boolean => text.parse::<bool>().ok().map(Value::from),
            Family::Date => self.day(text).map(|day| day.format("%Y-%m-%d").to_string().into()),
            Family::Time => value::time(text).map(|_| text.into()),
            Family::Select => return self.choice(text),
            _ => None,
        };
        value.ok_or_else(|| self.wrong(self.wanted()))
    }

    fn day(&self, text: &str) -> Option<NaiveDate> {
        value::date(text).or_else(|| relative::day(text, self.now, self.zone))
    }

    /// An element of a list.
    fn element(&self, text: &str) -> Result<Value> {
        if self.field.is_some_and(|field| field.kind == FieldType::Tags) {
            return value::tag(text).map(Value::from).map_err(|problem| self.wrong(problem.message));
        }
        if self.family == Family::Choices {
            return self.choice(text);
        }
        let id = whole(text).filter(|id| *id > 0);
        id.map(Value::from).ok_or_else(|| self.wrong(self.wanted()))
    }

    fn choices(&self) -> &[Choice] {
        self.field.map(|field| field.options.choices()).unwrap_or_default()
    }

    /// The key of a choice that a key names, or a label that no other choice has.
    fn choice(&self, text: &str) -> Result<Value> {
        let choices = self.choices();
        if choices.iter().any(|choice| choice.key == text) {
            return Ok(text.into());
        }
        let folded = text::fold(text);
        let mut labelled = choices.iter().filter(|choice| text::fold(&choice.label) == folded);
        match (labelled.next(), labelled.next()) {
            (Some(choice), None) => Ok(choice.key.as_str().into()),
            (Some(_), Some(_)) => Err(self.wrong("is the label of several choices; send a key")),
            _ => {
                let none = FieldOptions::default();
                let options = self.field.map_or(&none, |field| &field.options);
                Err(self.wrong(value::unknown_choice(options, text)))
            }
        }
    }

    /// The choices whose labels fit.
    fn labels_like(&self, text: &str) -> Test {
        let pattern = Pattern::new(text, self.op == Op::Ilike);
        let fitting = self.choices().iter().filter(|choice| pattern.fits(&choice.label));
        let ranges = fitting.filter_map(|choice| {
            let mut key = Vec::with_capacity(9);
            key::push_field(&mut key, self.field?, Some(&choice.key.as_str().into()), false);
            Some(Range::of(key))
        });
        Test::Within(joined(ranges.collect()))
    }
}

/// A whole number, also one that is written with an empty fraction.
fn whole(text: &str) -> Option<i64> {
    let exact = || decimal::parse(text)?.ok().filter(Decimal::is_integer)?.to_i64();
    whole_number(text).or_else(exact)
}

/// Parts text at its commas; `\,` is a comma, `\\` a backslash.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let escaped = letter == '\\' && matches!(letters.peek(), Some(',' | '\\'));
        match (letter, parts.last_mut()) {
            (',', _) => parts.push(String::new()),
            (_, Some(part)) => part.push(if escaped { letters.next().unwrap_or(letter) } else { letter }),
            (_, None) => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_part_and_escapes_keep() {
        let cases: [(&str, &[&str]); 5] = [
            ("a,b", &["a", "b"]),
            (r"a\,b,c", &["a,b", "c"]),
            (r"a\\,b", &[r"a\", "b"]),
            (r"a\b", &[r"a\b"]),
            ("a,", &["a", ""]),
        ];
        for (text, parts) in cases {
            assert_eq!(split(text), parts, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_read() {
        assert_eq!(whole("9223372036854775807"), Some(i64::MAX));
        assert_eq!(whole("1.0"), Some(1));
        for text in ["1.5", "x", "+1", "01", ""] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
