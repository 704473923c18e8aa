//! Tool calls: HTTP requests, and operations of the service.

mod check;
mod execute;
mod function;
mod headers;
mod http;
mod limits;
mod operation_call;

pub(crate) use execute::ToolResults;
