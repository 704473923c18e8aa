//! Imports: files of rows that become items, as jobs that go on where they stopped.
//!
//! [`operations`] takes the wish, [`look`] and [`detect`] find out what the file is, [`reader`] reads it record by
//! record, [`plan`] says which column becomes which field, [`begin`] makes what is missing, [`rows`] writes a stretch of records in one transaction,
//! [`job`] holds it all together, and [`report`] tells what could not be taken.

mod begin;
mod detect;
mod events;
mod job;
mod look;
mod model;
mod operations;
mod plan;
mod queries;
mod reader;
mod report;
mod rows;

pub(crate) use events::ImportEvent;
pub use job::{ATTEMPTS, Importer, KIND as JOB, run};
pub use model::{Import, ImportStatus};

use ::operation::Operations;

/// Operations of the area Collections.
pub(crate) fn of_collections() -> Operations {
    vec![Box::new(operations::ListImports), Box::new(operations::GetImport)]
}

/// Operations of the area Items.
pub(crate) fn of_items() -> Operations {
    vec![Box::new(operations::ImportItems)]
}
