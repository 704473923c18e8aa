//! Broadcasts and recipients as they are stored.

use super::model::{
    BroadcastAudience, BroadcastPauseReason, BroadcastRecipient, BroadcastRecipientState, BroadcastSchedule,
    BroadcastSkipReason, BroadcastStatus, BroadcastTemplate,
};
use super::template::FrozenParams;
use crate::schema::{broadcast_recipients, broadcasts};
use diesel::prelude::*;
use model::{
    BroadcastId, BroadcastRecipientId, ChannelId, ContactId, JsonText, MessageId, Result, Timestamp,
    WorkspaceId,
};
use store::{LockLevel, LockMode, OneRow as _, Read, Tx, lock_row};

/// A broadcast as it is stored.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Identifiable, AsChangeset)]
#[diesel(table_name = broadcasts, treat_none_as_null = true)]
pub(super) struct BroadcastRow {
    pub(super) id: BroadcastId,
    pub(super) workspace_id: WorkspaceId,
    pub(super) channel_id: Option<ChannelId>,
    pub(super) name: String,
    /// A [`BroadcastTemplate`].
    pub(super) template: Option<JsonText>,
    /// A [`BroadcastAudience`].
    pub(super) audience: Option<JsonText>,
    /// A [`BroadcastSchedule`].
    pub(super) schedule: Option<JsonText>,
    pub(super) rate_per_minute: Option<i64>,
    /// A [`BroadcastFrequencyCap`](super::model::BroadcastFrequencyCap).
    pub(super) frequency_cap: Option<JsonText>,
    pub(super) status: BroadcastStatus,
    pub(super) pause_reason: Option<BroadcastPauseReason>,
    /// When a scheduled one starts: earlier than `send_at` where that is a local time of contacts. When a paused one goes on
    /// by itself.
    pub(super) starts_at: Option<Timestamp>,
    /// The last contact of the audience that was looked at.
    pub(super) prepared_to: Option<ContactId>,
    /// When all of the audience had become recipients.
    pub(super) prepared_at: Option<Timestamp>,
    /// When the next message may be sent without exceeding the rate.
    pub(super) next_send_at: Option<Timestamp>,
    /// Failures before this moment do not pause it: it was resumed in spite of them.
    pub(super) judged_from: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) completed_at: Option<Timestamp>,
    pub(super) version: i64,
    pub(super) created_by: JsonText,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

impl BroadcastRow {
    pub(super) fn template(&self) -> Result<Option<BroadcastTemplate>> {
        self.template.as_ref().map(JsonText::parse).transpose()
    }

    pub(super) fn audience(&self) -> Result<Option<BroadcastAudience>> {
        self.audience.as_ref().map(JsonText::parse).transpose()
    }

    pub(super) fn schedule(&self) -> Result<Option<BroadcastSchedule>> {
        self.schedule.as_ref().map(JsonText::parse).transpose()
    }

    /// Stores a change that callers see, as the next version.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn store(&mut self, tx: &mut Tx) -> Result<()> {
        self.version += 1;
        self.updated_at = tx.now();
        self.store_progress(tx)
    }

    /// Stores how far it is.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn store_progress(&self, tx: &mut Tx) -> Result<()> {
        diesel::update(broadcasts::table.find(self.id)).set(self).execute(tx.connection())?;
        Ok(())
    }
}

/// A broadcast of a workspace.
///
/// # Errors
/// `not_found`.
pub(super) fn find(read: &mut Read, workspace: WorkspaceId, id: BroadcastId) -> Result<BroadcastRow> {
    broadcasts::table
        .find(id)
        .filter(broadcasts::workspace_id.eq(workspace))
        .select(BroadcastRow::as_select())
        .get_result(read.connection())
        .or_not_found("broadcast")
}

/// A broadcast that nobody else changes or sends until the transaction ends.
///
/// # Errors
/// `not_found`.
pub(super) fn locked(tx: &mut Tx, workspace: WorkspaceId, id: BroadcastId) -> Result<BroadcastRow> {
    tx.expect_lock_order(LockLevel::Broadcast, id.0, LockMode::Exclusive)?;
    let row = broadcasts::table.find(id).filter(broadcasts::workspace_id.eq(workspace));
    lock_row!(tx, row.select(broadcasts::id), for_no_key_update);
    find(tx, workspace, id)
}

/// A recipient as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = broadcast_recipients)]
pub(super) struct RecipientRow {
    pub(super) id: BroadcastRecipientId,
    pub(super) broadcast_id: BroadcastId,
    pub(super) contact_id: ContactId,
    pub(super) address: Option<String>,
    /// [`FrozenParams`].
    pub(super) params: Option<JsonText>,
    pub(super) state: BroadcastRecipientState,
    pub(super) skip_reason: Option<BroadcastSkipReason>,
    pub(super) not_before: Timestamp,
    pub(super) attempt: i64,
    pub(super) message_id: Option<MessageId>,
    pub(super) error: Option<JsonText>,
    pub(super) sent_at: Option<Timestamp>,
    pub(super) delivered_at: Option<Timestamp>,
    pub(super) read_at: Option<Timestamp>,
    pub(super) replied_at: Option<Timestamp>,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

impl RecipientRow {
    /// The values of the message.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(super) fn params(&self) -> Result<FrozenParams> {
        Ok(self.params.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default())
    }

    /// As callers see it.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(super) fn recipient(&self) -> Result<BroadcastRecipient> {
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

/// A recipient to store.
#[derive(Debug, Clone, Insertable)]
#[diesel(table_name = broadcast_recipients, treat_none_as_default_value = false)]
pub(super) struct NewRecipient {
    pub(super) workspace_id: WorkspaceId,
    pub(super) broadcast_id: BroadcastId,
    pub(super) contact_id: ContactId,
    pub(super) address: Option<String>,
    pub(super) params: Option<JsonText>,
    pub(super) state: BroadcastRecipientState,
    pub(super) skip_reason: Option<BroadcastSkipReason>,
    pub(super) not_before: Timestamp,
    pub(super) attempt: i64,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}
