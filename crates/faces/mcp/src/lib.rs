//! The MCP server at `POST /api/v1/mcp`: operations as tools.
//!
//! [`Endpoint`] is the protocol: origins, headers, both eras, JSON-RPC, challenges, long work. [`Tools`] is what is
//! listed and called. Every call runs through the one pipeline as a request of the operation that it names.
//!
//! The protocol is written here rather than taken from the crate `rmcp`. That crate's server refuses requests whose
//! `Accept` lacks a type, answers unreadable bodies in plain text, cannot answer a call with 403, and prints lists
//! from values on each request. All of these would have to be done before or after it, and that is most of the work.

mod area;
mod catalog;
mod challenge;
mod dispatch;
mod endpoint;
mod era;
mod group;
mod long;
mod message;
mod origin;
mod server;
mod tasks;
mod tools;

pub use area::Mcp;
pub use catalog::Catalog;
pub use endpoint::{Endpoint, Settings};
pub use group::GROUP;
pub use tools::{
    Arguments, MOST_CHARACTERS_LISTED, MOST_LISTED, Outcome, Running, Selection, ToolAnswer, ToolCall,
    ToolResult, Tools,
};
