//! `svc openapi`: the documents of the contract, of events, of formulas, of expressions, of the nodes of flows and of roles.

pub(crate) mod contract;
pub(crate) mod events_document;
pub(crate) mod formulas_document;
pub(crate) mod roles_document;
