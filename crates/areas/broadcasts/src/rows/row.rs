//! The rows of broadcasts and of recipients.

use crate::model::{
    BroadcastAudience, BroadcastPauseReason, BroadcastRecipient, BroadcastRecipientState, BroadcastSchedule,
    BroadcastSkipReason, BroadcastStatus, BroadcastTemplate,
};
use crate::rows::template::FrozenParams;
use crate::schema::{broadcast_recipients, broadcasts};
use diesel::prelude::*;
use model::{
    BroadcastId, BroadcastRecipientId, Cause, Chain, ChannelId, ContactId, JsonText, MessageId, Result,
    Timestamp, WorkspaceId,
};
use store::{LockLevel, LockMode, OnConflict, OneRow as _, Read, Rows, Tx, lock_row};

/// Who does what no request asked for.
const ACTOR: &str = "broadcasts";

/// A broadcast as it is stored.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Identifiable, AsChangeset)]
#[diesel(table_name = broadcasts, treat_none_as_null = true)]
pub(crate) struct BroadcastRow {
    pub(crate) id: BroadcastId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) channel_id: Option<ChannelId>,
    pub(crate) name: String,
    /// A [`BroadcastTemplate`].
    pub(crate) template: Option<JsonText>,
    /// A [`BroadcastAudience`].
    pub(crate) audience: Option<JsonText>,
    /// A [`BroadcastSchedule`].
    pub(crate) schedule: Option<JsonText>,
    pub(crate) rate_per_minute: Option<i64>,
    /// A `BroadcastFrequencyCap`.
    pub(crate) frequency_cap: Option<JsonText>,
    pub(crate) status: BroadcastStatus,
    pub(crate) pause_reason: Option<BroadcastPauseReason>,
    /// The start of a scheduled broadcast, which is before `send_at` if that is a local time of contacts. For a
    /// paused broadcast, the time at which it resumes automatically.
    pub(crate) starts_at: Option<Timestamp>,
    /// The last contact of the audience that was prepared.
    pub(crate) prepared_to: Option<ContactId>,
    /// The time at which the whole audience had become recipients.
    pub(crate) prepared_at: Option<Timestamp>,
    /// When the next message may be sent without exceeding the rate.
    pub(crate) next_send_at: Option<Timestamp>,
    /// The time before which failures are ignored, because the broadcast was resumed in spite of them.
    pub(crate) judged_from: Option<Timestamp>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) version: i64,
    pub(crate) created_by: JsonText,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    /// The number of bytes that were read of the file with the audience.
    pub(crate) prepared_bytes: i64,
    /// The [`Chain`] of what it leads to.
    pub(crate) chain: Option<JsonText>,
}

impl BroadcastRow {
    pub(crate) fn template(&self) -> Result<Option<BroadcastTemplate>> {
        self.template.as_ref().map(JsonText::parse).transpose()
    }

    pub(crate) fn audience(&self) -> Result<Option<BroadcastAudience>> {
        self.audience.as_ref().map(JsonText::parse).transpose()
    }

    /// The cause of what the broadcast does by itself.
    pub(crate) fn cause(&self) -> Cause {
        Cause::system(ACTOR).at(self.leads_to())
    }

    /// The place in the chain of causes of what it leads to, such as its messages.
    pub(crate) fn leads_to(&self) -> Option<Chain> {
        Chain::stored(self.chain.as_ref())
    }

    pub(crate) fn schedule(&self) -> Result<Option<BroadcastSchedule>> {
        self.schedule.as_ref().map(JsonText::parse).transpose()
    }

    /// Stores a change that is visible to callers, and increments the version.
    pub(crate) fn store(&mut self, tx: &mut Tx) -> Result<()> {
        self.version += 1;
        self.updated_at = tx.now();
        self.store_progress(tx)
    }

    /// Stores the progress, without incrementing the version.
    pub(crate) fn store_progress(&self, tx: &mut Tx) -> Result<()> {
        diesel::update(broadcasts::table.find(self.id)).set(self).execute(tx.connection())?;
        Ok(())
    }
}

/// Returns a broadcast of a workspace.
///
/// # Errors
/// `not_found`.
pub(crate) fn find(read: &mut Read, workspace: WorkspaceId, id: BroadcastId) -> Result<BroadcastRow> {
    broadcasts::table
        .find(id)
        .filter(broadcasts::workspace_id.eq(workspace))
        .select(BroadcastRow::as_select())
        .get_result(read.connection())
        .or_not_found("broadcast")
}

/// Returns a broadcast, locked until the transaction ends. The lock excludes both changes and sending.
///
/// # Errors
/// `not_found`.
pub(crate) fn locked(tx: &mut Tx, workspace: WorkspaceId, id: BroadcastId) -> Result<BroadcastRow> {
    tx.expect_lock_order(LockLevel::Broadcast, id.0, LockMode::Exclusive)?;
    let row = broadcasts::table.find(id).filter(broadcasts::workspace_id.eq(workspace));
    lock_row!(tx, row.select(broadcasts::id), for_no_key_update);
    find(tx, workspace, id)
}

/// A row of `broadcast_recipients`.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = broadcast_recipients)]
pub(crate) struct RecipientRow {
    pub(crate) id: BroadcastRecipientId,
    pub(crate) broadcast_id: BroadcastId,
    pub(crate) contact_id: ContactId,
    pub(crate) address: Option<String>,
    /// [`FrozenParams`].
    pub(crate) params: Option<JsonText>,
    pub(crate) state: BroadcastRecipientState,
    pub(crate) skip_reason: Option<BroadcastSkipReason>,
    pub(crate) not_before: Timestamp,
    pub(crate) attempt: i64,
    pub(crate) message_id: Option<MessageId>,
    pub(crate) error: Option<JsonText>,
    pub(crate) sent_at: Option<Timestamp>,
    pub(crate) delivered_at: Option<Timestamp>,
    pub(crate) read_at: Option<Timestamp>,
    pub(crate) replied_at: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl RecipientRow {
    /// Parses the values of the message.
    pub(crate) fn params(&self) -> Result<FrozenParams> {
        Ok(self.params.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default())
    }

    /// Builds the response.
    pub(crate) fn recipient(&self) -> Result<BroadcastRecipient> {
        Ok(BroadcastRecipient {
            id: self.id,
            object: "broadcast_recipient",
            broadcast_id: self.broadcast_id,
            contact_id: self.contact_id,
            address: self.address.clone(),
            params: self.params()?.body,
            state: self.state,
            skip_reason: self.skip_reason,
            not_before: self.not_before,
            attempt: self.attempt,
            message_id: self.message_id,
            error: self.error.as_ref().map(JsonText::parse).transpose()?,
            sent_at: self.sent_at,
            delivered_at: self.delivered_at,
            read_at: self.read_at,
            replied_at: self.replied_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// A new recipient.
#[derive(Debug, Clone)]
pub(crate) struct NewRecipient {
    pub(crate) contact_id: ContactId,
    pub(crate) address: Option<String>,
    /// The values of the message, or `None` if the recipient is skipped.
    pub(crate) params: Option<JsonText>,
    pub(crate) skip_reason: Option<BroadcastSkipReason>,
    pub(crate) not_before: Timestamp,
}

impl NewRecipient {
    /// Inserts new recipients of a broadcast. Contacts that are recipients already are ignored, and recipients with
    /// the address of another one are stored as skipped.
    pub(crate) fn insert(tx: &mut Tx, of: &BroadcastRow, recipients: Vec<Self>) -> Result<()> {
        // The unique indexes tell who is a recipient already. A query would cost as much, and PostgreSQL would have
        // to guess its plan, because its statistics do not know a broadcast that is being prepared.
        if insert_new(tx, of, &recipients)? == recipients.len() {
            return Ok(());
        }
        let is_skipped = |recipient: &Self| recipient.skip_reason.is_some();
        let duplicate = |recipient| Self {
            params: None,
            skip_reason: Some(BroadcastSkipReason::DuplicateAddress),
            ..recipient
        };
        let others = recipients.into_iter().filter(|recipient| !is_skipped(recipient)).map(duplicate);
        insert_new(tx, of, &others.collect::<Vec<Self>>()).map(drop)
    }

    fn state(&self) -> BroadcastRecipientState {
        match self.skip_reason {
            None => BroadcastRecipientState::Pending,
            Some(_) => BroadcastRecipientState::Skipped,
        }
    }
}

/// Inserts the recipients whose contact and address are new. Returns their number.
fn insert_new(tx: &mut Tx, of: &BroadcastRow, recipients: &[NewRecipient]) -> Result<usize> {
    let now = tx.now();
    Rows::of(recipients)
        .big_int("workspace_id", |_| of.workspace_id)
        .big_int("broadcast_id", |_| of.id)
        .big_int("contact_id", |new| new.contact_id)
        .text("address", |new| new.address.as_deref())
        .text("params", |new| new.params.as_ref())
        .text("state", NewRecipient::state)
        .text("skip_reason", |new| new.skip_reason)
        .time("not_before", |new| new.not_before)
        .big_int("attempt", |_| 1)
        .time("created_at", |_| now)
        .time("updated_at", |_| now)
        .insert_or(tx, "broadcast_recipients", OnConflict::Ignore)
}
