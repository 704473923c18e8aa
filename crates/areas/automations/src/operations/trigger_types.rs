//! The types of triggers, from their table.

use crate::triggers::{NamedSchema, Source, TriggerType};
use model::Result;
use operation::{Rows, operation};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// A type of triggers.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "tag.added", "description": "A contact got a tag.", "source": "event",
    "event_types": ["contact.created", "contact.updated"],
    "config_schema": { "type": "object", "properties": { "tags": { "type": "array", "items": { "type": "string" } } } },
    "sample": { "contact_id": 1, "tags": ["vip"] },
}))]
pub struct AutomationTriggerInfo {
    /// The type.
    #[serde(rename = "type")]
    pub kind: TriggerType,
    /// Always `automation_trigger_type`.
    pub object: &'static str,
    /// What happens.
    pub description: &'static str,
    /// Where occurrences come from: `event`, `message`, `timer` or `request`.
    pub source: &'static str,
    /// The types of events from which they come.
    pub event_types: Vec<&'static str>,
    /// A JSON Schema of the settings.
    #[schema(value_type = Object)]
    pub config_schema: Value,
    /// Data as an occurrence has it: `$trigger`.
    #[schema(value_type = Object)]
    pub sample: Value,
}

/// Trigger kinds with the schema of their settings and data
///
/// Lists everything that can fire an automation.
#[operation(get "/automations/trigger-types", scope = "automations:read")]
pub fn list_trigger_types() -> Result<Rows<AutomationTriggerInfo>> {
    let info = |kind: TriggerType| {
        let entry = kind.entry();
        let (source, event_types) = match entry.source {
            Source::Events(kinds) => ("event", kinds.to_vec()),
            Source::Messages => ("message", Vec::new()),
            Source::Timer => ("timer", Vec::new()),
            Source::Requests => ("request", Vec::new()),
        };
        AutomationTriggerInfo {
            kind,
            object: "automation_trigger_type",
            description: entry.about.trim(),
            source,
            event_types,
            config_schema: whole((entry.schema)()),
            sample: (entry.sample)(),
        }
    };
    Ok(Rows(TriggerType::ALL.into_iter().map(info).collect()))
}

/// A schema with those that it refers to, as one document.
fn whole((_, schema, used): NamedSchema) -> Value {
    let mut schema = json!(schema);
    let mut parts: Map<String, Value> = used.into_iter().map(|(name, part)| (name, json!(part))).collect();
    point_inside(&mut schema);
    parts.values_mut().for_each(point_inside);
    if let (Value::Object(members), false) = (&mut schema, parts.is_empty()) {
        members.insert("$defs".to_owned(), Value::Object(parts));
    }
    schema
}

fn point_inside(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get_mut("$ref") {
                *target = target.replace("#/components/schemas/", "#/$defs/");
            }
            members.values_mut().for_each(point_inside);
        }
        Value::Array(parts) => parts.iter_mut().for_each(point_inside),
        _ => {}
    }
}
