//! Errors of the control interface.

/// The reason why a control request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlError {
    /// Whether the named object does not exist.
    pub is_missing: bool,
    /// A message for people.
    pub message: String,
}

impl ControlError {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { is_missing: false, message: message.into() }
    }

    pub(crate) fn missing(what: &str, id: &str) -> Self {
        Self { is_missing: true, message: format!("There is no {what} {id}.") }
    }
}

impl std::fmt::Display for ControlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ControlError {}
