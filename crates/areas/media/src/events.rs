//! The events of files.

use files::{File, FileRow, Files};
use model::{Caller, Result};
use operation::Event;
use serde::Serialize;
use store::Tx;
use utoipa::ToSchema;

/// An event of a file.
#[derive(Event)]
#[event(scope = "files:read", subject = "file", id = "file.id")]
pub(crate) enum FileEvent {
    /// A file was uploaded, or fetched from a URL.
    #[event(name = "file.created")]
    Created(FileData),
    /// A file was renamed or described, or taken back from the trash.
    #[event(name = "file.updated")]
    Updated(FileData),
    /// A file was deleted. It is kept in the trash for 30 days.
    #[event(name = "file.deleted")]
    Deleted(FileData),
}

/// A file was created, changed or deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct FileData {
    /// The file after the change. Its `signed_url` expires after seven days.
    file: File,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Created,
    Updated,
    Deleted,
}

/// Emits the event of a change. Returns the API object of the file.
pub(super) fn publish(
    tx: &mut Tx,
    caller: &Caller,
    files: &Files,
    row: &FileRow,
    change: Change,
) -> Result<File> {
    let file = files.show(row, tx.now())?;
    let data = FileData { file: file.clone() };
    let event = match change {
        Change::Created => FileEvent::Created(data),
        Change::Updated => FileEvent::Updated(data),
        Change::Deleted => FileEvent::Deleted(data),
    };
    // Files are live data even under test keys, so the event is live.
    tx.emit(caller.workspace_id(), &caller.cause(), true, &event)?;
    Ok(file)
}
