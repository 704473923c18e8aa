//! `svc chatnet`: the chat network on this machine, to try channels without an account.

use crate::cli::output;
use crate::values::{http_url, whole};
use clap::Args;
use serde_json::json;
use simulator::{NewUser, Settings, Simulator};
use std::net::{Ipv4Addr, SocketAddr};

#[derive(Args)]
pub(in crate::cli) struct Chatnet {
    /// The port on 127.0.0.1; 0 for any free one.
    #[arg(long, default_value = "8090", value_parser = whole::<u16, 0, 65_535>, allow_negative_numbers = true)]
    port: u16,
    /// Where messages of customers go: the webhook URL of a channel.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    callback: Option<String>,
    /// Verify the callback URL first, as the network does, with this token.
    #[arg(long, value_name = "TOKEN", requires = "callback")]
    verify_token: Option<String>,
    /// The app secret, which signs callbacks.
    #[arg(long, hide_env_values = true, env = "SVC_CHATNET_SECRET")]
    secret: Option<String>,
    /// The id of the business's number.
    #[arg(long, value_name = "ID")]
    number: Option<String>,
    /// Makes ids and chooses faults. The same seed makes the same ones; without it they differ at each start, as a service
    /// needs that keeps what it received.
    #[arg(long, value_name = "N", value_parser = whole::<u64, 0, { i64::MAX }>, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Limit neither messages per second nor messages to one recipient.
    #[arg(long)]
    no_rates: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs until it is interrupted.
pub(in crate::cli) async fn run(arguments: Chatnet) -> anyhow::Result<()> {
    let default = Settings::default();
    let settings = Settings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port)),
        seed: arguments.seed.unwrap_or_else(Settings::random_seed),
        rates: !arguments.no_rates,
        app_secret: arguments.secret.unwrap_or(default.app_secret),
        verify_token: arguments.verify_token.clone().unwrap_or(default.verify_token),
        number_id: arguments.number.unwrap_or(default.number_id),
        ..Settings::default()
    };
    let simulator = Simulator::start(settings)?;
    let connection = simulator.connection();
    match (&arguments.callback, &arguments.verify_token) {
        (Some(url), Some(token)) => simulator.register_callback(&connection.number_id, url, token).await?,
        (Some(url), None) => simulator.set_callback(&connection.number_id, Some(url))?,
        (None, _) => {}
    }
    let ana = NewUser {
        name: Some("Ana".to_owned()),
        phone: Some("5511999990000".to_owned()),
        ..NewUser::default()
    };
    simulator.add_user(ana)?;
    output::object(&json!(connection), arguments.json)?;
    if output::is_terminal() {
        output::aside(&format!("Chat as a customer on {} · Ctrl-C ends the simulator", connection.page));
    }
    tokio::signal::ctrl_c().await?;
    simulator.stop().await;
    Ok(())
}
