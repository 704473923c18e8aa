//! All operations: what the documents promise, asked of every one of them.

pub(crate) mod answers;
pub(crate) mod bad_input;
pub(crate) mod channel_seeds;
pub(crate) mod contract;
pub(crate) mod document;
pub(crate) mod documents;
pub(crate) mod event_types;
pub(crate) mod examples;
pub(crate) mod mcp_tools;
pub(crate) mod over_mcp;
pub(crate) mod positions;
pub(crate) mod published;
pub(crate) mod samples;
pub(crate) mod schema;
pub(crate) mod surface;
pub(crate) mod sweep;
pub(crate) mod valid;
pub(crate) mod versions;
