//! The service, put together: configuration, composition, command line, lifecycle.

pub mod cli;
mod compose;
mod config;
mod database;
mod demo;
mod file_storage;
#[cfg(feature = "local-llm")]
mod local;
mod logging;
mod operator_error;
mod process;
mod secret_key;
mod serve;
mod tiers;
mod traces;
mod values;

/// What all memory comes from, SQLite's too: the system's own allocator spends a fifth more of a write's time. Without huge
/// pages, which would keep half as much again resident.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use compose::{LogRetention, Service, ServiceParts, VERSION, registry, sealed_tables};
pub use config::{Config, read_config};
pub use traces::Traces;
