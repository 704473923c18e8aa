//! Tools of an agent: their rows and responses, and the functions that they offer to the model.

mod callable;
mod functions;
pub(crate) mod grants;
pub(crate) mod http_rules;
mod tool;

pub use callable::Callable;
pub use functions::{Function, Reach, Records, Takes};
pub use grants::scopes;
pub use tool::{
    AgentTool, Grant, HttpMethod, HttpTool, ToolAccess, ToolApproval, ToolFunction, ToolKind, ToolRow,
    ToolScope, ToolSettings, header_place,
};
pub(crate) use tool::{MOST_CALLS, PATIENCE, ToolSnapshot};
