//! Event log: what is stored of an event, in which order, and how it is read.

mod announced;
mod feed;
mod live;
mod model;
mod operations;
mod queries;
mod rows;
mod sequencer;
mod size;
mod types;

pub use feed::Feed;
pub use sequencer::Sequencer;
pub use types::Catalogue;

pub(crate) use announced::announced;
pub(crate) use queries::{placed_between, placed_event, placed_since};
pub(crate) use rows::{LoggedEvent, NewPosition, hour};
pub use size::BoundedEvents;
pub(crate) use size::purge_old;
pub(crate) use types::matches;

use serde_json::{Value, json};

pub(crate) fn operations() -> operation::Operations {
    vec![
        Box::new(operations::ListEvents),
        Box::new(live::ListLiveEvents),
        Box::new(operations::GetEventStats),
        Box::new(operations::ListEventTypes),
        Box::new(operations::GetEvent),
        Box::new(operations::ListEventDeliveries),
    ]
}

/// An example that fits a schema of our own types, for test deliveries.
pub(crate) fn sample(schema: &Value) -> Value {
    build(schema, schema, 0)
}

const DEEPEST: usize = 8;

fn build(root: &Value, schema: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(target) = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#')) {
        return root.pointer(target).map_or(Value::Null, |schema| build(root, schema, depth + 1));
    }
    if let Some(value) =
        schema.get("const").or_else(|| schema["enum"].get(0)).or_else(|| schema["examples"].get(0))
    {
        return value.clone();
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(Value::Array(choices)) = schema.get(choice) {
            let real = choices.iter().find(|choice| choice["type"] != "null").or_else(|| choices.first());
            return real.map_or(Value::Null, |choice| build(root, choice, depth + 1));
        }
    }
    if let Some(Value::Array(parts)) = schema.get("allOf") {
        let mut all = serde_json::Map::new();
        for part in parts {
            if let Value::Object(fields) = build(root, part, depth + 1) {
                all.extend(fields);
            }
        }
        return Value::Object(all);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().cloned().unwrap_or_default();
            fields.iter().map(|(name, field)| (name.clone(), build(root, field, depth + 1))).collect()
        }
        Some("array") => match schema.get("items") {
            Some(items) => json!([build(root, items, depth + 1)]),
            None => json!([]),
        },
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("string") => text(schema),
        _ => Value::Null,
    }
}

fn text(schema: &Value) -> Value {
    match (schema["format"].as_str(), schema["pattern"].as_str()) {
        (Some("date-time"), _) => json!("2026-01-15T12:00:00.000Z"),
        (Some("date"), _) => json!("2026-01-15"),
        (Some("uri"), _) => json!("https://example.com/"),
        // Our ids: `^run_`.
        (_, Some(pattern)) => json!(format!("{}example", pattern.trim_start_matches('^'))),
        _ => json!("example"),
    }
}
