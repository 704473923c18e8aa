//! Values: numbers, texts, telephone numbers and JSON, and the types that they can have.

pub(crate) mod computed_error;
pub mod invisible;
pub mod json_schema;
pub(crate) mod kind;
pub mod phone;
pub(crate) mod problem;
