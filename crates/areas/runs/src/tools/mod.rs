//! Tool calls: HTTP requests, other agents, and operations of the service.

mod agent;
mod check;
mod code_function;
mod execute;
mod function;
mod headers;
mod limits;
mod operation_call;
mod skill;
mod verify;

pub(crate) use execute::ToolResults;
