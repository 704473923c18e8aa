//! What an inbound webhook is.

use super::dedupe::Dedupe;
use super::mapping::Mapping;
use super::sample::{Preview, Sample, Sampled};
use super::verification::{NewVerification, Secrets, Verification, is_header_name};
use auth::Seal;
use ipnet::IpNet;
use model::{
    Error, InboundWebhookId, JsonText, Metadata, Patch, Random, Result, Timestamp, WorkspaceId, text_enum,
};
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
        if response.kind == ResponseKind::Ack {
            for (name, given) in [
                ("status", response.status.is_some()),
                ("body", response.body.is_some()),
                ("content_type", response.content_type.is_some()),
            ] {
                if given {
                    return Err(Error::invalid(format!("response.{name}"), "is allowed only for `static`"));
                }
            }
        }
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

/// An inbound webhook: a URL that receives requests from other systems.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Shop orders", "description": "Orders from our shop.",
    "url": "https://example.com/hooks/jPJvybxRdeltYzNYwk8idRrztJkbUOhn", "allowed_ips": [],
    "verification_failures": 0, "version": 1,
}))]
pub struct InboundWebhook {
    /// The id of the webhook.
    pub id: InboundWebhookId,
    /// Always `inbound_webhook`.
    pub object: &'static str,
    /// The id of the workspace.
    pub workspace_id: WorkspaceId,
    /// The name.
    pub name: String,
    /// A description for people.
    pub description: String,
    /// The URL to post to. Its last part is a secret.
    pub url: String,
    /// Until when the previous URL is accepted after a rotation. `null` if it is not.
    pub previous_url_until: Option<Timestamp>,
    /// The state of the webhook.
    pub status: Status,
    /// How senders are verified.
    pub verification: Verification,
    /// Addresses and networks that may send requests. All if the list is empty.
    pub allowed_ips: Vec<String>,
    /// How duplicate requests are detected.
    pub dedupe: Dedupe,
    /// How requests are mapped. `null` passes the body on unchanged.
    pub mapping: Option<Mapping>,
    /// The type of response to the sender.
    pub response: ResponseSettings,
    /// The maximum rate of requests.
    pub rate_limit: RateLimit,
    /// Whether received requests are analysed for `sample`.
    pub capture: bool,
    /// What recent requests look like, with a suggested mapping. Only while `capture` is on and when a single webhook
    /// is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sampled>,
    /// The result of the mapping. Only for a dry run.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Vec<Preview>>,
    /// The number of consecutive requests that failed verification within the last ten minutes.
    pub verification_failures: i64,
    /// Since when requests have failed verification. `null` if none failed recently.
    pub failing_since: Option<Timestamp>,
    /// The version, incremented with every change.
    pub version: i64,
    /// Your own key-value data.
    pub metadata: Metadata,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// An inbound webhook to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Shop orders",
    "verification": { "type": "shopify", "secrets": ["the secret that Shopify shows"] },
}))]
pub struct NewInboundWebhook {
    /// The name.
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub(super) name: String,
    /// A description for people.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub(super) description: Option<String>,
    /// The state; `enabled` if not given.
    #[serde(default)]
    pub(super) status: Option<Status>,
    /// How senders are verified; not at all if not given.
    #[serde(default)]
    pub(super) verification: Option<NewVerification>,
    /// Addresses and networks that may send requests; all if not given.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub(super) allowed_ips: Option<Vec<String>>,
    /// How duplicate requests are detected; the rule of the verification type if not given.
    #[serde(default)]
    pub(super) dedupe: Option<Dedupe>,
    /// How requests are mapped.
    #[serde(default)]
    pub(super) mapping: Option<Mapping>,
    /// The response to senders; `ack` if not given.
    #[serde(default)]
    pub(super) response: Option<ResponseSettings>,
    /// The maximum rate of requests; 60 per minute and 120 at once if not given.
    #[serde(default)]
    pub(super) rate_limit: Option<RateLimit>,
    /// Whether to analyse received requests for `sample`.
    #[serde(default)]
    pub(super) capture: Option<bool>,
    /// Your own key-value data.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
}

/// A change of an inbound webhook. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "description": "Orders from our shop." }))]
pub struct InboundWebhookPatch {
    /// The name.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub(super) name: Option<String>,
    /// A description for people.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub(super) description: Option<String>,
    /// The state of the webhook.
    #[serde(default)]
    pub(super) status: Option<Status>,
    /// How senders are verified. Replaces the stored settings. Secrets that are not sent are kept if the type stays the
    /// same.
    #[serde(default)]
    pub(super) verification: Option<NewVerification>,
    /// Addresses and networks that may send requests. An empty list allows all.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub(super) allowed_ips: Option<Vec<String>>,
    /// How duplicate requests are detected. `null` uses the rule of the verification type.
    #[serde(default)]
    #[schema(value_type = Option<Dedupe>)]
    pub(super) dedupe: Patch<Dedupe>,
    /// How requests are mapped. `null` passes the body on unchanged.
    #[serde(default)]
    #[schema(value_type = Option<Mapping>)]
    pub(super) mapping: Patch<Mapping>,
    /// The type of response to the sender.
    #[serde(default)]
    pub(super) response: Option<ResponseSettings>,
    /// The maximum rate of requests.
    #[serde(default)]
    pub(super) rate_limit: Option<RateLimit>,
    /// Whether to analyse received requests for `sample`.
    #[serde(default)]
    pub(super) capture: Option<bool>,
    /// Your own key-value data. Replaces the stored metadata.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
    /// Whether to map the `failed` requests once more, with the mapping after this change.
    #[serde(default)]
    pub(super) reprocess_failed: Option<bool>,
    /// With `dry_run=true`: a request to test the mapping with, instead of the recent requests.
    #[serde(default)]
    pub(super) sample: Option<Sample>,
    /// The expected version. If the webhook has another version, the request is rejected with 409 `version_conflict`.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub(super) version: Option<i64>,
    /// Deprecated name of `version`.
    #[serde(default)]
    #[schema(deprecated, minimum = 1)]
    pub(super) expected_version: Option<i64>,
}

/// How to replace the URL.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "overlap_seconds": 3600 }))]
pub struct TokenRotation {
    /// How long the previous URL is accepted, in seconds; 0 if not given.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 604_800)]
    pub(super) overlap_seconds: Option<i64>,
}

/// An inbound webhook as it is stored.
#[derive(Debug, Clone, diesel::Queryable)]
pub(super) struct Row {
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
    failures: i64,
    failing_since: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// After this many seconds without a refusal of the row that `verification_failures` counts, it is forgotten.
pub(super) const FAILURE_WINDOW_SECONDS: i64 = 600;

/// What sealed things of a webhook are bound to.
fn place(workspace: WorkspaceId, id: &InboundWebhookId, what: &str) -> String {
    format!("inbound_webhook:{workspace}:{id}:{what}")
}

/// Seals a token for its webhook.
pub(super) fn seal_token(
    seal: &Seal,
    workspace: WorkspaceId,
    id: &InboundWebhookId,
    token: &str,
    random: &dyn Random,
) -> Result<String> {
    seal.seal(&place(workspace, id, "token"), token, random)
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
    seal.seal(&place(workspace, id, "secrets"), &text, random).map(Some)
}

impl Row {
    pub(super) fn settings(&self) -> Result<Settings> {
        self.settings.parse()
    }

    pub(super) fn secrets(&self, seal: &Seal) -> Result<Secrets> {
        let Some(sealed) = &self.sealed_secrets else { return Ok(Secrets::default()) };
        let text = seal.open(&place(self.workspace_id, &self.id, "secrets"), sealed)?;
        serde_json::from_str(&text).map_err(Error::internal)
    }

    /// As callers see it. `url_of` makes the URL of a token.
    pub(super) fn show(
        self,
        seal: &Seal,
        url_of: impl Fn(&str) -> String,
        now: Timestamp,
    ) -> Result<InboundWebhook> {
        let token = seal.open(&place(self.workspace_id, &self.id, "token"), &self.sealed_token)?;
        let settings = self.settings()?;
        let lately = now.plus_seconds(-FAILURE_WINDOW_SECONDS);
        let failing_since = self.failing_since.filter(|since| *since > lately);
        Ok(InboundWebhook {
            object: "inbound_webhook",
            workspace_id: self.workspace_id,
            status: self.status,
            url: url_of(&token),
            previous_url_until: self.previous_token_until.filter(|until| *until > now),
            dedupe: settings.dedupe(),
            description: settings.description,
            verification: settings.verification,
            allowed_ips: settings.allowed_ips,
            mapping: settings.mapping,
            response: settings.response,
            rate_limit: RateLimit { burst: Some(settings.rate_limit.burst()), ..settings.rate_limit },
            capture: settings.capture,
            sample: None,
            preview: None,
            verification_failures: failing_since.map_or(0, |_| self.failures),
            failing_since,
            version: self.version,
            metadata: self.metadata.parse()?,
            created_at: self.created_at,
            updated_at: self.updated_at,
            name: self.name,
            id: self.id,
        })
    }
}
