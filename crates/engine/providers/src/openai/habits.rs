//! Unsupported parameters of models, learned from their refusals, model by model.
//!
//! Reasoning models want `max_completion_tokens` where all other servers know only `max_tokens`, and some take no
//! temperature or no `response_format`. A name does not say which.

use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Request format that a model accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Habit {
    /// The limit is called `max_completion_tokens`.
    pub(super) completion_tokens: bool,
    /// It takes no temperature.
    pub(super) no_temperature: bool,
    /// It takes no `response_format`, so that the schema of an answer is asked for in the instructions.
    pub(super) no_response_format: bool,
}

/// The habits of a server's models, by name. As many as the operator configured.
#[derive(Default)]
pub(super) struct Habits(Mutex<HashMap<String, Habit>>);

impl Habits {
    pub(super) fn of(&self, model: &str) -> Habit {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(model).copied().unwrap_or_default()
    }

    /// Learns from a refusal. `false`: it taught nothing, and would be given again.
    pub(super) fn learn(&self, model: &str, refusal: &[u8]) -> bool {
        let Ok(Refusal { error }) = serde_json::from_slice(refusal) else { return false };
        if !matches!(error.code.as_deref(), Some("unsupported_parameter" | "unsupported_value")) {
            return false;
        }
        let mut habits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = habits.get(model).copied().unwrap_or_default();
        let habit = match error.param.as_deref() {
            Some("max_tokens") => Habit { completion_tokens: true, ..before },
            Some("temperature") => Habit { no_temperature: true, ..before },
            Some("response_format" | "response_format.type") => Habit { no_response_format: true, ..before },
            _ => before,
        };
        habits.insert(model.to_owned(), habit);
        habit != before
    }
}

#[derive(Deserialize)]
struct Refusal {
    error: Why,
}

#[derive(Deserialize)]
struct Why {
    code: Option<String>,
    param: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_habit_is_learned_once() {
        let habits = Habits::default();
        let tokens = br#"{"error":{"message":"Use 'max_completion_tokens'.","param":"max_tokens","code":"unsupported_parameter"}}"#;
        let temperature = br#"{"error":{"param":"temperature","code":"unsupported_value"}}"#;
        assert!(habits.learn("o", tokens) && !habits.learn("o", tokens));
        assert!(habits.learn("o", temperature));
        let learned = Habit { completion_tokens: true, no_temperature: true, no_response_format: false };
        assert_eq!(habits.of("o"), learned);
        let format = br#"{"error":{"param":"response_format","code":"unsupported_parameter"}}"#;
        assert!(habits.learn("f", format) && habits.of("f").no_response_format);
        for other in [
            &br#"{"error":{"param":"max_tokens","code":"invalid_value"}}"#[..],
            br#"{"error":"no"}"#,
            b"<html>",
        ] {
            assert!(!habits.learn("p", other));
        }
        assert_eq!(habits.of("p"), Habit::default());
    }
}
