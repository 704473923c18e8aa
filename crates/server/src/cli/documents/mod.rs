//! `svc openapi`: the documents of the contract, of events, of formulas and of expressions.

pub(crate) mod contract;
pub(crate) mod events_document;
pub(crate) mod formulas_document;
