//! Operations of the dashboard on channels: they connect numbers, which `svc channel` does for operators.

use crate::channels::{
    Channel, ChannelChange, ChannelProvider, ChannelRow, ChannelSettings, ConnectChannel as Connection,
    connect, disconnect, live, set,
};
use crate::network::Network;
use accounts::Actor;
use accounts::audit::{self, Entry};
use auth::{Seal, keys};
use chatnet::{Account, NetworkError, NumberHealth, Quality};
use model::{AgentId, Caller, ChannelId, Error, KeyId, Patch, Result, Scope, WorkspaceId};
use operation::{BaseUrl, Body, Created, Cx, Json, Path, State, operation};
use ports::AgentDirectory;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Read, Tx};
use url::Url;
use utoipa::ToSchema;

/// Where a number is, and the token with which it is reached.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "network_url": "https://graph.example.com/v23.0", "number_id": "106540352242922", "business_id": "102290129340398",
    "access_token": "EAAJB0",
}))]
pub struct ChannelAccess {
    /// Where the network's API is, with its version.
    #[schema(format = "uri", max_length = 2048)]
    pub network_url: String,
    /// The network's id of the number.
    #[schema(min_length = 1, max_length = 120)]
    pub number_id: String,
    /// The network's id of the business.
    #[schema(min_length = 1, max_length = 120)]
    pub business_id: String,
    /// The token that requests to the network carry.
    #[schema(min_length = 1, max_length = 2000)]
    pub access_token: String,
}

/// A number to connect.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "provider": "cloud", "name": "Support", "address": "+551130000000", "network_url": "https://graph.example.com/v23.0",
    "number_id": "106540352242922", "business_id": "102290129340398", "access_token": "EAAJB0", "app_secret": "8f2d",
    "verify_token": "copper lantern",
}))]
pub struct NewChannel {
    /// How the service reaches the network.
    pub provider: ChannelProvider,
    /// What people call the channel.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub name: String,
    /// The number as people write it.
    #[schema(max_length = 40, nullable = false)]
    pub address: Option<String>,
    /// Where the network's API is, with its version.
    #[schema(format = "uri", max_length = 2048)]
    pub network_url: String,
    /// The network's id of the number.
    #[schema(min_length = 1, max_length = 120)]
    pub number_id: String,
    /// The network's id of the business.
    #[schema(min_length = 1, max_length = 120)]
    pub business_id: String,
    /// The token that requests to the network carry.
    #[schema(min_length = 1, max_length = 2000)]
    pub access_token: String,
    /// The secret with which the network signs callbacks.
    #[schema(min_length = 1, max_length = 500)]
    pub app_secret: String,
    /// What the network says when it asks whether the address of callbacks is ours: any text of your own.
    #[schema(min_length = 1, max_length = 500)]
    pub verify_token: String,
    /// The agent that answers contacts; the default agent of the workspace if not given.
    #[schema(nullable = false)]
    pub agent_id: Option<AgentId>,
    /// The key on whose behalf the agent runs, which needs the scope `runs:execute`. Without it no agent answers.
    #[schema(nullable = false)]
    pub key_id: Option<KeyId>,
    /// How the service handles messages.
    #[schema(nullable = false)]
    pub settings: Option<ChannelSettings>,
}

/// A change of a channel. What is not given stays.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Support", "agent_id": 1 }))]
pub struct ChannelPatch {
    /// What people call the channel.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S", nullable = false)]
    pub name: Option<String>,
    /// The agent that answers contacts; `null` for the default agent of the workspace.
    #[serde(default)]
    #[schema(value_type = Option<AgentId>)]
    pub agent_id: Patch<AgentId>,
    /// The key on whose behalf the agent runs, which needs the scope `runs:execute`; `null` if no agent is to answer.
    #[serde(default)]
    #[schema(value_type = Option<KeyId>)]
    pub key_id: Patch<KeyId>,
    /// How many messages per second the network accepts; 0 for no limit.
    #[schema(minimum = 0, maximum = 10_000, nullable = false)]
    pub messages_per_second: Option<i64>,
    /// How the service handles messages: all of its settings.
    #[schema(nullable = false)]
    pub settings: Option<ChannelSettings>,
}

/// What the network says of a number.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "is_accepted": true, "display_number": "+55 11 3000-0000", "verified_name": "Toy Shop", "quality": "high",
}))]
pub struct ChannelCheck {
    /// Always `channel_check`.
    pub object: &'static str,
    /// Whether the network accepts the credentials.
    pub is_accepted: bool,
    /// Why it does not, in its words.
    pub message: Option<String>,
    /// The number in display format.
    pub display_number: Option<String>,
    /// The name of the business as contacts see it.
    pub verified_name: Option<String>,
    /// How the network rates the number.
    pub quality: Quality,
    /// How many contacts may be written to first within 24 hours. `null` if there is no limit or none is known.
    pub messaging_limit: Option<i64>,
}

/// How a channel is connected, without its secrets.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "network_url": "https://graph.example.com/v23.0", "number_id": "106540352242922", "business_id": "102290129340398",
    "callback_url": "https://svc.example/callbacks/1",
}))]
pub struct ChannelConnection {
    /// The channel.
    pub channel: Channel,
    /// Always `channel_connection`.
    pub object: &'static str,
    /// Where the network's API is.
    pub network_url: String,
    /// The network's id of the number.
    pub number_id: String,
    /// The network's id of the business.
    pub business_id: String,
    /// The address to which the network is to send callbacks.
    pub callback_url: String,
    /// The key on whose behalf the agent runs. Without it no agent answers.
    pub key_id: Option<KeyId>,
}

/// Check a number
///
/// Asks the network whether it accepts the credentials. Nothing is stored.
#[operation(post "/dashboard/channels/check", session = "channels:connect", recent_sign_in = always)]
pub async fn check_channel(
    _cx: &Cx,
    Body(access): Body<ChannelAccess>,
    State(network): State<Network>,
) -> Result<Json<ChannelCheck>> {
    let account = Account {
        base_url: address_of(&access.network_url)?,
        number_id: access.number_id,
        business_id: access.business_id,
        access_token: access.access_token,
    };
    Ok(Json(network.0.health(&account).await.into()))
}

impl From<std::result::Result<NumberHealth, NetworkError>> for ChannelCheck {
    fn from(asked: std::result::Result<NumberHealth, NetworkError>) -> Self {
        let message = asked.as_ref().err().map(|error| error.message.clone());
        let health = asked.ok();
        Self {
            object: "channel_check",
            is_accepted: health.is_some(),
            message,
            quality: health.as_ref().map_or(Quality::Unknown, |health| health.quality),
            messaging_limit: health.as_ref().and_then(|health| health.messaging_limit),
            verified_name: health.as_ref().and_then(|health| health.verified_name.clone()),
            display_number: health.and_then(|health| health.display_number),
        }
    }
}

/// Connect a number
///
/// Connects a number of a chat network once the network has accepted the credentials. A number that the workspace has connected
/// gets these credentials and settings, and callbacks under the previous app secret stay valid. Enter the
/// `callback_url` and the verify token at the network. Needs a recent sign-in.
#[operation(post "/dashboard/channels", session = "channels:connect", recent_sign_in = always)]
pub async fn connect_channel(
    cx: &Cx,
    Body(new): Body<NewChannel>,
    State(network): State<Network>,
    State(seal): State<Seal>,
    State(agents): State<AgentDirectory>,
    State(base_url): State<BaseUrl>,
) -> Result<Created<ChannelConnection>> {
    let workspace = cx.caller.workspace_id();
    let wanted = Connection {
        workspace,
        provider: new.provider,
        name: new.name.trim().to_owned(),
        address: new.address.map(|address| address.trim().to_owned()).filter(|address| !address.is_empty()),
        base_url: address_of(&new.network_url)?,
        number_id: new.number_id,
        business_id: new.business_id,
        access_token: new.access_token,
        app_secret: new.app_secret,
        verify_token: new.verify_token,
        agent: new.agent_id,
        key: new.key_id,
        settings: new.settings.unwrap_or_default(),
        messages_per_second: 80,
    };
    // Checked before the network is asked, and again where it is stored: both may have been deleted in the meantime.
    let (agent, key, of) = (wanted.agent, wanted.key.clone(), agents.clone());
    cx.db.read(move |read| expect_own(read, workspace, &of, agent, key.as_ref())).await?;
    let health = network.0.health(&wanted.account()).await.map_err(|error| unconfirmed(&error))?;
    let wanted = Connection {
        messages_per_second: health.messages_per_second.map_or(80, i64::from),
        address: wanted.address.or(health.display_number),
        ..wanted
    };
    let (caller, capabilities) = (cx.caller.clone(), network.clone());
    let connected = cx.db.write(move |tx| {
        expect_own(tx, workspace, &agents, wanted.agent, wanted.key.as_ref())?;
        let row = connect(tx, &seal, &wanted)?;
        record(tx, &caller, "channel.connected", &row)?;
        shown(&row, &capabilities, &base_url)
    });
    connected.await.map(Created)
}

/// How a channel is connected
///
/// Returns the address of the network and that of callbacks. The secrets cannot be read.
#[operation(get "/dashboard/channels/{channelId}", session = "channels:connect")]
pub fn get_channel_connection(
    read: &mut Read,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    network: State<Network>,
    base_url: State<BaseUrl>,
) -> Result<Json<ChannelConnection>> {
    let row = live(read, caller.workspace_id(), channel_id)?;
    shown(&row, &network.0, &base_url.0).map(Json)
}

/// Change a channel
///
/// Changes the name, who answers, and how messages are handled. Connect the number again to change its credentials.
#[operation(patch "/dashboard/channels/{channelId}", session = "channels:connect")]
pub fn update_channel(
    tx: &mut Tx,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    Body(patch): Body<ChannelPatch>,
    agents: State<AgentDirectory>,
    network: State<Network>,
    base_url: State<BaseUrl>,
) -> Result<Json<ChannelConnection>> {
    let workspace = caller.workspace_id();
    live(tx, workspace, channel_id)?;
    let (agent, key) = (patch.agent_id.clone().given().flatten(), patch.key_id.clone().given().flatten());
    expect_own(tx, workspace, &agents.0, agent, key.as_ref())?;
    let change = ChannelChange {
        name: patch.name.map(|name| name.trim().to_owned()),
        network_url: None,
        agent: patch.agent_id,
        key: patch.key_id,
        messages_per_second: patch.messages_per_second,
    };
    let row = set(tx, channel_id, &change, |settings| {
        if let Some(wanted) = patch.settings {
            *settings = wanted;
        }
    })?;
    record(tx, caller, "channel.changed", &row)?;
    shown(&row, &network.0, &base_url.0).map(Json)
}

/// Disconnect a channel
///
/// Nothing is sent over the channel any more, and callbacks of the network are refused. Its conversations stay. Connect the
/// number again to use it.
#[operation(post "/dashboard/channels/{channelId}/disconnect", session = "channels:connect")]
pub fn disconnect_channel(
    tx: &mut Tx,
    caller: &Caller,
    Path(channel_id): Path<ChannelId>,
    network: State<Network>,
    base_url: State<BaseUrl>,
) -> Result<Json<ChannelConnection>> {
    live(tx, caller.workspace_id(), channel_id)?;
    disconnect(tx, channel_id)?;
    let row = live(tx, caller.workspace_id(), channel_id)?;
    record(tx, caller, "channel.disconnected", &row)?;
    shown(&row, &network.0, &base_url.0).map(Json)
}

/// Why the network does not confirm a number, in its words.
fn unconfirmed(error: &NetworkError) -> Error {
    let (param, problem) = match (error.is_unauthorized, error.is_retryable) {
        (true, _) => ("access_token", "is refused by the network"),
        (false, true) => ("network_url", "does not lead to a network that answers"),
        (false, false) => ("number_id", "is refused by the network"),
    };
    Error::invalid(param, format!("{problem}: {}", error.message))
}

fn address_of(url: &str) -> Result<String> {
    let is_http =
        Url::parse(url).is_ok_and(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    if !is_http {
        return Err(Error::invalid("network_url", "must be an http or https address"));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// Checks that the agent and the key are of the workspace, and that the key may run agents.
fn expect_own(
    read: &mut Read,
    workspace: WorkspaceId,
    agents: &AgentDirectory,
    agent: Option<AgentId>,
    key: Option<&KeyId>,
) -> Result<()> {
    if let Some(agent) = agent
        && agents.among(read, workspace, &[agent])?.is_empty()
    {
        return Err(Error::invalid("agent_id", "must be an agent of the workspace"));
    }
    let Some(key) = key else { return Ok(()) };
    let unknown = |_| Error::invalid("key_id", "must be a key of the workspace");
    let stored = keys::in_workspace(read, workspace, key).map_err(unknown)?;
    if !stored.key.scopes.contains(Scope::RunsExecute) {
        return Err(Error::invalid("key_id", "must have the scope `runs:execute`"));
    }
    Ok(())
}

fn shown(row: &ChannelRow, network: &Network, base_url: &BaseUrl) -> Result<ChannelConnection> {
    Ok(ChannelConnection {
        channel: row.channel(network.0.capabilities())?,
        object: "channel_connection",
        network_url: row.base_url.clone(),
        number_id: row.number_id.clone(),
        business_id: row.business_id.clone(),
        callback_url: format!("{}/callbacks/{}", base_url.0, row.id),
        key_id: row.key_id.clone(),
    })
}

fn record(tx: &mut Tx, caller: &Caller, action: &'static str, row: &ChannelRow) -> Result<()> {
    let details = json!({ "name": row.name, "number_id": row.number_id, "agent_id": row.agent_id });
    let entry = Entry::new(Actor::of(caller)?, action, row.id.to_string());
    audit::record(tx, entry.workspace(row.workspace_id).details(details))
}
