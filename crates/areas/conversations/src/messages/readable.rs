//! Messages as an agent reads them.

use super::detail::{Detail, Location};
use super::row::{MessageRow, MessageType};
use chatnet::{MessageProduct, MessageReferral};
use model::Result;
use serde_json::Value;

/// What a contact wrote or said, with what is known beside its text: a line for the advertisement from which the contact came,
/// for the product that it asks about, and so on.
///
/// # Errors
/// When what is stored is damaged.
pub(crate) fn readable(row: &MessageRow, transcript: Option<&str>) -> Result<String> {
    let text = match transcript {
        Some(words) => words.to_owned(),
        None if row.content.trim().is_empty() => format!("[{}]", row.message_type.as_str()),
        // A caption is about the file above it.
        None if has_caption(row.message_type) => format!("[{}] {}", row.message_type.as_str(), row.content),
        None => row.content.clone(),
    };
    let Some(detail) = &row.detail else { return Ok(text) };
    let detail: Detail = detail.parse()?;
    let more = [
        detail.location.as_ref().map(place),
        detail.contacts.as_ref().map(cards),
        detail.product.as_ref().map(product),
        detail.referral.as_ref().map(referral),
    ];
    let lines: Vec<String> =
        std::iter::once(text).chain(more.into_iter().flatten().filter(|line| !line.is_empty())).collect();
    Ok(lines.join("\n"))
}

fn has_caption(kind: MessageType) -> bool {
    matches!(kind, MessageType::Image | MessageType::Video | MessageType::Document)
}

fn place(place: &Location) -> String {
    let address = place.address.as_deref().map_or_else(String::new, |address| format!("{address}, "));
    format!("[Place: {address}{}, {}]", place.latitude, place.longitude)
}

/// Names and telephone numbers of cards.
fn cards(cards: &Value) -> String {
    let card = |card: &Value| {
        let name = card.pointer("/name/formatted_name").and_then(Value::as_str).unwrap_or_default();
        let phones = card.get("phones").and_then(Value::as_array).into_iter().flatten();
        let phones = phones.filter_map(|phone| phone.get("phone").and_then(Value::as_str));
        std::iter::once(name).chain(phones).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let cards: Vec<String> = cards.as_array().into_iter().flatten().map(card).collect();
    format!("[Contacts: {}]", cards.join("; "))
}

fn product(product: &MessageProduct) -> String {
    format!("[About the product {}]", product.product_id)
}

fn referral(referral: &MessageReferral) -> String {
    let said = [&referral.headline, &referral.body, &referral.source_url];
    let said: Vec<&str> = said.into_iter().filter_map(|text| text.as_deref()).collect();
    if said.is_empty() { String::new() } else { format!("[Came from: {}]", said.join(" – ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stands_beside_the_text_is_readable() {
        let two = json!([
            { "name": { "formatted_name": "Barbara J." }, "phones": [{ "phone": "+1 650-555-9999" }] },
            { "name": {} },
        ]);
        assert_eq!(cards(&two), "[Contacts: Barbara J. +1 650-555-9999; ]");
        assert_eq!(cards(&json!("x")), "[Contacts: ]");
        let ad = MessageReferral { headline: Some("Sale".to_owned()), ..MessageReferral::default() };
        assert_eq!(referral(&ad), "[Came from: Sale]");
        let unnamed = MessageReferral { click_id: Some("c".to_owned()), ..MessageReferral::default() };
        assert_eq!(referral(&unnamed), "");
    }
}
