//! Contacts as records: their kind, fields, JSON, events and lookup.

pub(crate) mod consent;
pub(crate) mod contact;
pub(crate) mod detail;
pub(crate) mod events;
pub(crate) mod find;
pub(crate) mod forget;
pub(crate) mod kind;
pub(crate) mod matching;
pub(crate) mod merges;
pub(crate) mod print;
pub(crate) mod system_fields;
