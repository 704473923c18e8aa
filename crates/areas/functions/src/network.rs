//! Whom a function may call over HTTP, and what its calls were.

use model::{Error, Result, text_enum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use url::Host;
use utoipa::ToSchema;

text_enum! {
    /// Which hosts a function may call.
    #[derive(Default)]
    #[schema(as = FunctionNetworkMode)]
    pub enum NetworkMode {
        /// None.
        #[default]
        None = "none",
        /// Those in `hosts`.
        Allowlist = "allowlist",
        /// All public hosts. Such a function has no secrets.
        Public = "public",
    }
}

/// The hosts that a function may call with `ctx.fetch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FunctionNetwork, example = json!({ "mode": "allowlist", "hosts": ["api.example.com", "*.example.org"] }))]
pub struct Network {
    /// Which hosts the function may call.
    #[serde(default)]
    pub mode: NetworkMode,
    /// Names of hosts, without scheme, port and path. `*.example.com` stands for all names below `example.com`. Only with `mode`
    /// `allowlist`.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub hosts: Vec<String>,
}

/// The most hosts of a list.
const MOST_HOSTS: usize = 50;

/// Names under which strangers have hosts of their own, so that a wildcard would stand for all of them. It is no complete list:
/// it guards against a slip of the author, who may call any public host anyway.
const SHARED: [&str; 16] = [
    "amazonaws.com",
    "appspot.com",
    "azurewebsites.net",
    "blogspot.com",
    "cloudfront.net",
    "firebaseapp.com",
    "fly.dev",
    "github.io",
    "gitlab.io",
    "herokuapp.com",
    "netlify.app",
    "ngrok.io",
    "onrender.com",
    "pages.dev",
    "vercel.app",
    "workers.dev",
];
/// Second-level names that registries of countries use, such as `co.uk` and `com.br`.
const REGISTRIES: [&str; 12] =
    ["ac", "co", "com", "edu", "go", "gob", "gov", "mil", "ne", "net", "or", "org"];

impl Network {
    /// Checks a network that a caller sent, and returns it with its hosts in small letters, each once. `param` is the path of the
    /// field, such as `network`.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn checked(self, param: &str) -> Result<Self> {
        let hosts_param = format!("{param}.hosts");
        if self.mode != NetworkMode::Allowlist {
            if !self.hosts.is_empty() {
                return Err(Error::invalid(hosts_param, "must be empty unless `mode` is `allowlist`"));
            }
            return Ok(self);
        }
        if self.hosts.is_empty() || self.hosts.len() > MOST_HOSTS {
            return Err(Error::invalid(hosts_param, format_args!("must have 1 to {MOST_HOSTS} hosts")));
        }
        let mut hosts = Vec::with_capacity(self.hosts.len());
        for (place, host) in self.hosts.iter().enumerate() {
            let host =
                checked_host(host).map_err(|rule| Error::invalid(format!("{hosts_param}[{place}]"), rule))?;
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        Ok(Self { mode: self.mode, hosts })
    }

    /// Returns whether a function with this network may call a host.
    pub(crate) fn permits(&self, host: Option<&Host<&str>>) -> bool {
        match self.mode {
            NetworkMode::None => false,
            NetworkMode::Public => true,
            NetworkMode::Allowlist => match host {
                Some(Host::Domain(name)) => self.hosts.iter().any(|pattern| matches(pattern, name)),
                _ => false,
            },
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(base) => name.strip_suffix(base).is_some_and(|head| head.len() > 1 && head.ends_with('.')),
        None => pattern == name,
    }
}

/// A host of a list in the form that URLs are compared in, or what is wrong with it.
fn checked_host(written: &str) -> std::result::Result<String, &'static str> {
    let (wildcard, name) = match written.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", written),
    };
    let is_strange = |c: char| c.is_whitespace() || c.is_control() || "/\\?#@:%*[]".contains(c);
    if name.is_empty() || name.contains(is_strange) {
        return Err(
            "must be the name of a host, such as `api.example.com` or `*.example.com`, without scheme, user, port and path",
        );
    }
    // What looks like a number is an IP address to the parser, however it is written.
    let Ok(Host::Domain(parsed)) = Host::parse(name) else {
        return Err("must be the name of a host, and not an IP address");
    };
    if parsed.len() > 253 || parsed.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return Err("must be the name of a host, with labels of 1 to 63 characters");
    }
    if !wildcard.is_empty() && is_shared(&parsed) {
        return Err("must not have a wildcard for a name under which strangers have hosts");
    }
    Ok(format!("{wildcard}{parsed}"))
}

fn is_shared(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    match labels.as_slice() {
        [] | [_] => true,
        [second, top] if top.len() == 2 && REGISTRIES.contains(second) => true,
        _ => SHARED.contains(&name) || SHARED.iter().any(|shared| shared.ends_with(&format!(".{name}"))),
    }
}

/// A recorded answer to `ctx.fetch` of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FunctionFixture, example = json!({ "url": "https://api.example.com/*", "status": 200, "body": "{}" }))]
pub struct Fixture {
    /// The method that it answers. All if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 16, nullable = false)]
    pub method: Option<String>,
    /// The URL that it answers. Each `*` stands for any characters.
    #[schema(max_length = 2048)]
    pub url: String,
    /// The status of the answer.
    #[serde(default = "ok")]
    #[schema(minimum = 200, maximum = 599, default = 200)]
    pub status: u16,
    /// The headers of the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body of the answer.
    #[serde(default)]
    #[schema(max_length = 262_144)]
    pub body: String,
}

fn ok() -> u16 {
    200
}

text_enum! {
    /// What answered a call of `ctx.fetch`.
    #[schema(as = FunctionFetchSource)]
    pub enum FetchSource {
        /// The host.
        Network = "network",
        /// A fixture of the test.
        Fixture = "fixture",
        /// The service itself: a call that writes is not made in test mode.
        Simulated = "simulated",
        /// Nothing: the call was refused.
        Refused = "refused",
    }
}

/// A call of `ctx.fetch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = FunctionFetch, example = json!({
    "method": "GET", "url": "https://api.example.com/rates?day=7", "status": 200, "error": null,
    "source": "network", "duration_ms": 41, "bytes_out": 0, "bytes_in": 512,
}))]
pub struct FetchRecord {
    /// The method.
    pub method: String,
    /// The URL, with `[secret]` in the place of secrets, and without user info.
    pub url: String,
    /// The status of the answer. `null` if there was none.
    pub status: Option<u16>,
    /// Why there was no answer.
    pub error: Option<String>,
    /// What answered.
    pub source: FetchSource,
    /// The duration in milliseconds.
    pub duration_ms: i64,
    /// Bytes of the body that was sent.
    pub bytes_out: i64,
    /// Bytes of the body that was received.
    pub bytes_in: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(hosts: &[&str]) -> Result<Vec<String>> {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Network { mode: NetworkMode::Allowlist, hosts }.checked("network").map(|network| network.hosts)
    }

    #[test]
    fn hosts_are_names() {
        let hosts =
            checked(&["API.example.com", "*.Example.org", "localhost", "bücher.example", "api.example.com"]);
        let expected = ["api.example.com", "*.example.org", "localhost", "xn--bcher-kva.example"];
        assert_eq!(hosts.unwrap(), expected);
        for host in [
            "",
            "*",
            "*.",
            "*.*",
            "*.com",
            "*.co.uk",
            "*.com.br",
            "*.github.io",
            "a.*.example.com",
            "*a.example.com",
            "https://example.com",
            "example.com/",
            "example.com:443",
            "user@example.com",
            "user:pass@example.com",
            "10.0.0.1",
            "0x0a.1",
            "167772161",
            "012.0.0.1",
            "１０.0.0.1",
            "[::1]",
            "::1",
            "example..com",
            ".example.com",
            "example.com.",
            "exa mple.com",
            "exam%70le.com",
            "example.com\\@b",
            "example.com\0",
        ] {
            assert!(checked(&[host]).is_err(), "{host:?}");
        }
        assert!(checked(&[]).is_err());
        assert!(checked(&vec!["a.example"; 51]).is_err());
        for mode in [NetworkMode::None, NetworkMode::Public] {
            let network = |hosts| Network { mode, hosts };
            assert!(network(vec!["a.example".to_owned()]).checked("network").is_err());
            assert!(network(Vec::new()).checked("network").is_ok());
        }
    }

    #[test]
    fn a_list_permits_its_names_and_no_others() {
        let hosts = vec!["api.example.com".to_owned(), "*.example.org".to_owned()];
        let network = Network { mode: NetworkMode::Allowlist, hosts };
        let permits = |url: &str| network.permits(url::Url::parse(url).unwrap().host().as_ref());
        for url in ["https://api.example.com/x", "http://API.example.com:8080/", "https://a.b.example.org/"] {
            assert!(permits(url), "{url}");
        }
        for url in [
            "https://example.com/",
            "https://x.api.example.com/",
            "https://api.example.com.evil.example/",
            "https://example.org/",
            "https://.example.org/",
            "https://evilexample.org/",
            "https://api.example.com./",
            "https://10.0.0.1/",
            "https://[::1]/",
            "data:x",
        ] {
            assert!(!permits(url), "{url}");
        }
        assert!(!Network::default().permits(Some(&Host::Domain("api.example.com"))));
    }
}
