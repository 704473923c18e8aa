//! The operations of channels.

use crate::callbacks::not_done;
use crate::channels::MessageQueue;
use crate::channels::{Channel, ChannelStatus};
use crate::channels::{ChannelRow, live};
use crate::network::Network;
use crate::schema::{channel_callbacks, channel_errors, channels};
use chatnet::Quality;
use diesel::prelude::*;
use model::{Caller, ChannelId, MessageId, Result, Timestamp};
use operation::{Json, OptIn, OptInList, Path, State, operation};
use serde::Serialize;
use std::sync::Arc;
use store::Read;
use utoipa::ToSchema;

/// The maximum number of errors in the health of a channel.
const MAX_ERRORS: i64 = 20;
/// The bound for counting, so that a long queue costs no more than a short one.
const MAX_COUNTED: i64 = 10_000;

/// How a channel is doing.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "status": "connected", "quality": "high", "messages_per_second": 80, "queued_messages": 3, "unknown_messages": 0,
    "pending_callbacks": 0, "failed_callbacks": 0, "last_errors": [],
}))]
pub struct ChannelHealth {
    /// The id of the channel.
    pub channel_id: ChannelId,
    /// Always `channel_health`.
    pub object: &'static str,
    /// Whether it works.
    pub status: ChannelStatus,
    /// Why it does not work.
    pub status_reason: Option<String>,
    /// How the network rates the number.
    pub quality: Quality,
    /// How many contacts may be written to first within 24 hours.
    pub messaging_limit: Option<i64>,
    /// How many messages per second the network accepts.
    pub messages_per_second: i64,
    /// How many messages wait to be sent, counted up to 10,000.
    pub queued_messages: i64,
    /// How long the oldest of them has waited, in seconds.
    pub oldest_queued_seconds: Option<i64>,
    /// How many of the last 1,000 messages may or may not have been sent.
    pub unknown_messages: i64,
    /// How many callbacks of the network wait to be applied, counted up to 10,000.
    pub pending_callbacks: i64,
    /// How many callbacks could not be applied, counted up to 10,000.
    pub failed_callbacks: i64,
    /// When a contact last wrote.
    pub last_inbound_at: Option<Timestamp>,
    /// The last errors, the newest first.
    pub last_errors: Vec<ChannelError>,
}

/// An error of a channel.
#[derive(Debug, Clone, Queryable, Serialize, ToSchema)]
#[schema(example = json!({
    "code": "undeliverable", "message": "Message undeliverable.", "provider_code": 131026, "message_id": 1,
}))]
pub struct ChannelError {
    /// The code.
    pub code: String,
    /// For people, in English.
    pub message: String,
    /// The network's number for the error.
    pub provider_code: Option<i64>,
    /// The id of the message.
    pub message_id: Option<MessageId>,
    /// When it happened.
    pub created_at: Timestamp,
}

/// List channels
///
/// Lists the numbers over which the workspace talks to its contacts, newest first. Channels are connected by the operator of
/// the service.
#[operation(get "/channels", scope = "channels:read", ceiling = 100)]
pub fn list_channels(
    read: &mut Read,
    caller: &Caller,
    page: OptIn,
    network: State<Network>,
) -> Result<OptInList<Channel>> {
    let mut query = channels::table
        .filter(channels::workspace_id.eq(caller.workspace_id()))
        .order(channels::id.desc())
        .limit(page.page().fetch())
        .select(ChannelRow::as_select())
        .into_boxed();
    if let Some(after) = page.page().after::<ChannelId>()? {
        query = query.filter(channels::id.lt(after));
    }
    let rows = query.load(read.connection())?;
    let capabilities = network.0.0.capabilities();
    let shown = rows.iter().map(|row| row.channel(capabilities)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(shown, |channel| channel.id.to_string()))
}

/// One channel
///
/// Returns the channel with its status, its settings and what its network allows. Credentials are never returned.
#[operation(get "/channels/{channelId}", scope = "channels:read")]
pub fn get_channel(
    read: &mut Read,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    network: State<Network>,
) -> Result<Json<Channel>> {
    live(read, caller.workspace_id(), channel_id)?.channel(network.0.0.capabilities()).map(Json)
}

/// Connection, quality rating, queue and last errors
///
/// Says how the channel is doing: whether it is connected, how the network rates it, how much waits, and what failed last.
#[operation(get "/channels/{channelId}/health", scope = "channels:read")]
pub fn get_channel_health(
    read: &mut Read,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    queue: State<Arc<dyn MessageQueue>>,
) -> Result<Json<ChannelHealth>> {
    let channel = live(read, caller.workspace_id(), channel_id)?;
    let now = read.now();
    let queue = queue.0.state(read, channel.id, MAX_COUNTED)?;
    let oldest = queue.oldest.map(|at| ((now.millis() - at.millis()) / 1_000).max(0));
    let last_errors = channel_errors::table
        .filter(channel_errors::channel_id.eq(channel.id))
        .order(channel_errors::id.desc())
        .limit(MAX_ERRORS)
        .select((
            channel_errors::code,
            channel_errors::message,
            channel_errors::provider_code,
            channel_errors::message_id,
            channel_errors::created_at,
        ))
        .load(read.connection())?;
    Ok(Json(ChannelHealth {
        channel_id: channel.id,
        object: "channel_health",
        status: channel.status,
        status_reason: channel.status_reason.clone(),
        quality: channel.quality,
        messaging_limit: channel.messaging_limit,
        messages_per_second: channel.messages_per_second,
        queued_messages: queue.waiting,
        oldest_queued_seconds: oldest,
        unknown_messages: queue.unknown,
        pending_callbacks: callbacks(read, channel.id, "pending")?,
        failed_callbacks: callbacks(read, channel.id, "failed")?,
        last_inbound_at: channel.last_inbound_at,
        last_errors,
    }))
}

fn callbacks(read: &mut Read, channel: ChannelId, status: &str) -> Result<i64> {
    let found: Vec<i64> = channel_callbacks::table
        .filter(channel_callbacks::channel_id.eq(channel))
        .filter(channel_callbacks::status.eq(status))
        .filter(not_done())
        .limit(MAX_COUNTED)
        .select(channel_callbacks::id)
        .load(read.connection())?;
    Ok(i64::try_from(found.len()).unwrap_or(MAX_COUNTED))
}
