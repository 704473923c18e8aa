//! A channel as it is stored.

use super::model::{
    Channel, ChannelCapabilities, ChannelProvider, ChannelSettings, ChannelStatus, ChannelType,
};
use super::sealed::place;
use crate::schema::channels;
use auth::Seal;
use chatnet::{Account, Capabilities, Quality};
use diesel::prelude::*;
use model::{AgentId, ChannelId, Code, Error, JsonText, KeyId, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use store::{LockLevel, LockMode, OneRow as _, Read, Tx};

/// A channel as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = channels)]
pub struct ChannelRow {
    /// The id.
    pub id: ChannelId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The network.
    pub channel_type: ChannelType,
    /// How the service reaches the network.
    pub provider: ChannelProvider,
    /// The name for people.
    pub name: String,
    /// The number in display format.
    pub address: Option<String>,
    /// The base URL of the network's API.
    pub base_url: String,
    /// The network's id of the number.
    pub number_id: String,
    /// The network's id of the business.
    pub business_id: String,
    /// The encrypted [`Credentials`].
    pub credentials: String,
    /// The status.
    pub status: ChannelStatus,
    /// The reason for the status.
    pub status_reason: Option<String>,
    /// The network's rating of the number.
    pub quality: Quality,
    /// The number of contacts that the business may write to first within 24 hours.
    pub messaging_limit: Option<i64>,
    /// Messages per second that the network accepts.
    pub messages_per_second: i64,
    /// The settings, as JSON of [`ChannelSettings`].
    pub settings: JsonText,
    /// The agent that answers.
    pub agent_id: Option<AgentId>,
    /// The key that runs of the agent use, and whose budget pays for them.
    pub key_id: Option<KeyId>,
    /// When a contact last sent a message.
    pub last_inbound_at: Option<Timestamp>,
    /// When the network was last asked about the channel.
    pub checked_at: Option<Timestamp>,
    /// The epoch of the lease. The worker with this epoch works on the channel.
    pub lease_epoch: i64,
    /// When the lease expires.
    pub lease_until: Option<Timestamp>,
    /// The version, incremented with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The network's time of the quality.
    pub quality_at: Option<Timestamp>,
    /// The network's time of the limit.
    pub messaging_limit_at: Option<Timestamp>,
}

/// A channel for lists of the command line.
#[derive(Debug, Clone, Copy)]
pub struct ChannelSummary<'a> {
    /// The id.
    pub id: ChannelId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The name for people.
    pub name: &'a str,
    /// The number in display format.
    pub address: Option<&'a str>,
    /// How the service reaches the network.
    pub provider: ChannelProvider,
    /// The status.
    pub status: ChannelStatus,
}

/// The secrets for requests to the network and for callbacks from it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Credentials {
    pub(crate) access_token: String,
    /// The secrets that sign callbacks, newest first. There are two during a rotation.
    pub(crate) app_secrets: Vec<String>,
    /// The token with which the network verifies the URL for callbacks.
    pub(crate) verify_token: String,
}

impl ChannelRow {
    /// Returns the id.
    pub fn id(&self) -> ChannelId {
        self.id
    }

    /// Returns the channel for lists of the command line.
    pub fn summary(&self) -> ChannelSummary<'_> {
        ChannelSummary {
            id: self.id,
            workspace: self.workspace_id,
            name: &self.name,
            address: self.address.as_deref(),
            provider: self.provider,
            status: self.status,
        }
    }

    /// Returns the settings.
    ///
    /// # Errors
    /// `internal_error` if the stored row is corrupt.
    pub fn settings(&self) -> Result<ChannelSettings> {
        self.settings.parse()
    }

    /// Decrypts the credentials.
    ///
    /// # Errors
    /// If the service's keys cannot decrypt them.
    pub(crate) fn credentials(&self, seal: &Seal) -> Result<Credentials> {
        let text = seal.open(&place(self.workspace_id, self.id), &self.credentials)?;
        serde_json::from_str(&text).map_err(Error::internal)
    }

    /// Returns the access to the network.
    ///
    /// # Errors
    /// `internal_error` if the service's keys cannot decrypt the credentials.
    pub fn account(&self, seal: &Seal) -> Result<Account> {
        Ok(Account {
            base_url: self.base_url.clone(),
            number_id: self.number_id.clone(),
            business_id: self.business_id.clone(),
            access_token: self.credentials(seal)?.access_token,
        })
    }

    /// Checks that messages can be sent.
    ///
    /// # Errors
    /// `channel_disconnected`.
    pub fn expect_connected(&self) -> Result<()> {
        if self.status.can_send() {
            return Ok(());
        }
        let message = format!("The channel is {}.", self.status.as_str());
        Err(Error::new(Code::ChannelDisconnected, message))
    }

    /// Returns the API object.
    ///
    /// # Errors
    /// `internal_error` if the stored row is corrupt.
    pub(crate) fn channel(&self, network: &Capabilities) -> Result<Channel> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let millis = |value: std::time::Duration| i64::try_from(value.as_millis()).unwrap_or(i64::MAX);
        Ok(Channel {
            id: self.id,
            object: "channel",
            kind: self.channel_type,
            provider: self.provider,
            name: self.name.clone(),
            address: self.address.clone(),
            status: self.status,
            status_reason: self.status_reason.clone(),
            quality: self.quality,
            messaging_limit: self.messaging_limit,
            messages_per_second: self.messages_per_second,
            capabilities: ChannelCapabilities {
                window_seconds: number(network.window.as_secs()),
                max_text_length: i64::try_from(network.max_text_chars).unwrap_or(i64::MAX),
                max_buttons: 3,
                max_image_bytes: number(network.max_image_bytes),
                max_audio_video_bytes: number(network.max_av_bytes),
                max_document_bytes: number(network.max_document_bytes),
                pair_interval_ms: millis(network.pair_interval),
            },
            settings: self.settings()?,
            default_agent_id: self.agent_id,
            last_inbound_at: self.last_inbound_at,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// Returns a channel of a workspace.
///
/// # Errors
/// `not_found`.
pub fn live(read: &mut Read, workspace: WorkspaceId, id: ChannelId) -> Result<ChannelRow> {
    channels::table
        .find(id)
        .filter(channels::workspace_id.eq(workspace))
        .select(ChannelRow::as_select())
        .get_result(read.connection())
        .or_not_found("channel")
}

/// Takes the shared lock of a channel's messages. Its holders change messages in the order of their ids; a
/// transaction with another order takes the exclusive lock ([`hold`]). This is not a lock of the channel's row,
/// because PostgreSQL does not grant row locks in the order of requests: callbacks could wait as long as a broadcast
/// sends.
pub fn share(tx: &mut Tx, id: ChannelId) -> Result<()> {
    tx.expect_lock_order(LockLevel::Channel, id.0, LockMode::Shared)?;
    tx.lock_shared(&lock_name(id))
}

/// Takes the exclusive lock of a channel's messages until the transaction ends. It conflicts with [`share`].
pub fn hold(tx: &mut Tx, id: ChannelId) -> Result<()> {
    tx.expect_lock_order(LockLevel::Channel, id.0, LockMode::Exclusive)?;
    tx.lock(&lock_name(id))
}

fn lock_name(id: ChannelId) -> String {
    format!("channel {id}")
}

/// Returns a channel of any workspace.
pub fn by_id(read: &mut Read, id: ChannelId) -> Result<Option<ChannelRow>> {
    Ok(channels::table.find(id).select(ChannelRow::as_select()).first(read.connection()).optional()?)
}
