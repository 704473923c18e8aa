//! Event types of the specification (part 6) whose areas do not exist yet. They can be subscribed to already; the area that
//! publishes one defines it as its own, and its row here gives way.

use model::Scope;
use operation::EventType;
use serde_json::{Map, Value, json};

pub(crate) fn announced() -> Vec<EventType> {
    let reported =
        |name, description| EventType::announced(name, description, Scope::ConversionsRead, conversion);
    vec![
        reported("conversion.sent", "A conversion was reported to an advertising platform."),
        reported("conversion.discarded", "A conversion was not reported."),
    ]
}

fn conversion() -> Value {
    object(&[("conversion_id", text())], &[("contact_id", integer())])
}

fn integer() -> Value {
    json!({ "type": "integer" })
}

fn text() -> Value {
    json!({ "type": "string" })
}

/// A schema of an object: its required fields, and others that may be there.
fn object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let fields: Map<String, Value> =
        required.iter().chain(optional).map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "required": names, "properties": fields })
}
