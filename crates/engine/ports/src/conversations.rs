//! Conversations, for whoever assigns them or answers in them.

use model::{ContactId, ConversationId, MessageId, Result, WorkspaceId};
use serde::{Deserialize, Serialize};
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

/// The messages of a contact that a run answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelQuestion {
    /// The conversation over the channel.
    pub conversation: ConversationId,
    /// The first of them.
    pub first: MessageId,
}

/// Who said something in a conversation over a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// The contact.
    Contact,
    /// An agent.
    Agent,
    /// Anyone else for the business, described for an agent: `Ana, a person of the team`.
    Other(String),
}

/// A message of a conversation over a channel, as its reader saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelTurn {
    /// The message.
    pub id: MessageId,
    /// Who said it.
    pub speaker: Speaker,
    /// The text.
    pub text: String,
}

/// What was said in conversations over channels. The group that keeps conversations implements it.
pub trait ChannelTurns: Send + Sync {
    /// The last messages before a question and after `after`, oldest first: at most `most` of them. Messages that were deleted
    /// or did not reach the contact are left out. It takes a bounded number of queries.
    ///
    /// # Errors
    /// When what is stored is damaged.
    fn before(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        question: ChannelQuestion,
        after: Option<MessageId>,
        most: i64,
    ) -> Result<Vec<ChannelTurn>>;
}
