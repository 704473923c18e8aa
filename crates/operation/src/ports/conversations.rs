//! Conversations, for whoever assigns them.

use model::{ContactId, Result, WorkspaceId};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use store::Read;

/// The conversations that the service assigns to members of the team by itself. The group that keeps conversations
/// implements it.
pub trait AssignedConversations: Send + Sync {
    /// The workspaces that have a channel whose conversations are assigned.
    ///
    /// # Errors
    /// When the database fails.
    fn workspaces(&self, read: &mut Read) -> Result<Vec<WorkspaceId>>;

    /// Those of the workspace's contacts with whom there is an open conversation over such a channel.
    ///
    /// # Errors
    /// When the database fails.
    fn among(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contacts: &[ContactId],
    ) -> Result<HashSet<ContactId>>;

    /// Those of the workspace's contacts who wait for an answer over such a channel, and are no longer to wait for a member
    /// of the team who has been absent for so many minutes.
    ///
    /// # Errors
    /// When the database fails.
    fn left_waiting(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contacts: &[ContactId],
        minutes: i64,
    ) -> Result<HashSet<ContactId>>;
}

/// The conversations that the service assigns. A service that operations ask for.
#[derive(Clone)]
pub struct AutoAssignment(pub Arc<dyn AssignedConversations>);

impl fmt::Debug for AutoAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AutoAssignment")
    }
}
