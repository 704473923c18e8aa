//! Types of the API: webhook endpoints.

use super::filter::Filter;
use crate::schema::webhook_endpoints;
use diesel::prelude::*;
use model::{JsonText, Metadata, Patch, Result, Timestamp, WebhookEndpointId, WorkspaceId, text_enum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

text_enum! {
    /// The state of an endpoint.
    pub enum EndpointStatus {
        /// The endpoint receives deliveries.
        Enabled = "enabled",
        /// The endpoint receives no deliveries.
        Disabled = "disabled",
    }
}

text_enum! {
    /// Why an endpoint is disabled.
    pub enum DisabledReason {
        /// It was disabled by a request.
        Manual = "manual",
        /// Deliveries failed for five days.
        Failing = "failing",
        /// It returned 410.
        Gone = "gone",
        /// The key of the subscription was revoked, expired or lost a required scope, or the workspace was blocked.
        ScopeLost = "scope_lost",
    }
}

text_enum! {
    /// How much of an event is sent.
    pub enum Payload {
        /// The whole event, up to 64 KB.
        Full = "full",
        /// Only the ids in the data, and `app_url`.
        Thin = "thin",
    }
}

text_enum! {
    /// The order of deliveries to an endpoint.
    pub enum Ordering {
        /// No order: up to 10 deliveries at a time.
        None = "none",
        /// In order for each object (contact, item, run).
        PerEntity = "per_entity",
        /// In order for the whole endpoint.
        Strict = "strict",
    }
}

text_enum! {
    /// How deliveries are signed.
    pub enum SignatureScheme {
        /// HMAC-SHA256 with a shared secret: `v1,…`.
        Hmac = "hmac",
        /// Ed25519 with the key pair whose public key the endpoint shows: `v1a,…`.
        Ed25519 = "ed25519",
    }
}

/// An HTTPS endpoint that is subscribed to events.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "url": "https://example.com/webhooks", "enabled_events": ["run.completed", "item.*"], "headers": [],
    "api_version": "v1", "version": 1,
}))]
pub struct WebhookEndpoint {
    /// The id of the endpoint.
    pub id: WebhookEndpointId,
    /// Always `webhook_endpoint`.
    pub object: &'static str,
    /// The id of the workspace.
    pub workspace_id: WorkspaceId,
    /// The URL that events are posted to.
    pub url: String,
    /// The subscribed types of events: names, patterns such as `contact.*`, or `*` for all.
    pub enabled_events: Vec<String>,
    /// A description for people.
    pub description: Option<String>,
    /// The state of the endpoint.
    pub status: EndpointStatus,
    /// Why the endpoint is disabled, or `null`.
    pub disabled_reason: Option<DisabledReason>,
    /// Conditions that an event must meet to be sent, or `null`.
    #[schema(value_type = Option<Object>)]
    pub filter: Option<Filter>,
    /// How much of an event is sent.
    pub payload: Payload,
    /// The order of deliveries.
    pub ordering: Ordering,
    /// The maximum number of deliveries per second, or `null`.
    pub rate_limit_per_second: Option<i64>,
    /// The names of the additional headers. Their values are not returned.
    pub headers: Vec<String>,
    /// The version of the event format.
    pub api_version: &'static str,
    /// How deliveries are signed.
    pub signature_scheme: SignatureScheme,
    /// For `ed25519`: the public key (`whpk_…`). Otherwise `null`.
    pub public_key: Option<String>,
    /// Until when deliveries are also signed with the previous secret, or `null`.
    pub previous_secret_expires_at: Option<Timestamp>,
    /// Since when all deliveries have failed, or `null`.
    pub failing_since: Option<Timestamp>,
    /// After five failed attempts in a row: until when only a single probe is sent. Otherwise `null`.
    pub paused_until: Option<Timestamp>,
    /// The share of attempts in the last 24 hours that succeeded, from 0 to 1. `null` if there were none.
    pub success_rate_24h: Option<f64>,
    /// Your own key-value data.
    pub metadata: Metadata,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the endpoint was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// An endpoint with its secret, which is shown only once.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "secret": "whsec_ZXhhbXBsZSBvZiBhIHNlY3JldCwgbm90IGEgcmVhbCBvbmU=" }))]
pub struct WebhookEndpointWithSecret {
    /// The endpoint.
    #[serde(flatten)]
    pub endpoint: WebhookEndpoint,
    /// The secret for verifying signatures: `whsec_` and base64. `null` for `ed25519`, which uses `public_key`.
    pub secret: Option<String>,
}

/// Headers that go along with every delivery: at most 10, values up to 1,024 characters.
pub type Headers = BTreeMap<String, String>;

/// An endpoint to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "url": "https://example.com/webhooks", "enabled_events": ["run.completed", "item.*"] }))]
pub struct NewWebhookEndpoint {
    /// The URL to post to: `https`, on port 443 or 8443.
    #[schema(min_length = 1, max_length = 2048)]
    pub url: String,
    /// The types of events to subscribe to: names, patterns such as `contact.*`, or `*` for all events that the key has
    /// access to.
    #[schema(min_items = 1, max_items = 100)]
    pub enabled_events: Vec<String>,
    /// A description for people.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub description: Option<String>,
    /// The state; `enabled` if not given.
    #[serde(default)]
    #[schema(nullable = false)]
    pub status: Option<EndpointStatus>,
    /// Conditions that an event must meet to be sent.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub filter: Option<Filter>,
    /// How much of an event is sent; `full` if not given.
    #[serde(default)]
    #[schema(nullable = false)]
    pub payload: Option<Payload>,
    /// The order of deliveries; `none` if not given.
    #[serde(default)]
    #[schema(nullable = false)]
    pub ordering: Option<Ordering>,
    /// The maximum number of deliveries per second.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100)]
    pub rate_limit_per_second: Option<i64>,
    /// Additional headers, at most 10.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub headers: Option<Headers>,
    /// How deliveries are signed; `hmac` if not given. It cannot be changed later.
    #[serde(default)]
    #[schema(nullable = false)]
    pub signature_scheme: Option<SignatureScheme>,
    /// Your own key-value data.
    #[serde(default)]
    #[schema(nullable = false)]
    pub metadata: Option<Metadata>,
}

/// A change of an endpoint. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "enabled_events": ["run.*"], "description": "Runs of our agents" }))]
pub struct WebhookEndpointPatch {
    /// The URL to post to.
    #[serde(default)]
    #[schema(nullable = false, min_length = 1, max_length = 2048)]
    pub url: Option<String>,
    /// All types of events to subscribe to from now on. The subscription then depends on the scopes of the key of this
    /// request.
    #[serde(default)]
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    pub enabled_events: Option<Vec<String>>,
    /// A description for people.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 500)]
    pub description: Patch<String>,
    /// The state. Events that occur while the endpoint is disabled are sent only by a replay.
    #[serde(default)]
    #[schema(nullable = false)]
    pub status: Option<EndpointStatus>,
    /// Conditions that an event must meet to be sent.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub filter: Patch<Filter>,
    /// How much of an event is sent.
    #[serde(default)]
    #[schema(nullable = false)]
    pub payload: Option<Payload>,
    /// The order of deliveries, for future events.
    #[serde(default)]
    #[schema(nullable = false)]
    pub ordering: Option<Ordering>,
    /// The maximum number of deliveries per second.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 100)]
    pub rate_limit_per_second: Patch<i64>,
    /// All additional headers, for future deliveries.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub headers: Option<Headers>,
    /// Your own key-value data. Replaces the stored metadata.
    #[serde(default)]
    #[schema(nullable = false)]
    pub metadata: Option<Metadata>,
    /// The expected version. If the endpoint has another version, the request is rejected with 409 `version_conflict`.
    #[serde(default)]
    #[schema(nullable = false, minimum = 1)]
    pub version: Option<i64>,
    /// Deprecated name of `version`.
    #[serde(default)]
    #[schema(deprecated, nullable = false, minimum = 1)]
    pub expected_version: Option<i64>,
}

text_enum! {
    /// Whether an endpoint is delivered to, as it is stored.
    pub(crate) enum StoredStatus {
        Enabled = "enabled",
        Disabled = "disabled",
        /// Its row is kept for the deliveries that name it.
        Deleted = "deleted",
    }
}

impl From<EndpointStatus> for StoredStatus {
    fn from(status: EndpointStatus) -> Self {
        match status {
            EndpointStatus::Enabled => Self::Enabled,
            EndpointStatus::Disabled => Self::Disabled,
        }
    }
}

/// A row of `webhook_endpoints`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = webhook_endpoints, treat_none_as_null = true)]
pub(crate) struct EndpointRow {
    pub(crate) id: WebhookEndpointId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) url: String,
    pub(crate) enabled_events: JsonText,
    pub(crate) description: Option<String>,
    pub(crate) status: StoredStatus,
    pub(crate) disabled_reason: Option<DisabledReason>,
    pub(crate) filter: Option<JsonText>,
    pub(crate) payload: Payload,
    pub(crate) ordering: Ordering,
    pub(crate) rate_limit_per_second: Option<i64>,
    /// Sealed, because headers carry credentials.
    pub(crate) headers: String,
    pub(crate) signature_scheme: SignatureScheme,
    /// Sealed.
    pub(crate) secret: String,
    pub(crate) public_key: Option<String>,
    /// Sealed.
    pub(crate) previous_secret: Option<String>,
    pub(crate) previous_until: Option<Timestamp>,
    /// The lineage of the key that stands behind the subscription.
    pub(crate) key_id: model::KeyId,
    pub(crate) version: i64,
    pub(crate) metadata: JsonText,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

operation::resource! {
    EndpointRow, webhook_endpoints, WebhookEndpointId, "webhook endpoint";
    at most 20 "webhook endpoints per workspace";
    live: webhook_endpoints::status.ne(StoredStatus::Deleted);
}

impl EndpointRow {
    pub(crate) fn is_enabled(&self) -> bool {
        self.status == StoredStatus::Enabled
    }

    pub(crate) fn enabled_events(&self) -> Result<Vec<String>> {
        self.enabled_events.parse()
    }

    pub(crate) fn filter(&self) -> Result<Option<Filter>> {
        self.filter.as_ref().map(JsonText::parse).transpose()
    }
}
