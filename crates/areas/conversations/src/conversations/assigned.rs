//! The conversations that the service assigns to members of the team by itself.

use crate::messages::ConversationStatus;
use crate::schema::conversations;
use diesel::prelude::*;
use model::{ContactId, Result, WorkspaceId};
use ports::AssignedConversations;
use std::collections::HashSet;
use store::Read;

/// The conversations over channels with the setting `auto_assign`.
pub struct AutoAssigned;

impl AssignedConversations for AutoAssigned {
    fn workspaces(&self, read: &mut Read) -> Result<Vec<WorkspaceId>> {
        channels::auto_assigning_workspaces(read)
    }

    fn among(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contacts: &[ContactId],
    ) -> Result<HashSet<ContactId>> {
        let assigning = channels::auto_assigning(read, workspace)?;
        let found: Vec<ContactId> = conversations::table
            .filter(conversations::contact_id.eq_any(contacts))
            .filter(conversations::workspace_id.eq(workspace))
            .filter(conversations::channel_id.eq_any(assigning.iter().map(|(channel, _)| *channel)))
            .filter(conversations::status.eq(ConversationStatus::Open))
            .select(conversations::contact_id)
            .load(read.connection())?;
        Ok(found.into_iter().collect())
    }

    fn left_waiting(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contacts: &[ContactId],
        minutes: i64,
    ) -> Result<HashSet<ContactId>> {
        let mut impatient = Vec::new();
        for (channel, settings) in channels::auto_assigning(read, workspace)? {
            let after = settings.reassign_after_minutes;
            if after > 0 && after <= minutes {
                impatient.push(channel);
            }
        }
        let found: Vec<ContactId> = conversations::table
            .filter(conversations::contact_id.eq_any(contacts))
            .filter(conversations::channel_id.eq_any(impatient))
            .filter(conversations::status.eq(ConversationStatus::Open))
            .filter(conversations::unread_count.gt(0))
            .select(conversations::contact_id)
            .load(read.connection())?;
        Ok(found.into_iter().collect())
    }
}
