//! Types of the API: inbound webhooks.

use super::dedupe::Dedupe;
use super::mapping::Mapping;
use super::rows::{FAILURE_WINDOW_SECONDS, RateLimit, ResponseSettings, Status, WebhookRow};
use super::sample::{Preview, Sample, Sampled};
use super::verification::{NewVerification, Verification};
use auth::Seal;
use model::{InboundWebhookId, Metadata, Patch, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An inbound webhook: a URL of ours that outside systems post to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct InboundWebhook {
    /// The webhook.
    pub id: InboundWebhookId,
    /// Always `inbound_webhook`.
    pub object: &'static str,
    /// The workspace it belongs to.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Where to post. The last part is a secret: whoever has it may try.
    pub url: String,
    /// Until when the URL before the last rotation is taken too; `null` where it is not.
    pub previous_url_until: Option<Timestamp>,
    /// Whether it takes requests.
    pub status: Status,
    /// How it is checked who sends.
    pub verification: Verification,
    /// Addresses and networks that may send; all where the list is empty.
    pub allowed_ips: Vec<String>,
    /// How requests that come twice are told.
    pub dedupe: Dedupe,
    /// What is made of a request; `null` passes the body on as it is.
    pub mapping: Option<Mapping>,
    /// What the sender is answered.
    pub response: ResponseSettings,
    /// How fast requests may come.
    pub rate_limit: RateLimit,
    /// Whether `sample` describes what came in.
    pub capture: bool,
    /// While `capture` is on, and in the answer for one webhook: what the last requests look like, and a proposal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sampled>,
    /// In the answer to a dry run: what the mapping makes of the sample, or of the last requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Vec<Preview>>,
    /// Requests refused in a row of at most ten minutes for failing the verification.
    pub verification_failures: i64,
    /// Since when; `null` where none was refused lately.
    pub failing_since: Option<Timestamp>,
    /// Counts changes, from 1.
    pub version: i64,
    /// The caller's own notes.
    pub metadata: Metadata,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// An inbound webhook to be created.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInboundWebhook {
    /// Its name.
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub(super) name: String,
    /// For people.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub(super) description: Option<String>,
    /// `enabled` if not given.
    #[serde(default)]
    pub(super) status: Option<Status>,
    /// How it is checked who sends; nothing is checked if not given.
    #[serde(default)]
    pub(super) verification: Option<NewVerification>,
    /// Addresses and networks that may send; all if not given.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub(super) allowed_ips: Option<Vec<String>>,
    /// How requests that come twice are told; the preset's rule if not given.
    #[serde(default)]
    pub(super) dedupe: Option<Dedupe>,
    /// What is made of a request.
    #[serde(default)]
    pub(super) mapping: Option<Mapping>,
    /// What the sender is answered; `ack` if not given.
    #[serde(default)]
    pub(super) response: Option<ResponseSettings>,
    /// How fast requests may come; 60 per minute and 120 at once if not given.
    #[serde(default)]
    pub(super) rate_limit: Option<RateLimit>,
    /// Whether `sample` is to describe what comes in.
    #[serde(default)]
    pub(super) capture: Option<bool>,
    /// The caller's own notes.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
}

/// A change of an inbound webhook. Fields that are not sent stay as they are.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundWebhookPatch {
    /// Its name.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub(super) name: Option<String>,
    /// For people.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub(super) description: Option<String>,
    /// Whether it takes requests.
    #[serde(default)]
    pub(super) status: Option<Status>,
    /// How it is checked who sends. It replaces what is stored, but for secrets that are left out while the type stays.
    #[serde(default)]
    pub(super) verification: Option<NewVerification>,
    /// Addresses and networks that may send; an empty list lets all in.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub(super) allowed_ips: Option<Vec<String>>,
    /// How requests that come twice are told; `null` is the preset's rule.
    #[serde(default)]
    #[schema(value_type = Option<Dedupe>)]
    pub(super) dedupe: Patch<Dedupe>,
    /// What is made of a request; `null` passes the body on as it is.
    #[serde(default)]
    #[schema(value_type = Option<Mapping>)]
    pub(super) mapping: Patch<Mapping>,
    /// What the sender is answered.
    #[serde(default)]
    pub(super) response: Option<ResponseSettings>,
    /// How fast requests may come.
    #[serde(default)]
    pub(super) rate_limit: Option<RateLimit>,
    /// Whether `sample` is to describe what comes in.
    #[serde(default)]
    pub(super) capture: Option<bool>,
    /// The caller's own notes; replaces those that are stored.
    #[serde(default)]
    pub(super) metadata: Option<Metadata>,
    /// Maps the requests that have `failed` once more, with the mapping as it is after this change.
    #[serde(default)]
    pub(super) reprocess_failed: Option<bool>,
    /// With `dry_run=true`: what to try the mapping on, instead of the last requests.
    #[serde(default)]
    pub(super) sample: Option<Sample>,
    /// The version that the change was made for: 409 `version_conflict` where the webhook has another by now.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub(super) version: Option<i64>,
    /// The same as `version`, under its old name.
    #[serde(default)]
    #[schema(deprecated, minimum = 1)]
    pub(super) expected_version: Option<i64>,
}

/// How the URL is to be replaced.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRotation {
    /// How long the present URL goes on working, in seconds; 0 if not given, which ends it at once.
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
