//! Flows as their owners draw and publish them.

pub(crate) mod model;
pub(crate) mod settings;
pub(crate) mod versions;
