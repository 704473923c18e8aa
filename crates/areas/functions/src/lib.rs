//! Functions: JavaScript of tenants that agents call.

mod group;

pub use group::GROUP;
