//! The record engine: rows of records with their keys, terms, links, computed values and activity; queries over them;
//! changes of their fields.
//!
//! Whoever changes a record goes through [`rows::Writer`], which keeps its row, its keys, its terms, its links, its
//! activity and its events in step. [`shape::Shape`] is a snapshot of the fields and indexes of one set of records.

pub mod activity;
mod author;
pub mod bulk;
pub mod columnar;
pub mod compute;
pub mod count;
pub mod definitions;
mod expand;
pub mod indexes;
mod jobs;
pub mod links;
pub mod new_choices;
pub mod print;
pub mod publish;
pub mod rows;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
pub mod search;
pub mod selection;
pub mod sets;
pub mod shape;

pub use author::{Author, Source};
pub use jobs::jobs;
