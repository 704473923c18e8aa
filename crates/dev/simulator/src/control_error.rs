//! Errors of the control interface.

/// Why something that was asked of the simulator is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlError {
    /// Whether what was named does not exist.
    pub is_missing: bool,
    /// For people.
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
