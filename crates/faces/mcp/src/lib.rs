//! The MCP server at `POST /api/v1/mcp`: operations as tools.
//!
//! [`Endpoint`] is the protocol: origins, headers, both eras, JSON-RPC, challenges, long work. [`Tools`] is what is
//! listed and called. Every call runs through the one pipeline as a request of the operation that it names.

mod tools;

pub use tools::{Outcome, Running, Selection, ToolAnswer, ToolCall, ToolResult, Tools};
