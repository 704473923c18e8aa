//! Whom a function may call over HTTP, and what its calls were.

use model::text_enum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
