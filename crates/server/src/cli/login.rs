//! `svc login` and `svc logout`.

use super::client::{Client, failure};
use super::output;
use super::profile::Profile;
use crate::values::{api_key, http_url, profile_name};
use anyhow::Context;
use clap::Args;
use egress::{Method, Url};
use serde_json::Value;
use std::io::{self, IsTerminal};

#[derive(Args)]
pub(super) struct Login {
    /// The URL of the service.
    #[arg(long, env = "SVC_API_URL", value_parser = http_url)]
    url: String,
    /// The API key; `-` reads it from standard input. Without it, `svc` asks for it and does not show what is typed.
    #[arg(long, env = "SVC_API_KEY", hide_env_values = true, value_parser = key_or_input)]
    key: Option<String>,
    /// The name to store them under.
    #[arg(long, env = "SVC_PROFILE", value_name = "NAME", default_value = "default", value_parser = profile_name)]
    profile: String,
}

#[derive(Args)]
pub(super) struct Logout {
    /// The name that they are stored under.
    #[arg(long, env = "SVC_PROFILE", value_name = "NAME", default_value = "default", value_parser = profile_name)]
    profile: String,
}

/// What stands for standard input.
const INPUT: &str = "-";

fn key_or_input(text: &str) -> Result<String, String> {
    if text == INPUT { Ok(text.to_owned()) } else { api_key(text) }
}

pub(super) async fn login(arguments: Login) -> anyhow::Result<()> {
    let client = Client::new(&arguments.url, read_key(arguments.key)?)?;
    if is_exposed(&arguments.url) {
        output::aside("Warning: the URL is not https, so the key crosses the network unencrypted.");
    }
    let response = client.connector.send(client.request(Method::GET, "/me", &[])?).await;
    let response = response.with_context(|| format!("{} does not answer", client.base()))?;
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let owner = match (response.status, body.pointer("/error/code").and_then(Value::as_str)) {
        (200, _) => body.pointer("/data/workspace/slug").and_then(Value::as_str).map(str::to_owned),
        // The key is valid: it may only not read this, or needs a workspace in each request.
        (403, Some(_)) | (400, Some("workspace_required")) => None,
        _ => anyhow::bail!("{}; nothing was stored", failure(&response)),
    };
    let profile = Profile { url: client.base().to_owned(), key: client.key().to_owned() };
    let path = profile.store(&arguments.profile)?;
    let owner = owner.map(|slug| format!(" for workspace {slug}")).unwrap_or_default();
    Ok(output::text(&format!("Stored the key{owner} in {}\n", path.display()))?)
}

pub(super) fn logout(arguments: &Logout) -> anyhow::Result<()> {
    Profile::delete(&arguments.profile)?;
    Ok(output::text(&format!("Deleted the profile {}\n", arguments.profile))?)
}

fn read_key(given: Option<String>) -> anyhow::Result<String> {
    let text = match given.as_deref() {
        Some(INPUT) => {
            let mut line = String::new();
            io::stdin().read_line(&mut line).context("reading the key from standard input")?;
            line
        }
        Some(key) => return Ok(key.to_owned()),
        None if io::stdin().is_terminal() => {
            rpassword::prompt_password("API key: ").context("reading the key")?
        }
        None => anyhow::bail!(
            "there is no terminal to ask for the key: use --key - to read it from standard input"
        ),
    };
    api_key(text.trim()).map_err(|rule| anyhow::anyhow!("the key {rule}"))
}

/// Whether others can read what is sent to this URL.
fn is_exposed(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let is_local = match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    };
    url.scheme() == "http" && !is_local
}
