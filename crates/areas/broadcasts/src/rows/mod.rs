//! The rows of broadcasts and recipients, and their responses.

pub(crate) mod counts;
pub(crate) mod events;
pub(crate) mod output;
pub(crate) mod pace;
pub(crate) mod row;
pub(crate) mod template;
