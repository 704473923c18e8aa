//! Files as targets of links.

use crate::row::{among, held};
use model::{FileId, Result, WorkspaceId};
use ports::{LinkTargets, LinkedTarget};
use store::{Read, Tx};

/// The files of a workspace as link targets.
pub struct FileTargets;

fn number(id: &str) -> Option<FileId> {
    id.parse().ok()
}

impl LinkTargets for FileTargets {
    fn target_type(&self) -> &'static str {
        "file"
    }

    fn hold(&self, tx: &mut Tx, workspace: WorkspaceId, id: &str) -> Result<bool> {
        let Some(id) = number(id) else { return Ok(false) };
        Ok(!held(tx, workspace, &[id])?.is_empty())
    }

    fn show(&self, read: &mut Read, workspace: WorkspaceId, ids: &[&str]) -> Result<Vec<LinkedTarget>> {
        let ids: Vec<FileId> = ids.iter().filter_map(|id| number(id)).collect();
        let shown = among(read, workspace, &ids)?.into_iter().map(|file| LinkedTarget {
            id: file.id.to_string(),
            title: Some(file.name),
            mime_type: Some(file.mime_type),
            status: None,
        });
        Ok(shown.collect())
    }
}
