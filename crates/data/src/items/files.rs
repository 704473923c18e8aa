//! Files that are attached to items.

use diesel::prelude::*;
use model::{FieldError, FileId, Result, WorkspaceId};
use store::Read;
use store::schema::files;

/// Refuses files that are not there to be used.
///
/// # Errors
/// `validation_error` that names each of them below `path`.
pub(crate) fn check_all(read: &mut Read, workspace: WorkspaceId, ids: &[FileId], path: &str) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found: Vec<FileId> = files::table
        .filter(files::workspace_id.eq(workspace))
        .filter(files::id.eq_any(ids))
        .filter(files::status.eq("ready"))
        .filter(files::trashed_at.is_null())
        .select(files::id)
        .load(read.connection())?;
    let missing = ids.iter().enumerate().filter(|(_, id)| !found.contains(id));
    let errors = missing
        .map(|(place, _)| FieldError::new(format!("{path}[{place}]"), "is not a file of this workspace"));
    model::Error::all_invalid(errors.collect()).map_or(Ok(()), Err)
}
