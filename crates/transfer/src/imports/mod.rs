//! Imports: files of rows that become records, as jobs that go on where they stopped.
//!
//! [`start`] stores the request, [`inspect`], [`detect`], [`header`] and [`decimals`] find out what the file is, [`reader`]
//! reads it record by record, [`plan`] says which column becomes which field, [`printed`] what a line of JSON says, [`begin`]
//! makes what is missing, [`prepare`] makes records ready while those before are written, [`rows`] writes a batch of them
//! in one transaction, [`target`] is what each kind of records adds, [`job`] runs it all, and [`report`] writes the file of
//! what was rejected.

mod begin;
mod decimals;
mod detect;
mod header;
mod inspect;
mod job;
mod model;
mod plan;
mod prepare;
mod printed;
mod queries;
mod reader;
mod report;
mod rows;
mod target;

pub use job::{Importer, Origin, check_origin, importable, job, start};
pub use model::{
    AbortImport, Amount, Column, ContinueImport, Counts, DecimalSeparator, FieldToMake, Format,
    IgnoredReason, ImportError, ImportRow, ImportSettings, ImportSource, ImportStatus, ImportWarning,
    OnError, RowError, TagsMode,
};
pub use plan::check;
pub use queries::{list, one, rejected_rows};
pub use target::Target;
