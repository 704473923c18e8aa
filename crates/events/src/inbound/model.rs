//! What an inbound webhook is.

use super::dedupe::Dedupe;
use super::mapping::Mapping;
use super::sample::{Preview, Sample, Sampled};
use super::sealed::{SEALED, place};
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
    /// Whether an inbound webhook takes requests.
    #[schema(as = InboundWebhookStatus)]
    pub enum Status {
        /// It does.
        Enabled = "enabled",
        /// Its URL answers 410.
        Disabled = "disabled",
    }
}

/// How fast requests may come, over all senders. Each replica of the service counts for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundRateLimit)]
pub struct RateLimit {
    /// Requests per minute in the long run.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub per_minute: i64,
    /// Requests that may come at once; twice `per_minute` if not given.
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
    /// What the sender is answered.
    #[derive(Default)]
    #[schema(as = InboundResponseType)]
    pub enum ResponseKind {
        /// 202 with the request's id; 200 for a request that came before.
        #[default]
        Ack = "ack",
        /// The status and body given here, for every request that is taken.
        Static = "static",
    }
}

/// What the sender is answered. Refusals are not changed by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InboundResponse)]
pub struct ResponseSettings {
    /// The kind of answer.
    #[serde(rename = "type")]
    pub kind: ResponseKind,
    /// `static`: the status; 200 if not given.
    #[serde(default)]
    #[schema(minimum = 200, maximum = 299)]
    pub status: Option<u16>,
    /// `static`: the body; empty if not given.
    #[serde(default)]
    #[schema(max_length = 4096)]
    pub body: Option<String>,
    /// `static`: the body's type; `text/plain; charset=utf-8` if not given.
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
            let rule = "must be an address or a network such as 203.0.113.0/24";
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
                    return Err(Error::invalid(format!("response.{name}"), "is only for `static`"));
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
