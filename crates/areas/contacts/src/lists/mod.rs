//! Lists of contacts, with what their filters can name, and what the service knows of all contacts.

pub(crate) mod counts;
pub(crate) mod exports;
pub(crate) mod filters;
pub(crate) mod list;
pub(crate) mod reference;
