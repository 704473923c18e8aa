//! Variables of the workspace in an agent's instructions: their values are read when a run is accepted, and kept with it.

use model::{Caller, Code, Error, Result};
use ports::{Placeholder, WorkspaceVariables, referenced_variables, with_values};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use store::Read;

/// The most bytes that placeholders add to instructions.
const MOST: usize = 256 * 1024;

/// Values of the variables in instructions, as text. `None` for variables without a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptVariables(BTreeMap<String, Option<String>>);

impl PromptVariables {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the values of the variables in `instructions`. Secrets have no value here, because prompts are stored and shown.
    ///
    /// # Errors
    /// `internal_error`.
    pub fn read(
        read: &mut Read,
        variables: &WorkspaceVariables,
        caller: &Caller,
        instructions: &str,
    ) -> Result<Self> {
        let keys = referenced_variables(instructions);
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let mut known = variables.values(read, caller.workspace_id(), caller.key.env, &keys)?;
        let mut value = |key: &str| match known.remove(key)? {
            secret if secret.is_secret => None,
            other => Some(value_text(&other.value)),
        };
        let values: BTreeMap<_, _> = keys.iter().map(|key| ((*key).to_owned(), value(key))).collect();
        Ok(Self(values))
    }

    /// The value of a variable.
    pub fn value(&self, key: &str) -> Option<String> {
        self.0.get(key).cloned().flatten()
    }

    /// The keys of the variables that have no value.
    pub fn missing(&self) -> Vec<String> {
        self.0.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key.clone()).collect()
    }
}

/// Checks that the values which are put into instructions are not too large together: a short placeholder may stand there often,
/// and its value may be long.
///
/// # Errors
/// `invalid_state`.
pub(super) fn expect_room(
    instructions: &str,
    value: impl Fn(&Placeholder<'_>) -> Option<String>,
) -> Result<()> {
    let (mut left, mut is_too_much) = (MOST, false);
    with_values(instructions, |placeholder| {
        let length = value(&placeholder).map_or(0, |text| text.len());
        is_too_much |= length > left;
        left = left.saturating_sub(length);
        None
    });
    if is_too_much {
        let message =
            format!("The placeholders in the agent's instructions have more than {MOST} bytes together.");
        return Err(Error::new(Code::InvalidState, message));
    }
    Ok(())
}

/// A value in a text: text as it is, anything else as JSON.
pub fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
