//! Imports: files of rows that become records, as jobs that go on where they stopped.
//!
//! [`start`] stores the request, [`inspect`], [`detect`], [`header`], [`decimals`] and [`dates`] find out what the file is,
//! [`reader`] reads it record by record, [`columns`] says which column becomes which field, [`plan`] what a record says of an
//! item, [`mistakes`] what is wrong with it and what is left when that is skipped, [`printed`] what a line of JSON says, [`begin`]
//! makes what is missing, [`prepare`] makes records ready while those before are written, [`rows`] writes a batch of them
//! in one transaction, by the fields of [`batch_shape`], [`target`] is what each kind of records adds, [`job`] runs it all, [`wait`] waits for its end, and [`report`] writes the file of
//! what was rejected.

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
