//! Collections, for other groups.

use super::queries;
use model::{Code, CollectionId, Result, WorkspaceId};
use operation::ports::Collections;
use store::Read;

/// The names of collections.
#[derive(Debug, Clone, Copy)]
pub struct CollectionNames;

impl Collections for CollectionNames {
    fn name(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Option<String>> {
        // The sets of other records have negative ids.
        if id.0 <= 0 {
            return Ok(None);
        }
        match queries::find(read, workspace, id) {
            Ok(row) => Ok(Some(row.name)),
            Err(error) if error.code() == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
