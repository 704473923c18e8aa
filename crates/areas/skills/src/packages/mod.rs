//! Import and export of skills as packages.

pub(crate) mod download;
pub(crate) mod export;
pub(crate) mod import;
mod pack;
mod report;
