//! Shapes for unit tests.

use super::{CollectionSettings, Kind, Shape, push_json};
use fields::{FieldOptions, FieldType, sample};
use model::{CollectionId, FieldId, WorkspaceId};

static KIND: Kind = Kind {
    number: 0,
    noun: "item",
    set_noun: "collection",
    external_key: "external_key",
    aliases: None,
    referenced_by: None,
    fields: Vec::new,
    param: |key| format!("data.{key}"),
    title: None,
    indexes: &[],
    print: |shown, out| push_json(out, shown.data),
    complete: |_, _, _, _| Ok(()),
    match_keys: |_| Vec::new(),
    publish: |_, _, _| Ok(()),
};

/// A shape with these fields, numbered from 1.
pub fn shape(fields: Vec<(&str, FieldType, FieldOptions)>) -> Shape {
    Shape {
        workspace: WorkspaceId(1),
        kind: &KIND,
        collection: CollectionId(1),
        version: 1,
        archived: false,
        settings: CollectionSettings::default(),
        primary: Some(FieldId(1)),
        fields: sample::fields(fields),
        leaving: Vec::new(),
        indexes: Vec::new(),
        base_url: "".into(),
        merged: super::MergedRecords::default(),
        contact_uses: ports::ContactUses::default(),
    }
}
