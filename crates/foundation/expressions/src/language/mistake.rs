//! What is wrong with a source text.

/// What is wrong with the text of an expression, a template or a condition. Callers make a 400 of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The reason as a word: `invalid_expression`, `expression_too_long`, `expression_too_complex`.
    pub code: &'static str,
    /// The reason as the end of a sentence that begins with the parameter: "names …".
    pub message: String,
    /// Where it stands below the parameter, such as `and[1].right`. Empty for the whole of it.
    pub path: String,
}

impl Mistake {
    /// The text cannot be understood, or does not fit.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_expression", message)
    }

    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), path: String::new() }
    }

    /// The mistake, of a character from 1 on.
    pub(crate) fn at(place: usize, message: impl std::fmt::Display) -> Self {
        Self::invalid(format!("cannot be understood at character {place}: {message}"))
    }

    /// The mistake of a part that stands at `name` below.
    pub(crate) fn below(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }

    /// The mistake as an error of the request's field `param`, or of what stands below it.
    pub fn of_param(self, param: &str) -> model::FieldError {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        model::FieldError {
            param: format!("{param}{dot}{}", self.path),
            code: Some(self.code),
            message: self.message,
        }
    }
}
