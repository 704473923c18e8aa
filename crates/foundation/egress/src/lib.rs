//! The one guarded connector through which all outbound HTTP of the product goes.
//!
//! Targets are written by tenants, so every request is treated as hostile until it has been checked:
//!
//! 1. The URL is parsed strictly ([`UrlRules`]): `http` or `https`, no user info, no odd spellings of addresses.
//! 2. The name is resolved once, through a [`Resolver`], and the request is refused if *any* address is not
//!    globally reachable and not on the operator's list ([`Policy`]).
//! 3. The connection goes to the checked addresses and to no others, so an answer that changes later (DNS
//!    rebinding) has no effect. Name and port are kept for `Host`, SNI and the certificate's check.
//! 4. Redirects are followed by hand, each hop from step 1, and only as far as the caller asks.
//!
//! Connections are pooled per scheme, host and port. That is safe, because each pooled connection was made by
//! step 3 under the same, unchangeable policy.
//!
//! Not here: retries, signing, what a caller may set as headers beyond HTTP's own rules, JSON. There are no
//! cookies and no proxies (the environment is never read). Requests ask for bodies that are not compressed; one that is
//! compressed all the same (`gzip`, `deflate`) is decoded within the caller's limit, unless [`Limits::decode`] is off.
//!
//! A connection is driven by the tokio runtime that opened it. A [`Connector`] may be shared between runtimes;
//! when one of them ends, its pooled connections end with it.

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
