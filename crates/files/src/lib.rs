//! Files: their rows, their bytes in object storage, and the addresses at which they are read.
//!
//! A file is made in three steps, so that no crash leaves a row without bytes or bytes that nobody knows of: a row that
//! is `pending`, the bytes, and the row made `ready` in the transaction that wants the file. What stays `pending` for a
//! day is swept away ([`sweep`]).

mod download;
mod links;
mod range;
mod row;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod storage;
mod targets;

pub use download::{DownloadRoute, Generator, PermanentRoute, attachment, guarded};
pub use links::Link;
pub use row::FileKind;
pub use row::{File, FileRow, among, find, live};
pub use storage::{
    Files, MOST_BYTES, NewFile, Objects, Stored, finish, objects_in, objects_in_memory, probe, sweep,
};
pub use targets::FileTargets;
