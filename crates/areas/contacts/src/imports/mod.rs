//! Imports of contacts.

pub(crate) mod operations;

pub(crate) use operations::ContactImports;
