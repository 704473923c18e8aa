//! Lists, counts and exports of contacts, their filters, and reference data such as system fields and stages.

pub(crate) mod counts;
pub(crate) mod exports;
pub(crate) mod filters;
pub(crate) mod list;
pub(crate) mod reference;
