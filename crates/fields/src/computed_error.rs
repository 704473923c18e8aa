//! Why a computed field has no value.

use crate::decimal::Loss;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Why a value cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComputedError {
    /// Something is divided by zero.
    DivisionByZero,
    /// It is a root or a power that is no real number, such as the root of -1.
    NoRealNumber,
    /// It has more digits than a number keeps.
    TooPrecise,
    /// It is greater, or nearer to zero, than a number can be.
    OutOfRange,
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
