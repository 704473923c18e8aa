//! Why a computed field has no value.

use expressions::decimal::Loss;
use model::string_enum;
use std::collections::BTreeMap;

string_enum! {
    /// Why a value cannot be computed.
    pub enum ComputedError {
        /// A division by zero.
        DivisionByZero = "division_by_zero",
        /// A root or power that is not a real number, such as the square root of -1.
        NoRealNumber = "no_real_number",
        /// The result has more than 15 significant digits.
        TooPrecise = "too_precise",
        /// The result is too large, or too close to zero.
        OutOfRange = "out_of_range",
        /// A field that the value is computed from was deleted.
        MissingSource = "missing_source",
        /// A field that the value is computed from has another type, whose values do not fit.
        InvalidSource = "invalid_source",
    }
}

impl From<Loss> for ComputedError {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::TooPrecise => Self::TooPrecise,
            Loss::OutOfRange => Self::OutOfRange,
        }
    }
}

/// Why computed fields have no value, by their keys.
pub type ComputedErrors = BTreeMap<String, ComputedError>;
