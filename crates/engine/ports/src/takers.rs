//! Who takes what contacts write, before the agent that answers by itself: waiting runs and automations.

use super::contacts::ContactCard;
use model::{ChannelId, ContactId, ConversationId, FileId, MessageId, Result, Timestamp, WorkspaceId};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use store::{Read, Tx};

/// The order in which takers are asked. Behind all of them comes the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TakerRank {
    /// Automations by keyword that interrupt what waits for the contact.
    Interrupting,
    /// A run that waits for the contact's reply.
    WaitingRun,
    /// Automations by keyword.
    Keyword,
    /// Automations for any message.
    Message,
}

/// A message that a contact wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingMessage {
    /// The message.
    pub id: MessageId,
    /// The text, the caption, or the transcript of a voice note.
    pub text: String,
    /// The id of the button or row that the contact chose.
    pub reply_id: Option<String>,
    /// The files that the contact sent.
    pub files: Vec<FileId>,
    /// When it was received.
    pub at: Timestamp,
}

/// What a contact wrote in a conversation before it paused, as far as it was not offered before.
#[derive(Debug, Clone)]
pub struct IncomingMessages {
    /// The channel.
    pub channel: ChannelId,
    /// The conversation over the channel.
    pub conversation: ConversationId,
    /// The contact, who is locked. A taker that acts for it later must find the contact's epoch unchanged. Without autopilot a
    /// person answers the contact.
    pub contact: ContactCard,
    /// The messages, oldest first. There is at least one.
    pub messages: Vec<IncomingMessage>,
}

/// What a taker does with messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taking {
    /// They are not for it.
    Declined,
    /// It takes them, and nobody else is asked.
    Taken,
    /// It takes them, and those behind it are asked as well (`stop_processing: false`).
    TakenAlso,
}

/// Takes messages of contacts. A group adds it to its parts as one of the services of the type `Arc<dyn MessageTaker>`.
pub trait MessageTaker: Send + Sync {
    /// When it is asked.
    fn rank(&self) -> TakerRank;

    /// Whether it waits for the contact to press a button or choose a row. What the contact chooses is then offered at once, and
    /// not when it pauses.
    ///
    /// # Errors
    /// When the database fails.
    fn awaits_choice(&self, read: &mut Read, workspace: WorkspaceId, contact: ContactId) -> Result<bool>;

    /// Offers messages, each once. What the taker writes commits together with the note that they were offered, or not at all.
    ///
    /// # Errors
    /// What keeps it from deciding: the messages are offered again, and nobody behind it is asked before.
    fn offer(&self, tx: &mut Tx, workspace: WorkspaceId, messages: &IncomingMessages) -> Result<Taking>;
}

/// All takers, in the order in which they are asked. A service that groups can be given before it is known who takes messages.
/// Cheap to clone.
#[derive(Clone, Default)]
pub struct MessageTakers(Arc<RwLock<Vec<Arc<dyn MessageTaker>>>>);

impl fmt::Debug for MessageTakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageTakers").field(&self.all().len()).finish()
    }
}

impl MessageTakers {
    /// Says who takes messages, instead of those before.
    pub fn connect(&self, takers: impl IntoIterator<Item = Arc<dyn MessageTaker>>) {
        let mut takers: Vec<_> = takers.into_iter().collect();
        takers.sort_by_key(|taker| taker.rank());
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = takers;
    }

    fn all(&self) -> Vec<Arc<dyn MessageTaker>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether nobody takes messages.
    pub fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether one of them waits for the contact to press a button or choose a row.
    ///
    /// # Errors
    /// When the database fails.
    pub fn await_choice(&self, read: &mut Read, workspace: WorkspaceId, contact: ContactId) -> Result<bool> {
        for taker in self.all() {
            if taker.awaits_choice(read, workspace, contact)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Offers messages to one after another, until one takes them alone. Returns whether one did.
    ///
    /// # Errors
    /// The error of a taker.
    pub fn offer(&self, tx: &mut Tx, workspace: WorkspaceId, messages: &IncomingMessages) -> Result<bool> {
        for taker in self.all() {
            if taker.offer(tx, workspace, messages)? == Taking::Taken {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
