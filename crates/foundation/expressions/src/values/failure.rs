//! Why an evaluation has no result.

use crate::values::decimal::Loss;
use std::borrow::Cow;
use std::fmt;

/// Why an evaluation has no result. It is never the same as no value, and never the same as `false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A division by zero.
    DivisionByZero,
    /// A root or power that is not a real number.
    NoRealNumber,
    /// A number with more digits than are kept.
    TooPrecise,
    /// A number that is too large, or too close to zero.
    OutOfRange,
    /// A value of a type that does not fit, with the sentence that says so.
    WrongType(String),
    /// With `strict`: this reference has no value.
    Missing(String),
    /// A regular expression, a format or a unit that cannot be used, with the sentence that says so.
    InvalidArgument(String),
    /// The evaluation takes more steps than it may.
    TooManySteps,
    /// A text or a list becomes longer than it may.
    TooLarge,
    /// What is read has no value for a reason of its own, which this word names.
    Unavailable(Cow<'static, str>),
}

impl Failure {
    /// The reason as a word.
    pub fn code(&self) -> &str {
        match self {
            Self::DivisionByZero => "division_by_zero",
            Self::NoRealNumber => "no_real_number",
            Self::TooPrecise => "too_precise",
            Self::OutOfRange => "out_of_range",
            Self::WrongType(_) => "wrong_type",
            Self::Missing(_) => "missing_value",
            Self::InvalidArgument(_) => "invalid_argument",
            Self::TooManySteps => "too_many_steps",
            Self::TooLarge => "too_large",
            Self::Unavailable(word) => word,
        }
    }

    /// Whether the evaluation reached a limit, which no function accepts.
    pub(crate) fn is_limit(&self) -> bool {
        matches!(self, Self::TooManySteps | Self::TooLarge)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DivisionByZero => f.write_str("divides by zero"),
            Self::NoRealNumber => f.write_str("has a root or power that is not a real number"),
            Self::TooPrecise => f.write_str("has a number with more than 15 significant digits"),
            Self::OutOfRange => f.write_str("has a number that is too large, or too close to zero"),
            Self::WrongType(sentence) | Self::InvalidArgument(sentence) => f.write_str(sentence),
            Self::Missing(reference) => write!(f, "has no value for `{reference}`"),
            Self::TooManySteps => f.write_str("takes too many steps"),
            Self::TooLarge => f.write_str("makes a text or list that is too long"),
            Self::Unavailable(word) => write!(f, "cannot be read: {word}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Loss> for Failure {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::TooPrecise => Self::TooPrecise,
            Loss::OutOfRange => Self::OutOfRange,
        }
    }
}

/// Whether all results are true, or whether any is. One that decides does so though others failed, and otherwise the first
/// failure is that of all.
pub(crate) fn decided(
    results: impl Iterator<Item = Result<bool, Failure>>,
    all: bool,
) -> Result<bool, Failure> {
    let mut failure = None;
    for result in results {
        match result {
            Ok(value) if value != all => return Ok(value),
            Ok(_) => {}
            Err(limit) if limit.is_limit() => return Err(limit),
            Err(other) => failure = failure.or(Some(other)),
        }
    }
    failure.map_or(Ok(all), Err)
}
