//! Why a value, or the definition of a field, is refused.

use expressions::decimal::Loss;
use model::FieldError;

/// Why something does not fit a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The reason as a word: `invalid_type`, `out_of_range`, `too_long`, `unknown_option`, `read_only_field`, …
    pub code: &'static str,
    /// The reason as the end of a sentence that begins with the field: "must be …".
    pub message: String,
}

impl Problem {
    /// A reason.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The reason, as an error of the request's field `param`.
    pub fn at(self, param: impl Into<String>) -> FieldError {
        FieldError { param: param.into(), code: Some(self.code), message: self.message }
    }
}

impl From<Loss> for Problem {
    fn from(loss: Loss) -> Self {
        Self::new(loss.code(), loss.rule())
    }
}
