//! Errors of outbound requests, with texts that may be shown to the tenant who wrote the URL.
//!
//! No variant carries external text: all reasons are constants, so a response cannot leak a resolved address, the
//! names of a certificate or bytes of a peer.

use std::error::Error as StdError;
use std::{fmt, io};

/// The timeout reason of a request that never had a connection.
pub(crate) const NO_CONNECTION: &str = "no connection in time";

/// The reason why there is no complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The URL is malformed, or has a form that is never accepted.
    InvalidUrl {
        /// The problem with the URL.
        reason: &'static str,
    },
    /// The method or a header is not allowed.
    InvalidRequest {
        /// The problem with the request.
        reason: &'static str,
    },
    /// The URL is well formed, but its scheme, port or address is not allowed.
    Forbidden {
        /// The violated rule; never the address.
        reason: &'static str,
    },
    /// The name has no address, or the lookup failed.
    Resolve,
    /// No address accepted a TCP connection.
    Connect {
        /// The result of the last attempt.
        reason: &'static str,
    },
    /// A time limit of [`Limits`](crate::Limits) was exceeded.
    Timeout {
        /// The exceeded limit.
        reason: &'static str,
    },
    /// The body exceeds the caller's limit, or the headers exceed the connector's.
    TooLarge {
        /// The part that is too large.
        reason: &'static str,
    },
    /// There were more redirects than the caller's limit.
    TooManyRedirects,
    /// The TLS handshake failed, or the certificate is not valid for the host.
    Tls {
        /// The problem.
        reason: &'static str,
    },
    /// The peer violates HTTP or closed the connection early.
    Http {
        /// The problem.
        reason: &'static str,
    },
    /// The [`Policy`](crate::Policy) is invalid.
    Config {
        /// The problem with the policy.
        reason: &'static str,
    },
}

impl Error {
    /// Returns whether the connector itself refused the request. A retry is useless until the URL, request or policy
    /// changes.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::InvalidUrl { .. } | Self::InvalidRequest { .. } | Self::Forbidden { .. })
    }

    /// Returns whether the peer may have received the request.
    pub fn is_sent(&self) -> bool {
        let unsent =
            matches!(self, Self::Resolve | Self::Connect { .. } | Self::Tls { .. } | Self::Config { .. });
        !unsent && !self.is_refusal() && *self != Self::Timeout { reason: NO_CONNECTION }
    }

    /// Returns the kind as one word, for metrics and traces.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } | Self::InvalidRequest { .. } => "invalid",
            Self::Forbidden { .. } => "forbidden",
            Self::Resolve => "resolve",
            Self::Connect { .. } => "connect",
            Self::Timeout { .. } => "timeout",
            Self::TooLarge { .. } => "too_large",
            Self::TooManyRedirects => "redirects",
            Self::Tls { .. } => "tls",
            Self::Http { .. } => "http",
            Self::Config { .. } => "config",
        }
    }

    /// Extracts the reason from the client's error chain.
    pub(crate) fn from_client(error: &hyper_util::client::legacy::Error) -> Self {
        let mut cause = error.source();
        while let Some(inner) = cause {
            if let Some(own) = inner.downcast_ref::<Self>() {
                return *own;
            }
            if let Some(http) = inner.downcast_ref::<hyper::Error>() {
                return Self::from_http(http);
            }
            if let Some(io) = inner.downcast_ref::<io::Error>()
                && let Some(tls) = tls_error(io)
            {
                return Self::from_tls(tls);
            }
            cause = inner.source();
        }
        if error.is_connect() {
            // TCP failures carry an error of this crate, so any other connect error happened during the TLS
            // handshake.
            return Self::Tls { reason: "the handshake was not completed" };
        }
        Self::Http { reason: "the connection failed" }
    }

    /// Classifies an error of the HTTP exchange or of the response's body.
    pub(crate) fn from_http(error: &hyper::Error) -> Self {
        if error.is_parse_too_large() {
            Self::TooLarge { reason: "the response's headers are too large" }
        } else if error.is_parse() {
            Self::Http { reason: "the response is not valid HTTP" }
        } else {
            Self::Http { reason: "the connection was closed before the response was complete" }
        }
    }

    /// Classifies a TCP failure and drops the address.
    pub(crate) fn from_connect(error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::ConnectionRefused => "the connection was refused",
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => "the connection was reset",
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "the host is unreachable",
            io::ErrorKind::TimedOut => "the host did not answer",
            _ => "the connection failed",
        };
        Self::Connect { reason }
    }

    fn from_tls(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Bad;
        let reason = match error {
            rustls::Error::InvalidCertificate(bad) => match bad {
                Bad::Expired | Bad::ExpiredContext { .. } => "the certificate has expired",
                Bad::NotValidYet | Bad::NotValidYetContext { .. } => "the certificate is not valid yet",
                Bad::UnknownIssuer => "the certificate's issuer is not trusted",
                Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                    "the certificate is for another host"
                }
                _ => "the certificate is not valid",
            },
            rustls::Error::AlertReceived(_) => "the server refused the handshake",
            _ => "the handshake failed",
        };
        Self::Tls { reason }
    }
}

/// Finds the TLS error. `io::Error::source` skips the wrapped error itself, so this uses `get_ref`.
fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    match inner.downcast_ref::<rustls::Error>() {
        Some(tls) => Some(tls),
        None => tls_error(inner.downcast_ref::<io::Error>()?),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUrl { reason } => write!(f, "invalid URL: {reason}"),
            Self::InvalidRequest { reason } => write!(f, "invalid request: {reason}"),
            Self::Forbidden { reason } => f.write_str(reason),
            Self::Resolve => f.write_str("the host's name could not be resolved"),
            Self::Connect { reason } => write!(f, "could not connect: {reason}"),
            Self::Timeout { reason } => write!(f, "timed out: {reason}"),
            Self::TooLarge { reason } => write!(f, "response too large: {reason}"),
            Self::TooManyRedirects => f.write_str("too many redirects"),
            Self::Tls { reason } => write!(f, "TLS failed: {reason}"),
            Self::Http { reason } => write!(f, "HTTP failed: {reason}"),
            Self::Config { reason } => write!(f, "invalid connector settings: {reason}"),
        }
    }
}

impl StdError for Error {}
