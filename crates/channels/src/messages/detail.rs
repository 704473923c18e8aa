//! What a message has beside its text, as it is stored and as callers see it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What a message has beside its text. Of a message that is sent it has all that the network is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detail {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) template: Option<SentTemplate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) interactive: Option<Interactive>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<Location>,
    /// Cards of people, as the network has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contacts: Option<serde_json::Value>,
    /// The id of the button or row that the contact chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply_id: Option<String>,
    /// Of a reaction; `None` takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) emoji: Option<String>,
    /// Of a text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) preview_url: bool,
    /// Whether it is sent again if the network does not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) at_least_once: bool,
    /// What the service does not understand, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<serde_json::Value>,
}

/// A message template with its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "name": "order_shipped", "language": "en", "params": { "1": "Ana", "2": "4711" } }))]
pub struct SentTemplate {
    /// The name.
    pub name: String,
    /// The language, such as `pt_BR`.
    pub language: String,
    /// The namespace.
    pub namespace: String,
    /// The values of the variables in the body, by number.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub params: BTreeMap<String, String>,
    /// The values of the variables in the header, by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub header_params: BTreeMap<String, String>,
    /// The values of the buttons, by their places from 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub button_params: BTreeMap<String, String>,
}

/// A text with buttons or a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "body": "When may we call you?",
    "buttons": [{ "id": "morning", "title": "In the morning" }, { "id": "evening", "title": "In the evening" }],
}))]
pub struct Interactive {
    /// The text above the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 60)]
    pub header: Option<String>,
    /// The text.
    #[schema(min_length = 1, max_length = 1_024, pattern = r"\S")]
    pub body: String,
    /// The text below the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 60)]
    pub footer: Option<String>,
    /// Up to 3 buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<MessageButton>,
    /// A list to choose from, instead of buttons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub list: Option<MessageList>,
}

/// A button of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "morning", "title": "In the morning" }))]
pub struct MessageButton {
    /// What is returned when the contact presses it. Unique within the message.
    #[schema(min_length = 1, max_length = 256, pattern = r"\S")]
    pub id: String,
    /// What the contact sees.
    #[schema(min_length = 1, max_length = 20, pattern = r"\S")]
    pub title: String,
}

/// A list of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "button": "Choose", "sections": [{ "title": "Coffee", "rows": [{ "id": "espresso", "title": "Espresso" }] }],
}))]
pub struct MessageList {
    /// The button that opens the list.
    #[schema(min_length = 1, max_length = 20, pattern = r"\S")]
    pub button: String,
    /// The sections, with up to 10 rows together.
    #[schema(min_items = 1, max_items = 10)]
    pub sections: Vec<MessageListSection>,
}

/// A section of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageListSection {
    /// The title; required if there are several sections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 24)]
    pub title: Option<String>,
    /// What can be chosen.
    #[schema(min_items = 1, max_items = 10)]
    pub rows: Vec<MessageListRow>,
}

/// What can be chosen in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": "espresso", "title": "Espresso", "description": "Short and strong." }))]
pub struct MessageListRow {
    /// What is returned when the contact chooses it. Unique within the list.
    #[schema(min_length = 1, max_length = 200, pattern = r"\S")]
    pub id: String,
    /// What the contact sees.
    #[schema(min_length = 1, max_length = 24, pattern = r"\S")]
    pub title: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 72)]
    pub description: Option<String>,
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
