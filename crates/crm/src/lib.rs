//! Customer relations: the people whom a business knows, and the work that they cause.

mod group;

pub use group::{areas, group};
