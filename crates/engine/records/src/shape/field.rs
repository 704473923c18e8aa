//! A field as it is stored.

use super::Shape;
use crate::schema::collection_fields;
use diesel::prelude::*;
use fields::{Compiled, Field, FieldType};
use model::{CollectionId, FieldId, JsonText, Result, Timestamp, WorkspaceId};

/// A field as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = collection_fields)]
#[expect(missing_docs, reason = "the columns are those of `Field`")]
pub struct FieldRow {
    pub id: FieldId,
    pub workspace_id: WorkspaceId,
    pub collection_id: CollectionId,
    pub field_key: String,
    pub label: String,
    pub kind: String,
    pub description: Option<String>,
    pub required: bool,
    pub is_unique: bool,
    pub default_value: Option<JsonText>,
    pub options: JsonText,
    pub position: i64,
    pub archived: bool,
    pub next_number: i64,
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub trashed_at: Option<Timestamp>,
}

impl FieldRow {
    /// The row that stores a field of a shape.
    pub(crate) fn of(shape: &Shape, field: &Field, next_number: i64) -> Self {
        Self {
            id: field.id,
            workspace_id: shape.workspace,
            collection_id: shape.collection,
            field_key: field.key.clone(),
            label: field.label.clone(),
            kind: field.kind.as_str().to_owned(),
            description: field.description.clone(),
            required: field.required,
            is_unique: field.unique,
            default_value: field.default.as_ref().map(JsonText::of),
            options: JsonText::of(&field.options),
            position: field.position,
            archived: field.archived,
            next_number,
            version: field.version,
            created_at: field.created_at,
            updated_at: field.updated_at,
            trashed_at: None,
        }
    }

    /// The field, ready for use.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn field(self) -> Result<Field> {
        let kind = FieldType::parse(&self.kind)
            .ok_or_else(|| model::Error::internal(format!("field {} has an unknown type", self.id)))?;
        Ok(Field {
            id: self.id,
            key: self.field_key,
            label: self.label,
            kind,
            description: self.description,
            required: self.required,
            unique: self.is_unique,
            default: self.default_value.map(|value| value.parse()).transpose()?,
            options: self.options.parse()?,
            position: self.position,
            archived: self.archived,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
            managed: false,
            hidden: false,
            open_choices: false,
            form: None,
            home_country: None,
            compiled: Compiled::default(),
        })
    }
}
