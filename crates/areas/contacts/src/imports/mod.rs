//! Imports of contacts.

pub(crate) mod model;
pub(crate) mod operations;
mod target;
pub(crate) mod template;

pub(crate) use target::ContactImports;
