//! Functions: JavaScript of tenants that agents call.

mod group;
pub mod host;
pub mod network;

pub use group::GROUP;
