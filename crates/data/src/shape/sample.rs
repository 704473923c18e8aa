//! Shapes for unit tests.

use super::{Choice, Field, FieldOptions, FieldRow, FieldType, Shape};
use model::{CollectionId, FieldId, JsonText, OptionId, Timestamp, WorkspaceId};
use std::sync::OnceLock;

/// A field of a sample shape, with the number `id`.
pub(crate) fn field(id: i64, key: &str, kind: FieldType, options: FieldOptions) -> Field {
    let now = Timestamp::from_millis(1_700_000_000_000);
    Field::of(FieldRow {
        id: FieldId(id),
        workspace_id: WorkspaceId(1),
        collection_id: CollectionId(1),
        field_key: key.to_owned(),
        label: key.to_owned(),
        kind: kind.as_str().to_owned(),
        description: None,
        required: false,
        is_unique: false,
        default_value: None,
        options: JsonText::of(&options),
        position: id,
        archived: false,
        next_number: 1,
        version: 1,
        created_at: now,
        updated_at: now,
        trashed_at: None,
    })
    .unwrap()
}

/// A shape with these fields, numbered from 1.
pub(crate) fn shape(fields: Vec<(&str, FieldType, FieldOptions)>) -> Shape {
    let number = |(place, (key, kind, options))| field(i64::try_from(place).unwrap() + 1, key, kind, options);
    Shape {
        workspace: WorkspaceId(1),
        collection: CollectionId(1),
        version: 1,
        archived: false,
        settings: super::CollectionSettings::default(),
        primary: Some(FieldId(1)),
        fields: fields.into_iter().enumerate().map(number).collect(),
        leaving: Vec::new(),
        indexes: Vec::new(),
        formulas: OnceLock::new(),
    }
}

/// Choices whose keys are `keys`, and whose labels are the same with a capital.
pub(crate) fn choices(keys: &[&str]) -> FieldOptions {
    let choice = |(place, key): (usize, &&str)| Choice {
        id: OptionId(i64::try_from(place).unwrap() + 1),
        key: (*key).to_owned(),
        label: key[..1].to_uppercase() + &key[1..],
        color: None,
        archived: false,
    };
    FieldOptions { choices: Some(keys.iter().enumerate().map(choice).collect()), ..FieldOptions::default() }
}
