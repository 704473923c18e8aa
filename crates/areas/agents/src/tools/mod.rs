//! Tools of an agent: their rows and responses, and the functions that they offer to the model.

mod callable;
mod code_function;
pub(crate) mod code_functions;
mod deferred;
mod fences;
pub(crate) mod flow;
mod flow_settings;
mod functions;
pub(crate) mod grants;
mod http_call;
pub(crate) mod http_rules;
mod outputs;
mod tool;
pub(crate) mod verification;

pub use callable::Callable;
pub use code_function::CodeFunction;
pub use deferred::{FoundTools, find_tools, split as split_deferred};
pub use fences::{FILE_END, fenced, shorten};
pub use flow::{CalledFlow, flow_result};
pub use functions::{Function, Reach, Records, Takes};
pub use grants::scopes;
pub use http_call::{HttpFailure, HttpResult, call as call_http};
pub use outputs::{bounded_answer, bounded_output};
pub use tool::{
    AgentTool, FIND_TOOLS, Grant, HttpMethod, HttpTool, LOAD_SKILL, READ_SKILL_FILE, RUN_SKILL_SCRIPT,
    ToolAccess, ToolApproval, ToolFunction, ToolKind, ToolRow, ToolScope, ToolSettings, header_place,
};
pub(crate) use tool::{MOST_CALLS, PATIENCE, ToolSnapshot};
