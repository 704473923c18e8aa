//! Graphs of flows: their nodes and edges, the types of nodes, and the checks before a flow is published. No database.
//!
//! A [`Graph`] is what an owner draws. [`check()`] finds everything that is wrong with it at once. [`NodeType`] is the table of
//! all types of nodes: what the engine executes, what the contract publishes and what the documents list comes from it.

pub mod check;
mod document;
mod graph;
mod index;
mod nodes;

pub use check::{
    Anything, Issue, IssueCode, ObjectReference, ROOTS, Severity, Surroundings, VariableUse, awaited_events,
    check, missing_scopes, objects, scopes, variables,
};
pub use document::document;
pub use graph::{
    Edge, FlowBackoff, FlowEffectPolicy, FlowOnError, FlowVariableType, Graph, Node, Position, Retry,
    Variable, is_repeatable, is_repeatable_method,
};
pub use index::{Index, Place};
pub use nodes::{NamedSchema, NodeType, Role, config};
