//! Parts of contacts' messages with fields of their own: orders, form replies, referrals and products.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use utoipa::ToSchema;

/// The member of a form reply that identifies the form to the network. It is not shown to people.
const FORM_TOKEN: &str = "flow_token";

/// Products that a contact orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "catalog_id": "194836987003835", "text": "Please deliver on Friday.",
    "items": [{ "product_id": "SKU-77", "quantity": 2, "price": "10.5", "currency": "EUR" }],
}))]
pub struct MessageOrder {
    /// The network's id of the catalog.
    pub catalog_id: Option<String>,
    /// What the contact wrote with it.
    pub text: Option<String>,
    /// The products.
    pub items: Vec<MessageOrderItem>,
}

/// A product of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "product_id": "SKU-77", "quantity": 2, "price": "10.5", "currency": "EUR" }))]
pub struct MessageOrderItem {
    /// The product's id in the catalog.
    pub product_id: String,
    /// How many.
    pub quantity: i64,
    /// The price of one, as a decimal number.
    pub price: Option<String>,
    /// The currency of the price (ISO 4217).
    pub currency: Option<String>,
}

impl MessageOrder {
    /// Returns the order as text: what the contact wrote, then a line for each product.
    #[must_use]
    pub fn readable(&self) -> String {
        let mut text = self.text.clone().unwrap_or_default();
        for item in &self.items {
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = write!(text, "{} × {}", item.quantity, item.product_id);
            if let Some(price) = &item.price {
                let currency = item.currency.as_deref().unwrap_or_default();
                let _ = write!(text, " ({} each)", format!("{price} {currency}").trim_end());
            }
        }
        text
    }
}

/// What a contact entered into a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "name": "flow", "text": "Sent", "answers": { "day": "Friday", "guests": "2" } }))]
pub struct MessageForm {
    /// The network's name of the type of form.
    pub name: Option<String>,
    /// What the contact sees of the answer.
    pub text: Option<String>,
    /// The answers, by the names of the fields.
    #[schema(value_type = Object)]
    pub answers: Map<String, Value>,
}

impl MessageForm {
    /// Returns the answers as text, one per line.
    #[must_use]
    pub fn readable(&self) -> String {
        let line = |(name, value): (&String, &Value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            value => format!("{name}: {value}"),
        };
        let said = self.answers.iter().filter(|(name, _)| *name != FORM_TOKEN);
        let lines: Vec<String> = said.map(line).collect();
        if lines.is_empty() {
            return self.text.clone().unwrap_or_default();
        }
        // PostgreSQL cannot store NUL in text, and a JSON name can contain it.
        lines.join("\n").replace('\0', "\u{fffd}")
    }
}

/// The advertisement or post from which a contact came to write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "source_type": "ad", "source_id": "120208", "source_url": "https://example.com/ad", "headline": "Espresso machines",
    "body": "Twenty percent off until Sunday.", "media_type": "image", "image_url": "https://example.com/ad.jpg",
    "click_id": "ARAkLkA8rmlFeiCktEJQ",
}))]
pub struct MessageReferral {
    /// What it is, such as `ad` or `post`.
    pub source_type: Option<String>,
    /// The network's id of it.
    pub source_id: Option<String>,
    /// Its address.
    pub source_url: Option<String>,
    /// Its title.
    pub headline: Option<String>,
    /// Its text.
    pub body: Option<String>,
    /// The type of its media, such as `image` or `video`.
    pub media_type: Option<String>,
    /// The address of its image.
    pub image_url: Option<String>,
    /// The address of its video.
    pub video_url: Option<String>,
    /// The address of a preview of its video.
    pub thumbnail_url: Option<String>,
    /// The network's id of the click, by which conversions are reported.
    pub click_id: Option<String>,
    /// The greeting that the contact was shown.
    pub welcome_text: Option<String>,
}

/// A product about which a contact writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "catalog_id": "194836987003835", "product_id": "SKU-77" }))]
pub struct MessageProduct {
    /// The network's id of the catalog.
    pub catalog_id: Option<String>,
    /// The product's id in the catalog.
    pub product_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn orders_and_answers_are_readable() {
        let item = |price: Option<&str>, currency: Option<&str>| MessageOrderItem {
            product_id: "SKU-77".to_owned(),
            quantity: 2,
            price: price.map(str::to_owned),
            currency: currency.map(str::to_owned),
        };
        let items = vec![item(Some("10.5"), Some("EUR")), item(Some("3"), None), item(None, Some("EUR"))];
        let order = MessageOrder { catalog_id: None, text: Some("On Friday.".to_owned()), items };
        let lines = "On Friday.\n2 × SKU-77 (10.5 EUR each)\n2 × SKU-77 (3 each)\n2 × SKU-77";
        assert_eq!(order.readable(), lines);
        let form = |answers: Value| MessageForm {
            name: None,
            text: Some("Sent".to_owned()),
            answers: answers.as_object().cloned().unwrap(),
        };
        let answers = json!({ "day": "Friday", "guests": 2, "extras": ["cake"], "flow_token": "t-1" });
        assert_eq!(form(answers).readable(), "day: Friday\nguests: 2\nextras: [\"cake\"]");
        assert_eq!(form(json!({ "flow_token": "t-1" })).readable(), "Sent");
    }
}
