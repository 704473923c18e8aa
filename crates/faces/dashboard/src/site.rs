//! How browsers reach the service, and what follows from it for cookies and links.

use model::{Error, Result};
use url::{Host, Url};

/// The setting `SVC_INSECURE_SIGN_IN`: whether people may sign in where the base URL is `http` and not on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct InsecureSignIn(pub bool);

/// How what browsers send is protected on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// The base URL is `https`.
    Encrypted,
    /// The base URL is `http` on this machine.
    Loopback,
    /// The base URL is `http` elsewhere. Passwords and sessions can be read on the way, so signing in needs a setting.
    Plain {
        /// Whether `SVC_INSECURE_SIGN_IN` is set.
        is_allowed: bool,
    },
}

/// The address of the service for browsers. It comes from the configuration, never from the header `Host`.
#[derive(Debug, Clone)]
pub struct Site {
    base_url: String,
    origin: String,
    /// The path of the base URL, without a slash at its end.
    path: String,
    transport: Transport,
}

impl Site {
    /// Reads a base URL.
    ///
    /// # Errors
    /// `internal_error` if it is no URL. The configuration is checked before.
    pub fn new(base_url: &str, insecure: InsecureSignIn) -> Result<Self> {
        let url = Url::parse(base_url).map_err(Error::internal)?;
        let transport = match url.scheme() {
            "https" => Transport::Encrypted,
            _ if url.host().is_some_and(|host| is_loopback(&host)) => Transport::Loopback,
            _ => Transport::Plain { is_allowed: insecure.0 },
        };
        Ok(Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            origin: url.origin().ascii_serialization(),
            path: url.path().trim_end_matches('/').to_owned(),
            transport,
        })
    }

    /// Returns the base URL, without a slash at its end.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the origin of the base URL.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns how requests are protected.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Returns the address of a page for links and redirects: a path below that of the base URL. It names no host, so a
    /// forged `Host` leads nowhere else.
    pub fn link(&self, page: &str) -> String {
        format!("{}{page}", self.path)
    }

    /// Returns why nobody can sign in over this connection. `host` is the header of the request, which can only add a
    /// refusal: on a service for this machine, it shows that the request came from another one.
    pub fn refusal(&self, host: Option<&str>) -> Option<&'static str> {
        match self.transport {
            Transport::Encrypted | Transport::Plain { is_allowed: true } => None,
            Transport::Plain { is_allowed: false } => Some(PLAIN),
            Transport::Loopback if names_loopback(host) => None,
            Transport::Loopback => Some(ELSEWHERE),
        }
    }

    /// Returns whether passwords and sessions cross a network without encryption, which every page then says.
    pub fn is_insecure(&self) -> bool {
        matches!(self.transport, Transport::Plain { .. })
    }
}

const PLAIN: &str = "This service is reached over plain http, where others on the network could read your password. Whoever \
    runs it has to set SVC_BASE_URL to an https address, or SVC_INSECURE_SIGN_IN=true to accept the risk.";
const ELSEWHERE: &str = "This service is set up to be used on its own machine only. Whoever runs it has to set SVC_BASE_URL \
    to the https address at which you reach it.";

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        // The unspecified address is where the service listens on a machine without a configured base URL.
        Host::Ipv4(address) => address.is_loopback() || address.is_unspecified(),
        Host::Ipv6(address) => address.is_loopback() || address.is_unspecified(),
    }
}

fn names_loopback(host: Option<&str>) -> bool {
    let url = host.and_then(|host| Url::parse(&format!("http://{host}/")).ok());
    url.is_some_and(|url| url.host().is_some_and(|host| is_loopback(&host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(base_url: &str, insecure: bool) -> Site {
        Site::new(base_url, InsecureSignIn(insecure)).unwrap()
    }

    #[test]
    fn passwords_cross_no_network_in_the_clear() {
        for base_url in
            ["http://localhost:8080", "http://127.0.0.1", "http://a.localhost:1", "http://[::1]:8080"]
        {
            let site = site(base_url, false);
            assert_eq!(site.transport(), Transport::Loopback, "{base_url}");
            assert_eq!(site.refusal(Some("localhost:8080")), None);
            assert_eq!(site.refusal(Some("127.0.0.1")), None);
            assert_eq!(site.refusal(Some("192.168.1.7:8080")), Some(ELSEWHERE));
            assert_eq!(site.refusal(Some("localhost.evil.example")), Some(ELSEWHERE));
            assert_eq!(site.refusal(None), Some(ELSEWHERE));
        }
        for base_url in ["http://svc.example", "http://192.168.1.7:8080", "http://localhost.evil.example"] {
            assert_eq!(site(base_url, false).refusal(Some("localhost")), Some(PLAIN), "{base_url}");
            assert_eq!(site(base_url, true).refusal(Some("svc.example")), None);
            assert!(site(base_url, true).is_insecure());
        }
        assert_eq!(site("https://svc.example", false).refusal(Some("anything")), None);
    }

    #[test]
    fn links_keep_the_path_of_the_base_url() {
        assert_eq!(site("https://svc.example/", false).link("/sign-in"), "/sign-in");
        assert_eq!(site("https://svc.example/bots/", false).link("/sign-in"), "/bots/sign-in");
    }
}
