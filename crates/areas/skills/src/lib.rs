//! Skills: procedures that agents load when they need them.
//!
//! The row of a skill is its draft, and SKILL.md, whose bytes are stored as they are, is the source of its fields. Publishing
//! freezes the draft with its files as a version. Agents load versions only.

mod draft;
mod file_operations;
mod files;
mod group;
mod library;
mod matching;
mod model;
mod operations;
mod packages;
mod publish;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod terms;
mod variables;
mod versions;

pub use group::GROUP;
