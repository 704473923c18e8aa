//! The query parameter `filters`: conditions that compare exact texts. Malformed conditions are ignored and reported
//! as warnings, unless `strict` is set.

use fields::filter::Condition;
use fields::{Filter, Subject};
use model::{Error, FieldError, Result};
use records::shape::Shape;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The most conditions.
const MOST: usize = 100;

/// Something in the request that was ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "param": "filters[1]", "message": "`shoe_size` is not a field of contacts." }))]
pub struct Warning {
    /// Where it stands in the request.
    pub param: String,
    /// Why it was ignored.
    pub message: String,
}

/// The parsed parameter `filters`.
#[derive(Debug)]
pub(crate) struct ExactFilters {
    /// The conditions, combined by `and`.
    pub(crate) filter: Filter,
    /// A warning for each ignored condition.
    pub(crate) warnings: Vec<Warning>,
}

impl ExactFilters {
    /// Parses the parameter. With `strict`, a malformed condition is an error.
    ///
    /// # Errors
    /// 400 `validation_error`, with `strict` or for too many conditions.
    pub(crate) fn read(shape: &Shape, text: Option<&str>, strict: bool) -> Result<Self> {
        let param = "filters";
        let parsed = text.filter(|text| !text.is_empty()).map(serde_json::from_str::<Value>);
        let read = match parsed {
            None => Self { filter: Filter::All(Vec::new()), warnings: Vec::new() },
            Some(Ok(Value::Array(given))) => Self::of(shape, &given, param)?,
            Some(_) => {
                let message = "This is not a JSON array of conditions.".to_owned();
                Self {
                    filter: Filter::All(Vec::new()),
                    warnings: vec![Warning { param: param.to_owned(), message }],
                }
            }
        };
        if strict { read.strictly() } else { Ok(read) }
    }

    /// Parses conditions and rejects malformed ones. Errors name the parameter `param`.
    ///
    /// # Errors
    /// 400 `validation_error`.
    pub(crate) fn all(shape: &Shape, given: &[Value], param: &str) -> Result<Filter> {
        Ok(Self::of(shape, given, param)?.strictly()?.filter)
    }

    fn of(shape: &Shape, given: &[Value], param: &str) -> Result<Self> {
        if given.len() > MOST {
            return Err(Error::invalid(param, format_args!("must have at most {MOST} conditions")));
        }
        let mut conditions = Vec::new();
        let mut warnings = Vec::new();
        for (place, condition) in given.iter().enumerate() {
            match read(shape, condition) {
                Ok(condition) => conditions.push(Filter::One(condition)),
                Err(message) => warnings.push(Warning { param: format!("{param}[{place}]"), message }),
            }
        }
        Ok(Self { filter: Filter::All(conditions), warnings })
    }

    fn strictly(self) -> Result<Self> {
        let errors = self.warnings.iter().map(|warning| FieldError::new(&warning.param, warning.rule()));
        Error::all_invalid(errors.collect()).map_or(Ok(self), Err)
    }
}

impl Warning {
    /// Returns the message as the rest of a sentence that begins with the name of the parameter.
    fn rule(&self) -> String {
        format!("cannot be used: {}", self.message.trim_end_matches('.'))
    }
}

fn read(shape: &Shape, condition: &Value) -> Result<Condition, String> {
    let object = condition.as_object().ok_or("A condition is an object with `field`, `op` and `value`.")?;
    let name = object.get("field").and_then(Value::as_str).ok_or("The condition has no `field`.")?;
    let shown: String = name.chars().take(63).collect();
    let subject =
        Subject::named(shape, name).ok_or_else(|| format!("`{shown}` is not a field of contacts."))?;
    let negated = match object.get("op") {
        None => false,
        Some(Value::String(op)) if op == "eq" => false,
        Some(Value::String(op)) if op == "neq" => true,
        Some(_) => return Err("`op` must be `eq` or `neq`.".to_owned()),
    };
    let value = match object.get("value") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => shortest(number),
        Some(Value::Bool(value)) => value.to_string(),
        _ => return Err("`value` must be text, a number, `true` or `false`.".to_owned()),
    };
    Condition::exact(shape, subject, &value, negated)
        .ok_or_else(|| format!("`{shown}` is not a field of contacts."))
}

/// Formats a number in its shortest decimal form: 5.0 is `5`.
fn shortest(number: &serde_json::Number) -> String {
    fields::decimal::kept(&fields::decimal::of(number))
        .map_or_else(|_| number.to_string(), |kept| kept.to_string())
}
