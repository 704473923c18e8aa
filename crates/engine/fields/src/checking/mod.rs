//! Checking of values against the definition of their field, and conversion to another type.

pub mod convert;
pub mod value;
