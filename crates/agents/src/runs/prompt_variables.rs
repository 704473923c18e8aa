//! Variables of the workspace in an agent's instructions: their values are read when a run is accepted, and kept with it.

use crate::agents::Settings;
use model::{Caller, Code, Error, Result};
use operation::ports::{WorkspaceVariables, referenced_variables, with_variables};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;
use store::Read;

/// The most bytes that variables add to instructions.
const MOST: usize = 256 * 1024;

/// What instructions refer to: the values as text, and nothing for variables without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PromptVariables(BTreeMap<String, Option<String>>);

impl PromptVariables {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads what `instructions` refer to. Secrets have no value here: prompts are stored and shown.
    ///
    /// # Errors
    /// `invalid_state` where the values are too large together.
    pub(super) fn read(
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
            other => Some(text(&other.value)),
        };
        let values: BTreeMap<_, _> = keys.iter().map(|key| ((*key).to_owned(), value(key))).collect();
        // A short reference may stand there often, and its value may be long.
        let (left, is_too_much) = (Cell::new(MOST), Cell::new(false));
        with_variables(instructions, |key| {
            let length = values.get(key).and_then(Option::as_ref).map_or(0, String::len);
            is_too_much.set(is_too_much.get() || length > left.get());
            left.set(left.get().saturating_sub(length));
            None
        });
        if is_too_much.get() {
            let message =
                format!("The variables in the agent's instructions have more than {MOST} bytes together.");
            return Err(Error::new(Code::InvalidState, message));
        }
        Ok(Self(values))
    }

    /// Puts the values into the instructions. Gives the keys of the variables that have none.
    pub(super) fn resolve(&self, settings: &mut Settings) -> Vec<String> {
        if !self.0.is_empty() {
            let value = |key: &str| self.0.get(key).cloned().flatten();
            settings.instructions = with_variables(&settings.instructions, value);
        }
        let missing = self.0.iter().filter(|(_, value)| value.is_none());
        missing.map(|(key, _)| key.clone()).collect()
    }
}

/// A value in a text: text as it is, anything else as JSON.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
