//! The demo's chat network: a simulator in this process, and a channel of the demo workspace that is connected to it.

use super::contacts;
use crate::operator_error::cause;
use anyhow::Context;
use auth::Seal;
use auth::keys::{self, NewKey};
use channels::{
    ChannelChange, ChannelProvider, ChannelRow, ChannelSettings, ChannelStatus, ConnectChannel, connect,
    list, set,
};
use conversations::{OpenAiTranscriber, TranscriberSettings};
use egress::{Connector, Policy};
use model::{Env, KeyId, Result, Scope, WorkspaceId};
use operation::Pipeline;
use serde_json::json;
use simulator::{Connection, NewTemplate, NewUser, Service, Settings, Simulator, StartError};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use store::Tx;

/// Where the page is, unless the port is taken.
const PORT: u16 = 8090;
/// How long the agent waits for further messages, in milliseconds: a newcomer writes one at a time.
const DEBOUNCE_MS: i64 = 500;

/// What the key is called with which the page answers for the business.
const INBOX_KEY: &str = "Demo (inbox of the chat page)";

/// A simulated chat network. It ends with this value.
pub(crate) struct Chat {
    simulator: Simulator,
    connection: Connection,
}

impl Chat {
    /// Starts the network, with some of the demo's contacts as customers and a template that can be sent.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let start = |port| {
            let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            Simulator::start(Settings { listen, seed: Settings::random_seed(), ..Settings::default() })
        };
        let simulator = match start(PORT) {
            Err(StartError::Listen(_)) => start(0),
            started => started,
        };
        let simulator = simulator.context("starting the chat simulator")?;
        for (name, phone) in contacts::customers() {
            simulator.add_user(NewUser { name: Some(name), phone: Some(phone), ..NewUser::default() })?;
        }
        let text = "Hello {{1}}, your order {{2}} is on its way.";
        simulator.add_template(&NewTemplate {
            name: "order_update".to_owned(),
            language: "en_US".to_owned(),
            category: "UTILITY".to_owned(),
            components: json!([
                { "type": "BODY", "text": text, "example": { "body_text": [["Ana", "1042"]] } },
                { "type": "FOOTER", "text": "Reply STOP to opt out" },
            ]),
        })?;
        let connection = simulator.connection();
        Ok(Self { simulator, connection })
    }

    /// The page on which a person chats as a customer.
    pub(crate) fn page(&self) -> &str {
        &self.connection.page
    }

    /// `connector`, allowed to reach the network, too.
    pub(crate) fn connector(&self, connector: &Connector, allowed: &[String]) -> anyhow::Result<Connector> {
        let address = self.simulator.address().to_string();
        let rules = allowed.iter().map(String::as_str).chain([address.as_str()]);
        Ok(connector.under(Policy::allowing(rules)?)?)
    }

    /// What transcribes voice notes: the network knows their words. `connector` must reach it.
    pub(crate) fn transcriber(&self, connector: Connector) -> OpenAiTranscriber {
        let settings = TranscriberSettings {
            base_url: format!("{}/v1", self.connection.page),
            api_key: None,
            model: "simulated".to_owned(),
        };
        OpenAiTranscriber::new(settings, connector)
    }

    /// Connects the demo's channel, or moves it to where the network is now. A channel that was disconnected by hand stays
    /// so.
    pub(crate) async fn connect(
        &self,
        service: &Pipeline,
        workspace: WorkspaceId,
        listeners: &[TcpListener],
    ) -> anyhow::Result<()> {
        let (connection, seal) = (self.connection.clone(), service.seal.clone());
        let connected =
            service.db.write(move |tx| channel(tx, &seal, workspace, &connection)).await.map_err(cause)?;
        let local = local_url(listeners)?;
        if connected.summary().status != ChannelStatus::Disabled {
            let callback = format!("{local}/callbacks/{}", connected.id());
            self.simulator.set_callback(&self.connection.number_id, Some(&callback))?;
        }
        let key = service.db.write(move |tx| inbox_key(tx, workspace)).await.map_err(cause)?;
        self.simulator.set_service(Some(Service { base_url: format!("{local}/api/v1"), key }));
        Ok(())
    }
}

/// The demo's channel, with the network's address of today.
fn channel(tx: &mut Tx, seal: &Seal, workspace: WorkspaceId, network: &Connection) -> Result<ChannelRow> {
    let base_url = network.base_url.clone();
    let is_ours = |channel: &ChannelRow| {
        let summary = channel.summary();
        summary.workspace == workspace && summary.provider == ChannelProvider::Simulator
    };
    if let Some(found) = list(tx)?.into_iter().find(is_ours) {
        let change = ChannelChange { network_url: Some(base_url), ..ChannelChange::default() };
        return set(tx, found.id(), &change, |_| ());
    }
    let key = paying_key(tx, workspace)?;
    let new = ConnectChannel {
        workspace,
        provider: ChannelProvider::Simulator,
        name: "Chat".to_owned(),
        address: None,
        base_url,
        number_id: network.number_id.clone(),
        business_id: network.business_id.clone(),
        access_token: network.access_token.clone(),
        app_secret: network.app_secret.clone(),
        verify_token: network.verify_token.clone(),
        agent: None,
        key,
        settings: ChannelSettings { reply_debounce_ms: DEBOUNCE_MS, ..ChannelSettings::default() },
        messages_per_second: 80,
    };
    connect(tx, seal, &new)
}

/// A key for the page's business side, which ends the one of the last start: its secret is known to this process only.
fn inbox_key(tx: &mut Tx, workspace: WorkspaceId) -> Result<String> {
    let now = tx.now();
    for stored in keys::list(tx, Some(workspace))? {
        if stored.name == INBOX_KEY && stored.check_usable(now).is_ok() {
            keys::revoke(tx, &stored.key.id)?;
        }
    }
    let scopes = vec![Scope::ContactsRead, Scope::ConversationsRead, Scope::HandoffManage];
    let (_, secret) = keys::create(tx, NewKey::of_workspace(INBOX_KEY, workspace, Env::Live, scopes))?;
    Ok(secret.reveal().to_owned())
}

/// The oldest live key on whose behalf the agent can answer.
fn paying_key(tx: &mut Tx, workspace: WorkspaceId) -> Result<Option<KeyId>> {
    let now = tx.now();
    let mut keys = keys::list(tx, Some(workspace))?.into_iter().filter(|stored| {
        stored.check_usable(now).is_ok()
            && stored.key.env == Env::Live
            && stored.key.scopes.contains(Scope::RunsExecute)
    });
    Ok(keys.next().map(|stored| stored.key.id))
}

/// How this machine reaches the service.
fn local_url(listeners: &[TcpListener]) -> anyhow::Result<String> {
    let mut address = listeners.first().context("the service listens nowhere")?.local_addr()?;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Ok(format!("http://{address}"))
}
