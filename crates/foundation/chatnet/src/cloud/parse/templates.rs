//! Template updates: reviews, pauses, and changes of category or quality.

use super::read::{id, owned, text};
use super::{Change, unknown};
use crate::cloud::limits::{quality, template_category, template_status};
use crate::{Quality, TemplateUpdate, Update};
use serde_json::Value;

pub(super) fn parse(field: &str, raw: &Value, change: &Change<'_>) -> Update {
    update(change).map_or_else(|| unknown(field, raw), Update::Template)
}

fn update(change: &Change<'_>) -> Option<TemplateUpdate> {
    let value = change.value;
    let event = text(value, "event");
    // A flagged template can still be sent.
    let flagged = (event == Some("FLAGGED")).then_some(Quality::Low);
    // An announcement of a change contains the current category as the new one.
    let category = text(value, "new_category").or_else(|| text(value, "message_template_category"));
    Some(TemplateUpdate {
        provider_id: id(value.get("message_template_id"))?,
        name: owned(value, "message_template_name")?,
        language: owned(value, "message_template_language")?,
        status: event.and_then(template_status),
        category: category.and_then(template_category),
        rejection_reason: (event == Some("REJECTED")).then(|| rejection(value)).flatten(),
        quality: text(value, "new_quality_score").map(quality).or(flagged),
        components: None,
        at: change.at,
    })
}

fn rejection(value: &Value) -> Option<String> {
    let reason = text(value, "reason").filter(|reason| *reason != "NONE")?;
    let details = value.get("rejection_info").and_then(|info| text(info, "reason"));
    let text = details.map_or_else(|| reason.to_owned(), |details| format!("{reason}: {details}"));
    Some(text.chars().take(500).collect())
}
