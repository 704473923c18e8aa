//! Customer relations: the people whom a business knows, and the work that they cause.

pub mod contacts;
mod group;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;

pub use group::{areas, group};
