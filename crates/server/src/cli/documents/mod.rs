//! `svc openapi`: the documents of the contract, of events, of formulas, of expressions and of the nodes of flows.

pub(crate) mod contract;
pub(crate) mod events_document;
pub(crate) mod formulas_document;
