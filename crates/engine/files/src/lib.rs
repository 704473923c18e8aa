//! Files: their rows, their bytes in object storage, and the links by which they are read.
//!
//! A file is created in three steps, so that a crash leaves neither a row without bytes nor bytes without a row.
//! First a place in object storage is reserved, then the bytes are stored there. Finally the transaction that needs
//! the file inserts its row and ends the reservation. A reservation that still exists after a day is deleted with its
//! object ([`sweep`](mod@sweep)).

mod blobs;
mod content;
mod download;
mod duration;
mod links;
mod list;
mod name;
mod objects;
mod range;
mod row;
mod s3;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod storage;
mod sweep;
mod targets;
pub mod uploads;

pub use blobs::{Blob, drop_blob, keep_blob};
pub use content::utf16_without_mark;
pub use download::{DownloadRoute, Generator, PermanentRoute, attachment, guarded};
pub use links::Link;
pub use list::{Chosen, FileSort, list};
pub use name::{composed, safe_name};
pub use objects::{Objects, objects_in, objects_in_memory};
pub use row::{File, FileKind, FileRow, FileStatus, among, find, held, live, locked, trash, update};
pub use s3::{S3Settings, objects_in_s3};
pub use storage::{Details, Files, MOST_BYTES, NewFile, Stored, finish, probe};
pub use sweep::sweep;
pub use targets::FileTargets;
