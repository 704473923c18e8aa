//! Values: numbers, texts, dates and JSON, and how they compare.

pub(crate) mod compare;
pub mod decimal;
pub mod equality;
pub(crate) mod failure;
pub(crate) mod moment;
pub(crate) mod number;
pub(crate) mod path;
pub mod text;
pub(crate) mod times;
pub(crate) mod types;
pub(crate) mod value;
