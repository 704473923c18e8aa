//! Imports and exports: files whose rows become records, and records as files.

pub mod exports;
mod group;
mod guard;
pub mod imports;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
pub mod tables;

pub use group::ENGINE;
