//! Connection of channels, for the dashboard and the command `svc channel`.

use super::model::{ChannelProvider, ChannelSettings, ChannelStatus, ChannelType};
use super::row::{ChannelRow, Credentials, by_id};
use super::sealed::{SEALED, place};
use crate::schema::channels;
use auth::Seal;
use chatnet::{Account, Quality};
use diesel::prelude::*;
use model::{AgentId, ChannelId, Error, JsonText, KeyId, Patch, Result, WorkspaceId};
use store::{Read, Tx};

/// The data of a channel to connect.
#[derive(Clone)]
pub struct ConnectChannel {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// How the service reaches the network.
    pub provider: ChannelProvider,
    /// The name for people.
    pub name: String,
    /// The number in display format.
    pub address: Option<String>,
    /// The base URL of the network's API, without a trailing slash.
    pub base_url: String,
    /// The network's id of the number.
    pub number_id: String,
    /// The network's id of the business.
    pub business_id: String,
    /// The bearer token of requests to the network.
    pub access_token: String,
    /// The secret with which the network signs callbacks.
    pub app_secret: String,
    /// The token that the network sends to verify the URL for callbacks.
    pub verify_token: String,
    /// The agent that answers contacts. `None` selects the workspace's default agent.
    pub agent: Option<AgentId>,
    /// The key that runs of the agent use, and whose budget pays for them. Without a key no agent answers.
    pub key: Option<KeyId>,
    /// The settings.
    pub settings: ChannelSettings,
    /// Messages per second that the network accepts.
    pub messages_per_second: i64,
}

impl ConnectChannel {
    /// Returns the access to the network.
    pub fn account(&self) -> Account {
        Account {
            base_url: self.base_url.clone(),
            number_id: self.number_id.clone(),
            business_id: self.business_id.clone(),
            access_token: self.access_token.clone(),
        }
    }
}

/// Connects a number. If the workspace has already connected it, replaces its credentials and settings; the previous
/// secret of callbacks also stays valid.
///
/// # Errors
/// `duplicate_value` if another workspace has connected the number.
pub fn connect(tx: &mut Tx, seal: &Seal, new: &ConnectChannel) -> Result<ChannelRow> {
    // Two people may connect one number at once: the second finds what the first has stored.
    tx.lock(&format!("number {} {}", new.base_url, new.number_id))?;
    let found = by_number(tx, &new.base_url, &new.number_id)?;
    if let Some(other) = found.as_ref().filter(|other| other.workspace_id != new.workspace) {
        return Err(Error::duplicate("number_id", "The number is connected by another workspace.", other.id));
    }
    // Keep one previous secret, because the network may sign callbacks with it until its rotation is complete.
    let mut app_secrets = vec![new.app_secret.clone()];
    if let Some(before) = &found {
        let old = before.credentials(seal)?.app_secrets;
        app_secrets.extend(old.into_iter().find(|secret| *secret != new.app_secret));
    }
    let id = match found {
        Some(before) => before.id,
        None => insert(tx, new)?,
    };
    let credentials = Credentials {
        access_token: new.access_token.clone(),
        app_secrets,
        verify_token: new.verify_token.clone(),
    };
    let text = serde_json::to_string(&credentials).map_err(Error::internal)?;
    // The credentials are encrypted for the id of the channel, so insert the row first.
    let sealed = seal.seal(&SEALED, &place(new.workspace, id), &text, &*tx.random())?;
    let (now, settings) = (tx.now(), JsonText::of(&new.settings));
    let row = diesel::update(channels::table.find(id))
        .set((
            channels::credentials.eq(sealed),
            channels::provider.eq(new.provider),
            channels::name.eq(&new.name),
            channels::address.eq(&new.address),
            channels::business_id.eq(&new.business_id),
            channels::agent_id.eq(&new.agent),
            channels::key_id.eq(&new.key),
            channels::settings.eq(settings),
            channels::messages_per_second.eq(new.messages_per_second),
            channels::status.eq(ChannelStatus::Connecting),
            channels::status_reason.eq(None::<String>),
            channels::version.eq(channels::version + 1),
            channels::updated_at.eq(now),
        ))
        .returning(channels::all_columns)
        .get_result(tx.connection())?;
    Ok(row)
}

/// Returns the channel of a number, in any workspace.
fn by_number(read: &mut Read, base_url: &str, number_id: &str) -> Result<Option<ChannelRow>> {
    let found = channels::table
        .filter(channels::channel_type.eq(ChannelType::Chatnet))
        .filter(channels::base_url.eq(base_url))
        .filter(channels::number_id.eq(number_id))
        .select(ChannelRow::as_select())
        .first(read.connection());
    Ok(found.optional()?)
}

fn insert(tx: &mut Tx, new: &ConnectChannel) -> Result<ChannelId> {
    let now = tx.now();
    let id = diesel::insert_into(channels::table)
        .values((
            (
                channels::workspace_id.eq(new.workspace),
                channels::channel_type.eq(ChannelType::Chatnet),
                channels::provider.eq(new.provider),
                channels::name.eq(&new.name),
                channels::base_url.eq(&new.base_url),
                channels::number_id.eq(&new.number_id),
                channels::business_id.eq(&new.business_id),
                channels::credentials.eq(""),
            ),
            (
                channels::status.eq(ChannelStatus::Connecting),
                channels::quality.eq(Quality::Unknown),
                channels::messages_per_second.eq(new.messages_per_second),
                channels::settings.eq("{}"),
                channels::lease_epoch.eq(0),
                channels::version.eq(0),
                channels::created_at.eq(now),
                channels::updated_at.eq(now),
            ),
        ))
        .returning(channels::id)
        .get_result(tx.connection())?;
    Ok(id)
}

/// A change of a channel. `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct ChannelChange {
    /// The name for people.
    pub name: Option<String>,
    /// The base URL of the network's API, without a trailing slash.
    pub network_url: Option<String>,
    /// The agent that answers contacts.
    pub agent: Patch<AgentId>,
    /// The key that runs of the agent use.
    pub key: Patch<KeyId>,
    /// Messages per second that the network accepts.
    pub messages_per_second: Option<i64>,
}

/// Changes a channel and its settings.
///
/// # Errors
/// `not_found`; `duplicate_value` if another channel has the number at the new URL.
pub fn set(
    tx: &mut Tx,
    id: ChannelId,
    change: &ChannelChange,
    settings: impl FnOnce(&mut ChannelSettings),
) -> Result<ChannelRow> {
    let row = by_id(tx, id)?.ok_or_else(|| Error::not_found("channel"))?;
    let network_url = change.network_url.as_ref().unwrap_or(&row.base_url);
    let namesake = by_number(tx, network_url, &row.number_id)?;
    if let Some(other) = namesake.filter(|other| other.id != id) {
        let message = "Another channel has the number at this address.";
        return Err(Error::duplicate("network_url", message, other.id));
    }
    let mut changed = row.settings()?;
    settings(&mut changed);
    let (mut agent, mut key) = (row.agent_id, row.key_id);
    change.agent.clone().apply(&mut agent);
    change.key.clone().apply(&mut key);
    let now = tx.now();
    let row = diesel::update(channels::table.find(id))
        .set((
            channels::name.eq(change.name.as_ref().unwrap_or(&row.name)),
            channels::base_url.eq(network_url),
            channels::agent_id.eq(agent),
            channels::key_id.eq(key),
            channels::messages_per_second.eq(change.messages_per_second.unwrap_or(row.messages_per_second)),
            channels::settings.eq(JsonText::of(&changed)),
            channels::version.eq(channels::version + 1),
            channels::updated_at.eq(now),
        ))
        .returning(channels::all_columns)
        .get_result(tx.connection())?;
    Ok(row)
}

/// Disables a channel. It then sends nothing, and callbacks of the network are refused.
///
/// # Errors
/// `not_found`.
pub fn disconnect(tx: &mut Tx, id: ChannelId) -> Result<()> {
    let now = tx.now();
    let changed = diesel::update(channels::table.find(id))
        .set((
            channels::status.eq(ChannelStatus::Disabled),
            channels::version.eq(channels::version + 1),
            channels::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    if changed == 0 { Err(Error::not_found("channel")) } else { Ok(()) }
}

/// Returns all channels of the installation, for operators.
pub fn list(read: &mut Read) -> Result<Vec<ChannelRow>> {
    Ok(channels::table.order(channels::id).select(ChannelRow::as_select()).load(read.connection())?)
}
