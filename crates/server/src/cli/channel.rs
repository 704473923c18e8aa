//! The channels of workspaces, for operators.

use super::arguments::{Json, workspace_id};
use super::output;
use crate::Config;
use crate::database::{migrate, open_database};
use crate::operator_error::cause;
use crate::secret_key::{Keys, open_seal};
use crate::values::{self, http_url, whole};
use anyhow::Context;
use auth::Seal;
use channels::{
    ChannelChange, ChannelProvider, ChannelRow, ChannelSettings, ConnectChannel, connect, disconnect, list,
    set,
};
use chatnet::{ChannelAdapter, Chatnet, NetworkError};
use clap::{Args, Subcommand};
use egress::{Connector, Policy};
use model::{AgentId, ChannelId, KeyId, Result, WorkspaceId};
use serde_json::{Value, json};
use std::sync::Arc;
use store::Db;

#[derive(Subcommand)]
pub(super) enum ChannelCommand {
    /// Connect a number, or give a connected one new credentials, once the network has accepted them. The old app secret stays valid
    /// beside the new one.
    Connect(Box<Connect>),
    /// List the channels of all workspaces.
    List {
        #[command(flatten)]
        json: Json,
    },
    /// Change a channel. What is not given stays unchanged.
    Set {
        /// The id of the channel.
        #[arg(value_parser = whole::<i64, 1, { i64::MAX }>, allow_negative_numbers = true)]
        channel: i64,
        /// What people call it.
        #[arg(long)]
        name: Option<String>,
        /// Where the network's API is, with its version.
        #[arg(long, value_name = "URL", value_parser = http_url)]
        network_url: Option<String>,
        #[command(flatten)]
        handling: Box<Handling>,
        #[command(flatten)]
        json: Json,
    },
    /// Disable a channel: nothing is sent over it, and callbacks are refused.
    Disconnect {
        /// The id of the channel.
        #[arg(value_parser = whole::<i64, 1, { i64::MAX }>, allow_negative_numbers = true)]
        channel: i64,
        #[command(flatten)]
        json: Json,
    },
}

#[derive(Args)]
pub(super) struct Connect {
    /// The workspace's id or slug.
    #[arg(long)]
    workspace: String,
    /// What people call the channel.
    #[arg(long)]
    name: String,
    /// The number as people write it, such as `+551130000000`.
    #[arg(long)]
    address: Option<String>,
    /// `cloud` for the network's own servers, `partner` for those of a partner, `simulator` for `svc chatnet`.
    #[arg(long, default_value = "cloud", value_parser = values::channel_provider)]
    provider: ChannelProvider,
    /// Where the network's API is, with its version.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    network_url: String,
    /// The network's id of the number.
    #[arg(long, value_name = "ID")]
    number_id: String,
    /// The network's id of the business.
    #[arg(long, value_name = "ID")]
    business_id: String,
    /// The token that requests to the network carry.
    #[arg(long, env = "SVC_CHANNEL_ACCESS_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    access_token: String,
    /// The secret with which the network signs callbacks.
    #[arg(long, env = "SVC_CHANNEL_APP_SECRET", value_name = "SECRET", hide_env_values = true)]
    app_secret: String,
    /// What the network says when it asks whether the address of callbacks is ours: any text of your own.
    #[arg(long, env = "SVC_CHANNEL_VERIFY_TOKEN", value_name = "TEXT", hide_env_values = true)]
    verify_token: String,
    /// Connect the number without asking the network whether it accepts the credentials.
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    handling: Handling,
    #[command(flatten)]
    json: Json,
}

impl Connect {
    fn channel(&self, workspace: WorkspaceId) -> ConnectChannel {
        let mut settings = ChannelSettings::default();
        self.handling.apply(&mut settings);
        ConnectChannel {
            workspace,
            provider: self.provider,
            name: self.name.clone(),
            address: self.address.clone(),
            base_url: without_end(&self.network_url),
            number_id: self.number_id.clone(),
            business_id: self.business_id.clone(),
            access_token: self.access_token.clone(),
            app_secret: self.app_secret.clone(),
            verify_token: self.verify_token.clone(),
            agent: self.handling.agent.map(AgentId),
            key: self.handling.key.clone(),
            settings,
            messages_per_second: self.handling.messages_per_second.unwrap_or(80),
        }
    }
}

/// How the service handles the messages of a channel.
#[derive(Args)]
pub(super) struct Handling {
    /// The id of the agent that answers contacts; the workspace's default agent if not given.
    #[arg(long, value_name = "ID", value_parser = whole::<i64, 1, { i64::MAX }>, allow_negative_numbers = true)]
    agent: Option<i64>,
    /// The id of the API key on whose behalf the agent runs, which needs the scope `runs:execute`. Without it no agent
    /// answers.
    #[arg(long, value_name = "KEY", value_parser = values::key_id)]
    key: Option<KeyId>,
    /// How many messages per second the network accepts; 0 for no limit.
    #[arg(long, value_name = "N", value_parser = whole::<i64, 0, 10_000>, allow_negative_numbers = true)]
    messages_per_second: Option<i64>,
    /// How long the agent waits for further messages before it answers, in milliseconds.
    #[arg(long, value_name = "MS", value_parser = whole::<i64, 0, 60_000>, allow_negative_numbers = true)]
    reply_debounce_ms: Option<i64>,
    /// How long the agent waits at most, in milliseconds.
    #[arg(long, value_name = "MS", value_parser = whole::<i64, 0, 120_000>, allow_negative_numbers = true)]
    reply_debounce_max_ms: Option<i64>,
    /// For how many minutes the autopilot is paused when a person writes to a contact; 0: it is not.
    #[arg(long, value_name = "N", value_parser = whole::<i64, 0, 43_200>, allow_negative_numbers = true)]
    takeover_pause_minutes: Option<i64>,
    /// Whether conversations that an agent hands over are assigned to the member of the team with the fewest: `true` or
    /// `false`.
    #[arg(long, value_name = "BOOL")]
    auto_assign: Option<bool>,
    /// With `--auto-assign`: after how many minutes of absence a member loses the conversations in which a contact waits for
    /// an answer; 0: never.
    #[arg(long, value_name = "N", value_parser = whole::<i64, 0, 43_200>, allow_negative_numbers = true)]
    reassign_after_minutes: Option<i64>,
    /// What a contact is answered who writes for the first time. An empty text removes it.
    #[arg(long, value_name = "TEXT", value_parser = values::message)]
    welcome: Option<String>,
    /// Words with which contacts opt out, beside the usual ones, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "WORDS")]
    opt_out_keywords: Option<Vec<String>>,
    /// What a contact is answered that opted out. An empty text removes it.
    #[arg(long, value_name = "TEXT", value_parser = values::message)]
    opt_out_confirmation: Option<String>,
}

impl Handling {
    fn apply(&self, settings: &mut ChannelSettings) {
        let set = |to: &mut i64, value: Option<i64>| {
            if let Some(value) = value {
                *to = value;
            }
        };
        set(&mut settings.reply_debounce_ms, self.reply_debounce_ms);
        set(&mut settings.reply_debounce_max_ms, self.reply_debounce_max_ms);
        set(&mut settings.takeover_pause_minutes, self.takeover_pause_minutes);
        set(&mut settings.reassign_after_minutes, self.reassign_after_minutes);
        settings.auto_assign = self.auto_assign.unwrap_or(settings.auto_assign);
        if let Some(words) = &self.opt_out_keywords {
            settings.opt_out_keywords = words.iter().filter(|word| !word.is_empty()).cloned().collect();
        }
        let answer = |to: &mut Option<String>, text: &Option<String>| {
            if let Some(text) = text {
                *to = Some(text.clone()).filter(|text| !text.is_empty());
            }
        };
        answer(&mut settings.opt_out_confirmation, &self.opt_out_confirmation);
        answer(&mut settings.welcome, &self.welcome);
    }
}

pub(super) fn run(config: &Config, command: ChannelCommand) -> anyhow::Result<()> {
    migrate(config)?;
    let db = open_database(config)?;
    let keys = Keys::read(config, db.backend())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let seal = Arc::new(open_seal(config, keys, &db).await?);
        if let ChannelCommand::Connect(given) = &command
            && !given.no_check
        {
            let account = given.channel(WorkspaceId(0)).account();
            let asked = network(config)?.health(&account).await;
            asked.map_err(|error| {
                anyhow::anyhow!("{}. Nothing was changed; --no-check connects all the same", said(&error))
            })?;
        }
        channel(db, seal, config.base_url(), command).await.map_err(cause)
    })
}

/// The chat network, as the service reaches it.
pub(super) fn network(config: &Config) -> anyhow::Result<Chatnet> {
    let rules = config.allow_outbound.iter().map(String::as_str);
    Ok(Chatnet::new(Connector::new(Policy::allowing(rules).context("SVC_ALLOW_OUTBOUND")?)?))
}

/// Why the network did not say how a number is doing, in its words.
pub(super) fn said(error: &NetworkError) -> String {
    let message = error.message.trim_end_matches('.');
    if error.is_unauthorized {
        format!("the network does not accept the credentials: {message}")
    } else {
        format!("the number was not confirmed: {message}")
    }
}

async fn channel(db: Db, seal: Arc<Seal>, base_url: String, command: ChannelCommand) -> Result<()> {
    match command {
        ChannelCommand::Connect(given) => {
            let json = given.json.json;
            let row = db
                .write(move |tx| {
                    let workspace = workspace_id(tx, &given.workspace)?;
                    connect(tx, &seal, &given.channel(workspace))
                })
                .await?;
            output::object(&shown(&row, &base_url), json)?;
        }
        ChannelCommand::List { json } => {
            let rows = db.read(list).await?;
            let rows: Vec<Value> = rows.iter().map(|row| shown(row, &base_url)).collect();
            output::rows(&rows, json.json)?;
        }
        ChannelCommand::Set { channel, name, network_url, handling, json } => {
            let row = db
                .write(move |tx| {
                    let change = ChannelChange {
                        name: name.clone(),
                        network_url: network_url.as_deref().map(without_end),
                        agent: handling.agent.map(AgentId).into(),
                        key: handling.key.clone().into(),
                        messages_per_second: handling.messages_per_second,
                    };
                    set(tx, ChannelId(channel), &change, |settings| handling.apply(settings))
                })
                .await?;
            output::object(&shown(&row, &base_url), json.json)?;
        }
        ChannelCommand::Disconnect { channel, json } => {
            db.write(move |tx| disconnect(tx, ChannelId(channel))).await?;
            output::object(&json!({ "id": channel, "status": "disabled" }), json.json)?;
        }
    }
    Ok(())
}

/// An address without the slashes at its end.
fn without_end(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

/// What operators see of a channel: the address that the network is to call back, and no credentials.
fn shown(row: &ChannelRow, base_url: &str) -> Value {
    let summary = row.summary();
    json!({
        "id": summary.id,
        "workspace_id": summary.workspace,
        "name": summary.name,
        "address": summary.address,
        "provider": summary.provider,
        "status": summary.status,
        "callback_url": format!("{base_url}/callbacks/{}", summary.id),
    })
}
