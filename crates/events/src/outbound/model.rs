//! Types of the API: webhook endpoints.

use super::filter::Filter;
use model::{JsonText, Metadata, Patch, Result, Timestamp, WebhookEndpointId, WorkspaceId, text_enum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

text_enum! {
    /// Whether an endpoint is delivered to.
    pub enum EndpointStatus {
        /// It is.
        Enabled = "enabled",
        /// It is not.
        Disabled = "disabled",
    }
}

text_enum! {
    /// Why an endpoint is not delivered to.
    pub enum DisabledReason {
        /// Somebody switched it off.
        Manual = "manual",
        /// It failed for five days.
        Failing = "failing",
        /// It answered 410.
        Gone = "gone",
        /// The key behind it was revoked, expired or lost a scope that it needs, or the workspace was blocked.
        ScopeLost = "scope_lost",
    }
}

text_enum! {
    /// How much of an event is sent.
    pub enum Payload {
        /// All of it, up to 64 KB.
        Full = "full",
        /// The ids in its data, and `app_url`.
        Thin = "thin",
    }
}

text_enum! {
    /// In which order an endpoint gets its events.
    pub enum Ordering {
        /// As they come, up to 10 at a time.
        None = "none",
        /// Those about one object (contact, item, run) one after another.
        PerEntity = "per_entity",
        /// One after another.
        Strict = "strict",
    }
}

text_enum! {
    /// How deliveries are signed.
    pub enum SignatureScheme {
        /// HMAC-SHA256 under a shared secret: `v1,…`.
        Hmac = "hmac",
        /// Ed25519 under a key of which the endpoint shows the public half: `v1a,…`.
        Ed25519 = "ed25519",
    }
}

/// A subscription of an HTTPS endpoint to events.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WebhookEndpoint {
    /// The endpoint.
    pub id: WebhookEndpointId,
    /// Always `webhook_endpoint`.
    pub object: &'static str,
    /// The workspace whose events it gets.
    pub workspace_id: WorkspaceId,
    /// Where events are posted to.
    pub url: String,
    /// Names of events, `contact.*` for all of a kind, `*` for all.
    pub enabled_events: Vec<String>,
    /// For people.
    pub description: Option<String>,
    /// Whether it is delivered to.
    pub status: EndpointStatus,
    /// Why not, or `null`.
    pub disabled_reason: Option<DisabledReason>,
    /// What an event must be like to be sent, or `null`.
    #[schema(value_type = Option<Object>)]
    pub filter: Option<Filter>,
    /// How much of an event is sent.
    pub payload: Payload,
    /// In which order.
    pub ordering: Ordering,
    /// The most deliveries in a second, or `null`.
    pub rate_limit_per_second: Option<i64>,
    /// The names of headers that go along. Their values are not shown.
    pub headers: Vec<String>,
    /// The version of the events' form.
    pub api_version: &'static str,
    /// How deliveries are signed.
    pub signature_scheme: SignatureScheme,
    /// The public key of `ed25519` (`whpk_…`), or `null`.
    pub public_key: Option<String>,
    /// Until when the previous secret signs along, or `null`.
    pub previous_secret_expires_at: Option<Timestamp>,
    /// Since when every delivery has failed, or `null`.
    pub failing_since: Option<Timestamp>,
    /// Until when only the next probe may go out, because the last five attempts failed; or `null`.
    pub paused_until: Option<Timestamp>,
    /// Attempts of the last 24 hours that succeeded, 0 to 1; `null` where there were none.
    pub success_rate_24h: Option<f64>,
    /// The caller's own notes.
    pub metadata: Metadata,
    /// Rises with every change.
    pub version: i64,
    /// When it was subscribed.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// An endpoint together with its secret, which is shown this once.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WebhookEndpointWithSecret {
    /// The endpoint.
    #[serde(flatten)]
    pub endpoint: WebhookEndpoint,
    /// `whsec_` and base64, for checking signatures; `null` with `ed25519`, where `public_key` does that.
    pub secret: Option<String>,
}

/// Headers that go along with every delivery: at most 10, values up to 1,024 characters.
pub type Headers = BTreeMap<String, String>;

/// An endpoint to be subscribed.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhookEndpoint {
    /// Where to post: `https`, on port 443 or 8443.
    #[schema(min_length = 1, max_length = 2048)]
    pub url: String,
    /// Names of events, `contact.*` for all of a kind, `*` for all that the key may see.
    #[schema(min_items = 1, max_items = 100)]
    pub enabled_events: Vec<String>,
    /// For people.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub description: Option<String>,
    /// Whether to deliver at once; `enabled` unless said otherwise.
    #[serde(default)]
    #[schema(nullable = false)]
    pub status: Option<EndpointStatus>,
    /// What an event must be like to be sent.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub filter: Option<Filter>,
    /// How much of an event is sent; `full` unless said otherwise.
    #[serde(default)]
    #[schema(nullable = false)]
    pub payload: Option<Payload>,
    /// In which order; `none` unless said otherwise.
    #[serde(default)]
    #[schema(nullable = false)]
    pub ordering: Option<Ordering>,
    /// The most deliveries in a second.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100)]
    pub rate_limit_per_second: Option<i64>,
    /// Headers that go along, at most 10.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub headers: Option<Headers>,
    /// How deliveries are signed; `hmac` unless said otherwise. It cannot be changed later.
    #[serde(default)]
    #[schema(nullable = false)]
    pub signature_scheme: Option<SignatureScheme>,
    /// The caller's own notes.
    #[serde(default)]
    #[schema(nullable = false)]
    pub metadata: Option<Metadata>,
}

/// What to change of an endpoint.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookEndpointPatch {
    /// Where to post.
    #[serde(default)]
    #[schema(nullable = false, min_length = 1, max_length = 2048)]
    pub url: Option<String>,
    /// All events wanted from now on. The key of this request then stands behind the subscription.
    #[serde(default)]
    #[schema(nullable = false, min_items = 1, max_items = 100)]
    pub enabled_events: Option<Vec<String>>,
    /// For people.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 500)]
    pub description: Patch<String>,
    /// Switches deliveries on or off. What waited while it was off is sent by `replay` alone.
    #[serde(default)]
    #[schema(nullable = false)]
    pub status: Option<EndpointStatus>,
    /// What an event must be like to be sent.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub filter: Patch<Filter>,
    /// How much of an event is sent.
    #[serde(default)]
    #[schema(nullable = false)]
    pub payload: Option<Payload>,
    /// In which order. It holds for events from now on.
    #[serde(default)]
    #[schema(nullable = false)]
    pub ordering: Option<Ordering>,
    /// The most deliveries in a second.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 100)]
    pub rate_limit_per_second: Patch<i64>,
    /// All headers that go along from now on.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub headers: Option<Headers>,
    /// The caller's own notes, all of them.
    #[serde(default)]
    #[schema(nullable = false)]
    pub metadata: Option<Metadata>,
    /// The version that the change was made for: 409 `version_conflict` where the endpoint has another by now.
    #[serde(default)]
    #[schema(nullable = false, minimum = 1)]
    pub version: Option<i64>,
    /// The same as `version`, under its old name.
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
#[derive(Debug, Clone, PartialEq, diesel::Queryable, diesel::Insertable, diesel::AsChangeset)]
#[diesel(table_name = crate::schema::webhook_endpoints, treat_none_as_null = true)]
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
