//! The connector through which all outbound HTTP of the product goes.
//!
//! Tenants write the targets, so every request is treated as hostile until it has been checked:
//!
//! 1. The URL is parsed strictly ([`UrlRules`]): `http` or `https`, no user info, no unusual spellings of addresses.
//! 2. The name is resolved once, by a [`Resolver`]. The request is refused if *any* address is neither globally
//!    reachable nor allowed by the operator ([`Policy`]).
//! 3. The connection goes only to the checked addresses, so a DNS answer that changes later (DNS rebinding) has no
//!    effect. Name and port are kept for `Host`, SNI and the verification of the certificate.
//! 4. The connector follows redirects itself. Each hop starts at step 1, and the caller limits their number.
//!
//! Connections are pooled by scheme, host and port. That is safe, because each was opened by step 3 under the same
//! immutable policy.
//!
//! Retries, signatures, JSON and rules about a caller's headers beyond those of HTTP belong to the callers. There are
//! no cookies and no proxies; the environment is never read. Requests ask for uncompressed bodies. If a body is
//! compressed anyway (`gzip`, `deflate`), it is decoded within the caller's limit, unless [`Limits::decode`] is off.
//!
//! The tokio runtime that opened a connection drives it. A [`Connector`] may be shared between runtimes; when a
//! runtime ends, its pooled connections end too.

mod address;
pub mod charset;
mod coding;
mod connector;
mod dial;
mod error;
mod message;
mod policy;
mod redirect;
mod retry;
mod url_rules;

pub use connector::Connector;
pub use dial::{Resolver, SystemResolver};
pub use error::Error;
pub use http::{HeaderMap, HeaderName, HeaderValue, Method};
pub use message::{Limits, Oversize, Request, Response, Streaming, frames_message};
pub use policy::{AllowRule, Policy, RuleError};
pub use retry::retry_after;
pub use url::Url;
pub use url_rules::{Ports, UrlRules};
