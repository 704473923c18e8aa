//! The operator's policy: targets that are allowed beyond public addresses, and trusted certificate authorities.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::Host;

use crate::address::{is_global, is_metadata};

/// The policy of a [`Connector`](crate::Connector). The default is [`Policy::public_only`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Policy {
    /// Targets that are allowed although their addresses are not public.
    pub allow: Vec<AllowRule>,
    /// Certificate authorities in PEM to trust in addition to Mozilla's bundled set.
    pub extra_roots: Vec<String>,
}

impl Policy {
    /// Returns a policy with public addresses and the bundled certificate authorities only.
    pub fn public_only() -> Self {
        Self::default()
    }

    /// Returns a policy that allows public addresses and these rules.
    ///
    /// # Errors
    /// The first rule that cannot be parsed.
    pub fn allowing<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, RuleError> {
        let allow = rules.into_iter().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { allow, ..Self::default() })
    }

    /// Also trusts the certificate authorities in this PEM text.
    pub fn with_extra_roots(mut self, pem: impl Into<String>) -> Self {
        self.extra_roots.push(pem.into());
        self
    }

    /// Returns whether a connection to `address` is allowed. `name` is the name in the URL, or `None` if it has a
    /// literal address.
    pub(crate) fn permits(&self, name: Option<&str>, address: IpAddr, port: u16) -> bool {
        is_global(address)
            || self.allow.iter().any(|rule| {
                rule.is_for_port(port)
                    && match &rule.target {
                        Target::Network(network) => network.permits(address),
                        // A rule by name trusts the owner of its DNS zone with private addresses, but not with
                        // these.
                        Target::Name { .. } => {
                            name.is_some_and(|name| rule.target.is_named(name))
                                && !is_metadata(address)
                                && !address.is_multicast()
                                && !address.is_unspecified()
                        }
                    }
            })
    }

    /// Returns whether a rule lists this host as written in the URL: by its address, by its name, or by the loopback
    /// addresses for `localhost`.
    pub(crate) fn lists(&self, host: &Host<&str>, port: u16) -> bool {
        self.allow.iter().filter(|rule| rule.is_for_port(port)).any(|rule| match (&rule.target, host) {
            (Target::Network(network), Host::Ipv4(v4)) => network.permits(IpAddr::V4(*v4)),
            (Target::Network(network), Host::Ipv6(v6)) => network.permits(IpAddr::V6(*v6)),
            (Target::Network(network), Host::Domain("localhost")) => {
                network.permits(IpAddr::V4(Ipv4Addr::LOCALHOST))
                    || network.permits(IpAddr::V6(Ipv6Addr::LOCALHOST))
            }
            (target, Host::Domain(name)) => target.is_named(name),
            (Target::Name { .. }, _) => false,
        })
    }

    /// Returns whether a rule names this host and port. Such a rule takes precedence over a caller's list of ports.
    pub(crate) fn names_port(&self, host: &Host<&str>, port: u16) -> bool {
        self.allow.iter().any(|rule| {
            rule.port == Some(port)
                && match (&rule.target, host) {
                    (Target::Network(network), Host::Ipv4(v4)) => network.permits(IpAddr::V4(*v4)),
                    (Target::Network(network), Host::Ipv6(v6)) => network.permits(IpAddr::V6(*v6)),
                    (target, Host::Domain(name)) => target.is_named(name),
                    (Target::Name { .. }, _) => false,
                }
        })
    }
}

/// One entry of the operator's allow-list.
///
/// | Written | Allows |
/// |---|---|
/// | `127.0.0.1:9000`, `[::1]:11434` | this address on this port, under any name that resolves to it |
/// | `10.0.0.0/8`, `fd12::/16`, `10.0.0.0/8:8080` | a network, on any or one port |
/// | `localhost`, `intranet.example:8080` | this name, wherever its zone points |
/// | `*.internal.example` | every name below `internal.example`, not the name itself |
///
/// The addresses of cloud metadata services need a rule for that single address. Rules for networks and names do not
/// cover them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowRule {
    target: Target,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Network(Network),
    /// A name in lower case. With `below`, only subdomains match.
    Name {
        name: String,
        below: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    base: IpAddr,
    prefix: u8,
}

impl AllowRule {
    fn is_for_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

impl Target {
    fn is_named(&self, host: &str) -> bool {
        match self {
            Self::Network(_) => false,
            Self::Name { name, below: false } => name == host,
            Self::Name { name, below: true } => {
                host.strip_suffix(name.as_str()).is_some_and(|head| head.len() > 1 && head.ends_with('.'))
            }
        }
    }
}

impl Network {
    fn single(address: IpAddr) -> Self {
        Self { base: address, prefix: if address.is_ipv4() { 32 } else { 128 } }
    }

    fn is_single(self) -> bool {
        self == Self::single(self.base)
    }

    fn permits(self, address: IpAddr) -> bool {
        self.contains(address) && (self.is_single() || !is_metadata(address))
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(v4)) => {
                (base.to_bits() ^ v4.to_bits()).checked_shr(32 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            (IpAddr::V6(base), IpAddr::V6(v6)) => {
                (base.to_bits() ^ v6.to_bits()).checked_shr(128 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let base: IpAddr = address.parse().map_err(|_| "not an IP address")?;
        if let IpAddr::V6(v6) = base
            && v6.to_ipv4_mapped().is_some()
        {
            return Err("write a mapped IPv4 address as IPv4");
        }
        let mut network = Self::single(base);
        if let Some(prefix) = prefix {
            let length = decimal(prefix).and_then(|length| u8::try_from(length).ok());
            network.prefix = length
                .filter(|length| *length <= network.prefix)
                .ok_or("the prefix length is not a number from 0 to 32 (IPv4) or 128 (IPv6)")?;
        }
        let host_bits = match base {
            IpAddr::V4(v4) => v4.to_bits().checked_shl(u32::from(network.prefix)).unwrap_or(0) != 0,
            IpAddr::V6(v6) => v6.to_bits().checked_shl(u32::from(network.prefix)).unwrap_or(0) != 0,
        };
        // `10.0.0.1/8` is probably a mistake: either the address or the length is wrong.
        if host_bits {
            return Err("the address has bits set beyond its prefix length");
        }
        Ok(network)
    }
}

/// Parses a number written only with digits and without leading zeros.
pub(crate) fn decimal(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// Checks that a lower-case name is valid in DNS and accepted here.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("the host is empty");
    }
    if name.len() > 253 {
        return Err("the host's name is longer than 253 characters");
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err("the host's name has an empty label or ends in a dot");
        }
        if label.len() > 63 {
            return Err("a label of the host's name is longer than 63 characters");
        }
        if !label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')) {
            return Err("the host's name has characters other than letters, digits, '-', '_' and '.'");
        }
    }
    // Resolvers parse such names as addresses, each in its own way.
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") {
        return Err("the host's name ends in a number");
    }
    Ok(())
}

/// The error for an allow rule that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    rule: String,
    reason: &'static str,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allow rule {:?}: {}", self.rule, self.reason)
    }
}

impl std::error::Error for RuleError {}

impl FromStr for AllowRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        parse_rule(text).map_err(|reason| RuleError { rule: text.to_owned(), reason })
    }
}

fn parse_rule(text: &str) -> Result<AllowRule, &'static str> {
    if text.contains("://") {
        return Err("write the host without a scheme");
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']').ok_or("the bracket is not closed")?;
        let network = Network::parse(inside)?;
        if network.base.is_ipv4() {
            return Err("brackets are for IPv6 addresses");
        }
        let port = match after {
            "" => None,
            _ => Some(parse_port(after.strip_prefix(':').ok_or("only a port may follow the bracket")?)?),
        };
        return Ok(AllowRule { target: Target::Network(network), port });
    }
    // Several colons without brackets: an IPv6 address without a port.
    if text.matches(':').count() > 1 {
        let network = Network::parse(text).map_err(|reason| match reason {
            "not an IP address" => "not an IPv6 address; with a port it is written [address]:port",
            other => other,
        })?;
        return Ok(AllowRule { target: Target::Network(network), port: None });
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(parse_port(port)?)),
        None => (text, None),
    };
    if host.contains('/') || host.parse::<IpAddr>().is_ok() {
        return Ok(AllowRule { target: Target::Network(Network::parse(host)?), port });
    }
    let lower = host.to_ascii_lowercase();
    let (name, below) = match lower.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (lower.as_str(), false),
    };
    if name.contains('*') {
        return Err("a wildcard may only be the first label, with a name behind it");
    }
    check_name(name)?;
    Ok(AllowRule { target: Target::Name { name: name.to_owned(), below }, port })
}

fn parse_port(text: &str) -> Result<u16, &'static str> {
    decimal(text).filter(|port| *port != 0).ok_or("the port is not a number from 1 to 65535")
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Network(network) => {
                let brackets = network.base.is_ipv6() && self.port.is_some();
                if brackets {
                    f.write_str("[")?;
                }
                write!(f, "{}", network.base)?;
                if !network.is_single() {
                    write!(f, "/{}", network.prefix)?;
                }
                if brackets {
                    f.write_str("]")?;
                }
            }
            Target::Name { name, below } => write!(f, "{}{name}", if *below { "*." } else { "" })?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(rule: &str, name: Option<&str>, address: &str, port: u16) -> bool {
        Policy::allowing([rule]).unwrap().permits(name, address.parse().unwrap(), port)
    }

    #[test]
    fn rules_survive_printing() {
        for text in [
            "127.0.0.1:9000",
            "127.0.0.0/8",
            "[::1]:11434",
            "::1",
            "fd12::/16",
            "[fd12::/16]:80",
            "localhost",
            "*.internal.example:8080",
            "10.0.0.0/8:8080",
            "0.0.0.0/0",
            "::/0",
            "intranet",
            "a_b.example",
        ] {
            assert_eq!(text.parse::<AllowRule>().unwrap().to_string(), text);
        }
        assert_eq!("LOCALHOST".parse::<AllowRule>().unwrap().to_string(), "localhost");
        assert_eq!("[::1]".parse::<AllowRule>().unwrap().to_string(), "::1");
        assert_eq!("127.0.0.1/32".parse::<AllowRule>().unwrap().to_string(), "127.0.0.1");
    }

    #[test]
    fn bad_rules_say_why() {
        for (text, reason) in [
            ("", "empty"),
            ("*", "wildcard"),
            ("*.", "empty"),
            ("a.*.example", "wildcard"),
            ("x*.example", "wildcard"),
            ("http://localhost", "scheme"),
            ("localhost:", "port"),
            ("localhost:0", "port"),
            (":80", "empty"),
            ("localhost:65536", "port"),
            ("localhost:080", "port"),
            ("127.0.0.1:http", "port"),
            ("localhost.", "dot"),
            ("10.0.0.1/8", "bits"),
            ("10.0.0.0/33", "prefix"),
            ("10.0.0.0/", "prefix"),
            ("10.0.0.0/+8", "prefix"),
            ("10.0.0/8", "not an IP"),
            ("127.1", "number"),
            ("0x7f.1", "number"),
            ("2130706433", "number"),
            ("[::1", "bracket"),
            ("[::1]80", "bracket"),
            ("[127.0.0.1]:80", "IPv6"),
            ("::1:x", "[address]:port"),
            ("::ffff:127.0.0.1", "as IPv4"),
            ("fd00::/129", "prefix"),
            ("fd00::1/8", "bits"),
            ("a b", "characters"),
            ("a..b", "empty label"),
            (" localhost", "characters"),
            ("fe80::1%eth0", "not an IPv6"),
        ] {
            let error = text.parse::<AllowRule>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn networks_end_where_their_prefix_says() {
        assert!(permits("10.0.0.0/8", None, "10.255.255.255", 1));
        assert!(!permits("10.0.0.0/8", None, "192.168.0.1", 1));
        assert!(permits("192.168.4.0/23", None, "192.168.5.255", 1));
        assert!(!permits("192.168.4.0/23", None, "192.168.6.0", 1));
        assert!(permits("0.0.0.0/0", None, "127.0.0.1", 1));
        assert!(!permits("0.0.0.0/0", None, "::1", 1));
        assert!(permits("::/0", None, "::1", 1));
        assert!(permits("fd12::/16", None, "fd12:ffff::1", 1));
        assert!(!permits("fd12::/16", None, "fd13::1", 1));
        assert!(!permits("127.0.0.0/8", None, "::ffff:127.0.0.1", 1));
        assert!(permits("127.0.0.1:9000", Some("any.example"), "127.0.0.1", 9000));
        assert!(!permits("127.0.0.1:9000", None, "127.0.0.1", 9001));
        assert!(!permits("127.0.0.1:9000", None, "127.0.0.2", 9000));
    }

    #[test]
    fn names_match_whole_labels() {
        let inner = "10.0.0.1";
        assert!(permits("localhost", Some("localhost"), "127.0.0.1", 1));
        assert!(!permits("localhost", Some("xlocalhost"), "127.0.0.1", 1));
        assert!(!permits("localhost", Some("localhost.example"), "127.0.0.1", 1));
        assert!(!permits("localhost", None, "127.0.0.1", 1));
        assert!(permits("*.corp.example", Some("a.corp.example"), inner, 1));
        assert!(permits("*.corp.example", Some("a.b.corp.example"), inner, 1));
        assert!(!permits("*.corp.example", Some("corp.example"), inner, 1));
        assert!(!permits("*.corp.example", Some("evilcorp.example"), inner, 1));
        assert!(!permits("*.corp.example:80", Some("a.corp.example"), inner, 81));
    }

    #[test]
    fn metadata_needs_its_own_rule() {
        let metadata = "169.254.169.254";
        assert!(!permits("0.0.0.0/0", None, metadata, 80));
        assert!(!permits("169.254.0.0/16", None, metadata, 80));
        assert!(!permits("::/0", None, "::ffff:169.254.169.254", 80));
        assert!(!permits("*.example", Some("a.example"), metadata, 80));
        assert!(!permits("*.example", Some("a.example"), "0.0.0.0", 80));
        assert!(permits("169.254.169.254", None, metadata, 80));
        assert!(permits("169.254.0.0/16", None, "169.254.1.1", 80));
    }
}
