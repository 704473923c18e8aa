//! How broadcasts follow the messages that they send.

use super::row::MessageRow;
use model::{BroadcastId, ContactId, MessageId, Result, Timestamp, WorkspaceId};
use std::collections::{BTreeSet, HashSet};
use store::{Read, Tx};

/// The recipients of broadcasts, which follow their messages. `broadcasts` implements it, and each function runs in the
/// transaction that changes the messages.
pub trait BroadcastRecipients: Send + Sync {
    /// Carries the statuses of messages over to the recipients to whom they were sent. Messages of no broadcast are ignored.
    fn messages_changed(&self, tx: &mut Tx, rows: &[&MessageRow]) -> Result<()>;

    /// Takes messages that are being deleted from their recipients. The states of the recipients stay.
    fn messages_deleted(&self, tx: &mut Tx, ids: &[MessageId]) -> Result<()>;

    /// Skips the recipients of messages that are not sent, because their contact is being deleted.
    fn contact_deleted(&self, tx: &mut Tx, ids: &[MessageId]) -> Result<()>;

    /// Notes that contacts wrote, which may answer a broadcast.
    fn contacts_replied(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        contacts: &[ContactId],
        at: Timestamp,
    ) -> Result<()>;

    /// Returns the broadcasts that may still send messages.
    fn unfinished(&self, read: &mut Read, ids: BTreeSet<BroadcastId>) -> Result<HashSet<BroadcastId>>;
}
