//! Rows of inbound webhooks, with the settings that are stored in them.

use super::dedupe::Dedupe;
use super::mapping::Mapping;
use super::sealed::{SEALED, place};
use crate::schema::inbound_webhooks;
use crate::verify::request::is_header_name;
use crate::verify::verification::{Secrets, Verification};
use auth::Seal;
use diesel::prelude::*;
use ipnet::IpNet;
use model::{Error, FlowId, InboundWebhookId, JsonText, Random, Result, Timestamp, WorkspaceId, text_enum};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa::ToSchema;

text_enum! {
    /// The state of an inbound webhook.
    #[schema(as = InboundWebhookStatus)]
    pub enum Status {
        /// The URL accepts requests.
        Enabled = "enabled",
        /// The URL returns 410.
        Disabled = "disabled",
    }
}

/// The maximum rate of requests from all senders. Each replica of the service counts separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundRateLimit)]
#[schema(example = json!({ "per_minute": 60, "burst": 120 }))]
pub struct RateLimit {
    /// The sustained number of requests per minute.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub per_minute: i64,
    /// The number of requests that can arrive at once; twice `per_minute` if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub burst: Option<i64>,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { per_minute: 60, burst: Some(120) }
    }
}

impl RateLimit {
    /// The burst, given or not.
    pub(super) fn burst(self) -> i64 {
        self.burst.unwrap_or(self.per_minute.saturating_mul(2))
    }
}

text_enum! {
    /// The type of response to the sender.
    #[derive(Default)]
    #[schema(as = InboundResponseType)]
    pub enum ResponseKind {
        /// 202 with the id of the request, or 200 for a duplicate.
        #[default]
        Ack = "ack",
        /// The given status and body for every accepted request.
        Static = "static",
        /// The answer of a run of a flow: of its `respond` node, or its output.
        Flow = "flow",
    }
}

/// The response to the sender. It does not apply to rejected requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundResponse)]
pub struct ResponseSettings {
    /// The type of response.
    #[serde(rename = "type")]
    pub kind: ResponseKind,
    /// For `static`: the status; 200 if not given.
    #[serde(default)]
    #[schema(minimum = 200, maximum = 299)]
    pub status: Option<u16>,
    /// For `static`: the body; empty if not given.
    #[serde(default)]
    #[schema(max_length = 4096)]
    pub body: Option<String>,
    /// For `static`: the media type of the body; `text/plain; charset=utf-8` if not given.
    #[serde(default)]
    #[schema(max_length = 100)]
    pub content_type: Option<String>,
    /// For `flow`: the flow, which is published and active. Your key needs the scope `automations:execute`.
    #[serde(default)]
    pub flow_id: Option<FlowId>,
    /// For `flow`: how long a sender waits for the answer, in seconds; 25 if not given. A run that takes longer continues, and
    /// the sender gets 202.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 25)]
    pub timeout_seconds: Option<i64>,
}

impl ResponseSettings {
    /// Each field is sent where its type has it, and nowhere else.
    fn check_presence(&self) -> Result<()> {
        for (name, kind, is_given) in [
            ("status", ResponseKind::Static, self.status.is_some()),
            ("body", ResponseKind::Static, self.body.is_some()),
            ("content_type", ResponseKind::Static, self.content_type.is_some()),
            ("flow_id", ResponseKind::Flow, self.flow_id.is_some()),
            ("timeout_seconds", ResponseKind::Flow, self.timeout_seconds.is_some()),
        ] {
            if is_given && self.kind != kind {
                let rule = format!("is allowed only for `{}`", kind.as_str());
                return Err(Error::invalid(format!("response.{name}"), rule));
            }
        }
        if self.kind == ResponseKind::Flow && self.flow_id.is_none() {
            return Err(Error::invalid("response.flow_id", "is required for `flow`"));
        }
        Ok(())
    }
}

/// What callers set, beside name, status and notes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) description: String,
    pub(super) verification: Verification,
    pub(super) allowed_ips: Vec<String>,
    pub(super) dedupe: Option<Dedupe>,
    pub(super) mapping: Option<Mapping>,
    pub(super) response: ResponseSettings,
    pub(super) rate_limit: RateLimit,
    pub(super) capture: bool,
}

impl Settings {
    /// The rule in force: the one that was set, or the preset's.
    pub(super) fn dedupe(&self) -> Dedupe {
        self.dedupe.clone().unwrap_or_else(|| Dedupe::preset(self.verification.kind))
    }

    /// The networks that may send; empty where all may.
    pub(super) fn networks(&self) -> Result<Vec<IpNet>> {
        let network = |(place, text): (usize, &String)| {
            let rule = "must be an IP address or a network such as 203.0.113.0/24";
            read_network(text).ok_or_else(|| Error::invalid(format!("allowed_ips[{place}]"), rule))
        };
        self.allowed_ips.iter().enumerate().map(network).collect()
    }

    /// Everything that a schema cannot say.
    pub(super) fn check(&self) -> Result<()> {
        self.networks()?;
        self.dedupe().compile()?;
        if let Some(mapping) = &self.mapping {
            mapping.compile()?;
        }
        let response = &self.response;
        response.check_presence()?;
        let is_empty_by_nature = matches!(response.status, Some(204 | 205));
        if is_empty_by_nature && response.body.as_ref().is_some_and(|body| !body.is_empty()) {
            return Err(Error::invalid("response.body", "must be empty with this status"));
        }
        let content_type = response.content_type.as_deref();
        if content_type.is_some_and(|text| !is_content_type(text)) {
            return Err(Error::invalid("response.content_type", "is not a media type"));
        }
        Ok(())
    }
}

fn read_network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

fn is_content_type(text: &str) -> bool {
    let media = text.split(';').next().unwrap_or_default().trim();
    media.split_once('/').is_some_and(|(kind, sub)| is_header_name(kind) && is_header_name(sub))
        && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// An inbound webhook as it is stored.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = inbound_webhooks, primary_key(workspace_id, id), treat_none_as_null = true)]
pub(super) struct WebhookRow {
    pub(super) workspace_id: WorkspaceId,
    pub(super) id: InboundWebhookId,
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) token_hash: Vec<u8>,
    pub(super) sealed_token: String,
    pub(super) previous_token_hash: Option<Vec<u8>>,
    pub(super) previous_token_until: Option<Timestamp>,
    pub(super) settings: JsonText,
    pub(super) sealed_secrets: Option<String>,
    pub(super) metadata: JsonText,
    pub(super) version: i64,
    #[diesel(skip_update)]
    pub(super) failures: i64,
    #[diesel(skip_update)]
    pub(super) failing_since: Option<Timestamp>,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

operation::resource! {
    WebhookRow, inbound_webhooks, InboundWebhookId, "inbound webhook";
    at most 100 "inbound webhooks per workspace";
}

/// After this many seconds without a refusal of the row that `verification_failures` counts, it is forgotten.
pub(super) const FAILURE_WINDOW_SECONDS: i64 = 600;

/// Seals a token for its webhook.
pub(super) fn seal_token(
    seal: &Seal,
    workspace: WorkspaceId,
    id: &InboundWebhookId,
    token: &str,
    random: &dyn Random,
) -> Result<String> {
    seal.seal(&SEALED, &place(workspace, id, "token"), token, random)
}

/// Seals the secrets of a webhook; `None` where there are none.
pub(super) fn seal_secrets(
    seal: &Seal,
    workspace: WorkspaceId,
    id: &InboundWebhookId,
    secrets: &Secrets,
    random: &dyn Random,
) -> Result<Option<String>> {
    if *secrets == Secrets::default() {
        return Ok(None);
    }
    let text = serde_json::to_string(secrets).map_err(Error::internal)?;
    seal.seal(&SEALED, &place(workspace, id, "secrets"), &text, random).map(Some)
}

impl WebhookRow {
    pub(super) fn settings(&self) -> Result<Settings> {
        self.settings.parse()
    }

    pub(super) fn secrets(&self, seal: &Seal) -> Result<Secrets> {
        let Some(sealed) = &self.sealed_secrets else { return Ok(Secrets::default()) };
        let text = seal.open(&place(self.workspace_id, &self.id, "secrets"), sealed)?;
        serde_json::from_str(&text).map_err(Error::internal)
    }

    /// The secret part of its URL.
    pub(super) fn token(&self, seal: &Seal) -> Result<String> {
        seal.open(&place(self.workspace_id, &self.id, "token"), &self.sealed_token)
    }
}
