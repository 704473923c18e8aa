//! Orders, form replies, referrals and products.

use super::read::{id, list, owned};
use crate::{InboundContent, MessageForm, MessageOrder, MessageOrderItem, MessageProduct, MessageReferral};
use serde_json::Value;

/// Parses an order. Returns `None` if one of its products is not understood.
pub(super) fn order(part: &Value) -> Option<InboundContent> {
    let items = list(part, "product_items");
    let items: Vec<MessageOrderItem> = items.iter().map(item).collect::<Option<_>>()?;
    let catalog_id = id(part.get("catalog_id"));
    (!items.is_empty())
        .then(|| InboundContent::Order(MessageOrder { catalog_id, text: owned(part, "text"), items }))
}

fn item(raw: &Value) -> Option<MessageOrderItem> {
    let quantity = match raw.get("quantity")? {
        Value::Number(number) => number.as_i64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    let price = raw.get("item_price").and_then(|price| match price {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        _ => None,
    });
    let product_id = id(raw.get("product_retailer_id"))?;
    Some(MessageOrderItem { product_id, quantity, price, currency: owned(raw, "currency") })
}

/// Parses a form reply. Returns `None` if its JSON is not an object.
pub(super) fn form(reply: &Value) -> Option<InboundContent> {
    let answers = match reply.get("response_json")? {
        // This text is JSON of its own, whose strings `parse` has not yet cleaned of NUL.
        Value::String(text) => {
            let mut answers: Value = serde_json::from_str(text).ok()?;
            super::read::replace_nul(&mut answers);
            answers.as_object().cloned()?
        }
        Value::Object(answers) => answers.clone(),
        _ => return None,
    };
    let (name, text) = (owned(reply, "name"), owned(reply, "body"));
    Some(InboundContent::Form(MessageForm { name, text, answers }))
}

/// Parses the advertisement or post from which the contact came.
pub(super) fn referral(message: &Value) -> Option<MessageReferral> {
    let raw = message.get("referral").filter(|raw| raw.is_object())?;
    let referral = MessageReferral {
        source_type: owned(raw, "source_type"),
        source_id: id(raw.get("source_id")),
        source_url: owned(raw, "source_url"),
        headline: owned(raw, "headline"),
        body: owned(raw, "body"),
        media_type: owned(raw, "media_type"),
        image_url: owned(raw, "image_url"),
        video_url: owned(raw, "video_url"),
        thumbnail_url: owned(raw, "thumbnail_url"),
        click_id: id(raw.get("ctwa_clid")),
        welcome_text: raw.get("welcome_message").and_then(|greeting| owned(greeting, "text")),
    };
    Some(referral).filter(|referral| *referral != MessageReferral::default())
}

/// Parses the product that the contact writes about.
pub(super) fn product(message: &Value) -> Option<MessageProduct> {
    let raw = message.pointer("/context/referred_product")?;
    Some(MessageProduct {
        catalog_id: id(raw.get("catalog_id")),
        product_id: id(raw.get("product_retailer_id"))?,
    })
}
