//! Who has access: operators of the installation, the team of a workspace, and OAuth apps.

pub(crate) mod app;
pub(crate) mod operator;
pub(crate) mod team;
