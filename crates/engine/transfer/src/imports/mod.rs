//! Imports: files whose rows become records. An import is a job that resumes where it stopped.
//!
//! The modules follow the steps of an import:
//!
//! - [`start`] stores the request, and the module [`job`](mod@job) runs it.
//! - [`inspect`] detects the format with [`detect`], [`header`] and [`cells`], and [`columns`] assigns the columns to
//!   fields.
//! - [`begin`] creates missing fields.
//! - [`reader`] reads records, [`printed`] parses those in JSON, and [`plan`] converts them to values. [`prepare`]
//!   does this for the next batch while the current one is written.
//! - [`rows`] writes a batch in one transaction with the fields of [`batch_shape`], and [`mistakes`] collects errors.
//! - [`report`] writes the file of rejected rows, and [`wait`] waits for the end.
//!
//! [`target`] is the part that each kind of records implements.

mod batch_shape;
mod begin;
mod cells;
mod columns;
mod detect;
mod header;
mod inspect;
mod job;
mod mistakes;
mod model;
mod plan;
mod prepare;
mod printed;
mod queries;
mod reader;
mod report;
mod rows;
mod target;
mod wait;

pub use cells::dates::DateFormat;
pub use job::{Importer, Origin, check_origin, importable, job, start};
pub use model::{
    AbortImport, Amount, Column, ContinueImport, Counts, DecimalSeparator, Faults, FieldToMake, Format,
    IgnoredReason, ImportError, ImportRow, ImportSettings, ImportSource, ImportStatus, ImportWarning,
    OnError, OnInvalid, RowError, TagsMode,
};
pub use plan::check;
pub use queries::{faults, list, one};
pub use target::Target;
pub use wait::ImportEnds;
