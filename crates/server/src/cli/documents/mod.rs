//! `svc openapi`: the documents of the contract, of events and of formulas.

pub(crate) mod contract;
pub(crate) mod events_document;
pub(crate) mod formulas_document;
