//! Types of the API: inbound webhooks.

use super::dedupe::Dedupe;
use super::mapping::Mapping;
use super::rows::{FAILURE_WINDOW_SECONDS, RateLimit, ResponseSettings, Status, WebhookRow};
use super::sample::{Preview, Sample, Sampled};
use crate::verify::verification::{NewVerification, Verification};
use auth::Seal;
use model::{InboundWebhookId, Metadata, Patch, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// The response to the sender.
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
    /// The response to the sender.
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

impl InboundWebhook {
    /// A stored webhook as callers see it. `url_of` makes the URL of a token.
    pub(super) fn of(
        row: WebhookRow,
        seal: &Seal,
        url_of: impl Fn(&str) -> String,
        now: Timestamp,
    ) -> Result<Self> {
        let token = row.token(seal)?;
        let settings = row.settings()?;
        let lately = now.plus_seconds(-FAILURE_WINDOW_SECONDS);
        let failing_since = row.failing_since.filter(|since| *since > lately);
        Ok(Self {
            object: "inbound_webhook",
            workspace_id: row.workspace_id,
            status: row.status,
            url: url_of(&token),
            previous_url_until: row.previous_token_until.filter(|until| *until > now),
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
            verification_failures: failing_since.map_or(0, |_| row.failures),
            failing_since,
            version: row.version,
            metadata: row.metadata.parse()?,
            created_at: row.created_at,
            updated_at: row.updated_at,
            name: row.name,
            id: row.id,
        })
    }
}
