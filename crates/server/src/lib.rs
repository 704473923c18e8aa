//! The service, put together: configuration, composition, command line, lifecycle.
//!
//! A program of your own opens it with [`Service::open`] and calls operations with [`Service::call`].

pub mod cli;
mod compose;
mod config;
mod database;
mod demo;
mod file_storage;
#[cfg(feature = "local-llm")]
mod local;
mod log_settings;
mod logging;
mod open;
mod operator_error;
mod process;
mod sandbox_metrics;
mod secret_key;
mod serve;
mod settings;
mod start_link;
mod tiers;
mod traces;
mod values;
mod version;

pub use compose::{Service, ServiceParts, log_kinds, registry, sealed_tables};
pub use config::{Config, read_config};
pub use dashboard::InsecureSignIn;
pub use operation::{LocalAnswer, OperationInput};
pub use traces::Traces;
pub use version::VERSION;
