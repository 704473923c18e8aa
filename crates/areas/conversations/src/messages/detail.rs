//! What a message has beside its text, as it is stored and as callers see it.

use chatnet::{Interactive, MessageForm, MessageOrder, MessageProduct, MessageReferral, SentTemplate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a message has beside its text. Of a message that is sent it has all that the network is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// A template with its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<SentTemplate>,
    /// Buttons or a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interactive: Option<Interactive>,
    /// A place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Cards of people, as the network has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contacts: Option<serde_json::Value>,
    /// The id of the button or row that the contact chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_id: Option<String>,
    /// An order of products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<MessageOrder>,
    /// The answers to a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<MessageForm>,
    /// The advertisement or post from which the contact came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub referral: Option<MessageReferral>,
    /// The product about which the contact writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<MessageProduct>,
    /// Of a reaction; `None` takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
    /// Of a text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preview_url: bool,
    /// Whether it is sent again if the network does not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least_once: bool,
    /// What the service does not understand, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<serde_json::Value>,
}

/// A place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "latitude": -23.5505, "longitude": -46.6333, "name": "Office" }))]
pub struct Location {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// The name of the place.
    pub name: Option<String>,
    /// The address of the place.
    pub address: Option<String>,
}
