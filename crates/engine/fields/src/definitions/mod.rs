//! Definitions: fields, their options, and the set of fields that records of one kind have.

pub(crate) mod column;
pub(crate) mod field;
pub mod field_keys;
pub mod option_rules;
pub(crate) mod options;
#[cfg(any(test, feature = "samples"))]
pub mod sample;
pub(crate) mod set;
pub(crate) mod subject;
pub(crate) mod unique;
