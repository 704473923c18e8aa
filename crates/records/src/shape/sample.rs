//! Shapes for unit tests.

use super::{CollectionSettings, Shape};
use fields::{FieldOptions, FieldType, sample};
use model::{CollectionId, FieldId, WorkspaceId};

/// A shape with these fields, numbered from 1.
pub fn shape(fields: Vec<(&str, FieldType, FieldOptions)>) -> Shape {
    Shape {
        workspace: WorkspaceId(1),
        collection: CollectionId(1),
        version: 1,
        archived: false,
        settings: CollectionSettings::default(),
        primary: Some(FieldId(1)),
        fields: sample::fields(fields),
        leaving: Vec::new(),
        indexes: Vec::new(),
    }
}
