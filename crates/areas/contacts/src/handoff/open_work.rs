//! Conversations as the open work of the team.

use crate::record::kind::CONTACTS;
use model::{MemberId, Result, WorkspaceId};
use ports::{OpenWork, WorkType};
use records::indexes::count_ids;
use records::sets;
use records::shape::Shapes;
use std::collections::HashMap;
use std::sync::Arc;
use store::Read;

/// The most members whose conversations are counted.
pub(crate) const MOST_MEMBERS: i64 = 1_000;

/// The conversations that are assigned to members of the team.
pub(crate) struct AssignedContacts {
    pub(crate) shapes: Arc<Shapes>,
}

impl OpenWork for AssignedContacts {
    fn work_type(&self) -> WorkType {
        WorkType::Conversations
    }

    fn by_member(&self, read: &mut Read, workspace: WorkspaceId) -> Result<HashMap<MemberId, i64>> {
        let shape = sets::for_read(read, &self.shapes, workspace, &CONTACTS)?;
        let counted = count_ids(read, &shape, "$assignee", MOST_MEMBERS)?;
        Ok(counted.into_iter().map(|(id, count)| (MemberId(id), count)).collect())
    }
}
