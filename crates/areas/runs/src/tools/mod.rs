//! Tool calls: HTTP requests, other agents, and operations of the service.

mod agent;
mod check;
mod execute;
mod function;
mod headers;
mod limits;
mod operation_call;
mod verify;

pub(crate) use execute::ToolResults;
