//! The API of a service, for the commands that send requests to it.

use super::profile::Profile;
use crate::values::{api_key, http_url, profile_name};
use anyhow::{Context, bail};
use clap::Args;
use egress::{Connector, Method, Policy, Request, Response, Url};
use serde_json::Value;

/// Where a service is if nothing says otherwise.
const LOCAL: &str = "http://127.0.0.1:8080";
/// What the paths of all operations begin with.
const PREFIX: &str = "/api/v1";

/// Which service, and with which key.
#[derive(Args)]
pub(super) struct Target {
    /// The URL of the service. Default: the profile's, or http://127.0.0.1:8080.
    #[arg(long, env = "SVC_API_URL", value_parser = http_url)]
    pub(super) url: Option<String>,
    /// The API key. Default: the profile's.
    #[arg(long, env = "SVC_API_KEY", hide_env_values = true, value_parser = api_key)]
    pub(super) key: Option<String>,
    /// The profile that `svc login` stored.
    #[arg(long, env = "SVC_PROFILE", value_name = "NAME", default_value = "default", value_parser = profile_name)]
    pub(super) profile: String,
}

/// Sends requests to one service, with one key.
pub(super) struct Client {
    base: String,
    key: String,
    /// For requests to other addresses too.
    pub(super) connector: Connector,
}

impl Target {
    /// A client for what arguments, variables and the profile say, in this order.
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        let profile = match (&self.url, &self.key) {
            (Some(url), Some(key)) => return Client::new(url, key.clone()),
            _ => Profile::load(&self.profile)?,
        };
        let (url, key) = match (self.url.as_deref().map(base), self.key.clone(), profile) {
            (None, Some(key), Some(profile)) => (profile.url, key),
            (url, Some(key), _) => (url.unwrap_or(LOCAL).to_owned(), key),
            (None, None, Some(profile)) => (profile.url, profile.key),
            // A key is sent only to the service that it was stored for.
            (Some(url), None, Some(profile)) if url == profile.url => (profile.url, profile.key),
            (Some(_), None, Some(_)) => bail!(
                "the key of profile `{}` belongs to another URL: give --key or SVC_API_KEY too",
                self.profile
            ),
            (_, None, None) => {
                bail!("there is no profile `{}`: use `svc login`, --key or SVC_API_KEY", self.profile)
            }
        };
        Client::new(&url, key)
    }
}

impl Client {
    /// A client for the service at `url`, which may end with `/api/v1`.
    pub(super) fn new(url: &str, key: String) -> anyhow::Result<Self> {
        // Whoever can type commands here can reach every address anyway.
        let mut rules = vec!["0.0.0.0/0".to_owned(), "::/0".to_owned(), "localhost".to_owned()];
        let parsed = Url::parse(url).context("the URL of the service cannot be read")?;
        if let (Some(host), Some(port)) = (parsed.host_str(), parsed.port()) {
            // A rule with a port allows ports that are otherwise refused.
            rules.push(format!("{host}:{port}"));
        }
        let policy = Policy::allowing(rules.iter().map(String::as_str))?;
        Ok(Self { base: base(url).to_owned(), key, connector: Connector::new(policy)? })
    }

    /// The service's URL, without `/api/v1`.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// The key.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// A request with the key, to `path` with or without `/api/v1`.
    pub(super) fn request(
        &self,
        method: Method,
        path: &str,
        query: &[(String, String)],
    ) -> anyhow::Result<Request> {
        let path = path.trim_start_matches('/');
        let below = path.strip_prefix(PREFIX.trim_start_matches('/')).unwrap_or(path).trim_start_matches('/');
        let mut url =
            Url::parse(&format!("{}{PREFIX}/{below}", self.base)).context("the path is not valid")?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(Request::new(method, url).header("authorization", format!("Bearer {}", self.key)))
    }
}

/// A service's URL without what may stand at its end.
fn base(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix(PREFIX).unwrap_or(url).trim_end_matches('/')
}

/// What an error response says, in one line.
pub(super) fn failure(response: &Response) -> String {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let text = |name: &str| body.pointer(&format!("/error/{name}")).and_then(Value::as_str);
    let mut line = format!("the service answered {}", response.status);
    if let Some(message) = text("message") {
        line.push_str(&format!(": {message}"));
    }
    let facts: Vec<String> = ["code", "param"]
        .into_iter()
        .filter_map(|name| text(name).map(|value| format!("{name}: {value}")))
        .collect();
    if !facts.is_empty() {
        line.push_str(&format!(" ({})", facts.join(", ")));
    }
    line
}

/// Runs a command that sends requests.
pub(super) fn run(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(command)
}
