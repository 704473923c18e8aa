//! Values of the placeholders in an agent's instructions and in the fixed arguments of its tools. They are read when a run is
//! accepted, and kept with it, so that a run that is resumed goes on with the same.

use super::variables::{PromptVariables, value_text};
use crate::placeholders::ROOTS;
use fields::text;
use model::{Code, Error, Result};
use ports::{Placeholder, whole_placeholder, with_values};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Values by what stands in the braces, such as `contact.$name`. Variables are among them only for fixed arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceholderValues(pub(super) BTreeMap<String, Value>);

impl PlaceholderValues {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn value(&self, placeholder: &Placeholder<'_>) -> Option<&Value> {
        self.0.get(&placeholder.path()).filter(|value| !value.is_null() && *value != "")
    }

    /// The text in the place of a placeholder of instructions. `None` leaves what is none.
    pub fn in_instructions(
        &self,
        placeholder: &Placeholder<'_>,
        variables: &PromptVariables,
    ) -> Option<String> {
        if !ROOTS.contains(&placeholder.root) || (placeholder.root == "vars" && placeholder.key.is_empty()) {
            return None;
        }
        let value = match placeholder.root {
            "vars" => variables.value(placeholder.key),
            "contact" => self.value(placeholder).and_then(text::of_value).map(|text| one_line(&text)),
            _ => self.value(placeholder).and_then(text::of_value),
        };
        Some(value.unwrap_or_else(|| placeholder.fallback.unwrap_or_default().to_owned()))
    }

    /// Fixed arguments with values.
    ///
    /// # Errors
    /// `invalid_state` for a placeholder without a value and without a text for that case: the call would be made without
    /// the limit that its owner wanted.
    pub fn filled(&self, fixed: &Map<String, Value>) -> Result<Map<String, Value>> {
        fixed.iter().map(|(name, value)| Ok((name.clone(), self.filled_value(value)?))).collect()
    }

    fn filled_value(&self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::String(text) => match whole_placeholder(text).filter(is_known) {
                Some(placeholder) => match (self.value(&placeholder), placeholder.fallback) {
                    (Some(value), _) => value.clone(),
                    (None, Some(fallback)) => fallback.into(),
                    (None, None) => return Err(no_value(&placeholder)),
                },
                None => self.filled_text(text)?.into(),
            },
            Value::Array(values) => {
                values.iter().map(|value| self.filled_value(value)).collect::<Result<_>>()?
            }
            Value::Object(members) => self.filled(members)?.into(),
            other => other.clone(),
        })
    }

    fn filled_text(&self, text: &str) -> Result<String> {
        let mut missing = None;
        let filled = with_values(text, |placeholder| {
            let known = Some(placeholder).filter(is_known)?;
            let value = self.value(&known).map(value_text).or_else(|| known.fallback.map(str::to_owned));
            if value.is_none() {
                missing.get_or_insert(known);
            }
            value
        });
        missing.map_or(Ok(filled), |placeholder| Err(no_value(&placeholder)))
    }
}

fn is_known(placeholder: &Placeholder<'_>) -> bool {
    ROOTS.contains(&placeholder.root)
}

fn no_value(placeholder: &Placeholder<'_>) -> Error {
    let message = format!(
        "The placeholder `{{{{{}}}}}` in the tool's fixed arguments has no value in this run, so the tool cannot be called.",
        placeholder.path()
    );
    Error::new(Code::InvalidState, message)
}

/// A text of a contact in one line: it is data, and must not look like a paragraph of the instructions.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
