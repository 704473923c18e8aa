//! Who has access: operators of the installation, the team of a workspace, and OAuth apps.

pub(in crate::cli) mod app;
pub(in crate::cli) mod operator;
pub(in crate::cli) mod team;
