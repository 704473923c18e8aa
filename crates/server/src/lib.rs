//! The service, put together: configuration, composition, command line, lifecycle.

pub mod cli;
mod compose;
mod config;
mod demo;
#[cfg(feature = "local-llm")]
mod local;
mod serve;
mod tiers;

pub use compose::{Service, ServiceParts, VERSION, registry};
pub use config::{Config, read_config};
