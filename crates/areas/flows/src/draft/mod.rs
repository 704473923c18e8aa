//! Flows as their owners draw and publish them.

pub(crate) mod checks;
pub(crate) mod impact;
pub(crate) mod mcp_tools;
pub(crate) mod model;
pub(crate) mod object;
pub(crate) mod operations;
pub(crate) mod publish;
pub(crate) mod recursion;
pub(crate) mod remove;
pub(crate) mod settings;
pub(crate) mod uses;
pub(crate) mod validation;
pub(crate) mod version_operations;
pub(crate) mod versions;
