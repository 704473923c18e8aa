//! The port by which other groups read collections.

use super::queries;
use model::{Code, CollectionId, Result, WorkspaceId};
use ports::{Collections, RecordField};
use records::shape::{self, Shapes};
use std::sync::Arc;
use store::Read;

/// Names and fields of collections.
#[derive(Debug, Clone)]
pub struct CollectionNames(pub Arc<Shapes>);

impl Collections for CollectionNames {
    fn name(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Option<String>> {
        // Sets of other kinds of records have negative ids.
        if id.0 <= 0 {
            return Ok(None);
        }
        match queries::find(read, workspace, id) {
            Ok(row) => Ok(Some(row.name)),
            Err(error) if error.code() == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fields(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Vec<RecordField>> {
        match shape::for_read(read, &self.0, workspace, id) {
            Ok(shape) => Ok(shape.fields.iter().map(RecordField::from).collect()),
            Err(error) if error.code() == Code::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
