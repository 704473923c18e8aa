//! A shape for unit tests.

use crate::shape::{CollectionSettings, Field, FieldRow, Shape};
use model::{CollectionId, FieldId, JsonText, Timestamp, WorkspaceId};
use serde_json::{Value, json};

/// A shape with these fields: key, type and options. Ids count from 1.
pub fn shape(fields: &[(&str, &str, Value)]) -> Shape {
    let now = Timestamp::from_millis(0);
    let field = |(place, (key, kind, options)): (usize, &(&str, &str, Value))| {
        let number = i64::try_from(place).unwrap() + 1;
        Field::of(FieldRow {
            id: FieldId(number),
            workspace_id: WorkspaceId(1),
            collection_id: CollectionId(1),
            field_key: (*key).to_owned(),
            label: (*key).to_owned(),
            kind: (*kind).to_owned(),
            description: None,
            required: false,
            is_unique: false,
            default_value: None,
            options: JsonText::of(options),
            position: number,
            archived: false,
            next_number: 1,
            version: 1,
            created_at: now,
            updated_at: now,
            trashed_at: None,
        })
        .unwrap()
    };
    Shape {
        workspace: WorkspaceId(1),
        collection: CollectionId(1),
        version: 1,
        archived: false,
        settings: CollectionSettings::default(),
        primary: None,
        fields: fields.iter().enumerate().map(field).collect(),
        leaving: Vec::new(),
        indexes: Vec::new(),
    }
}

/// Some fields of many types.
pub fn shop() -> Shape {
    let choices = json!({ "choices": [
        { "id": 1, "key": "new", "label": "New" },
        { "id": 2, "key": "sold", "label": "Sold out" },
    ] });
    shape(&[
        ("name", "text", json!({})),
        ("price", "number", json!({})),
        ("status", "select", choices.clone()),
        ("tags", "multi_select", choices),
        ("notes", "json", json!({})),
        ("due", "date", json!({})),
    ])
}
