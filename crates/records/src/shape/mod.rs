//! The shape of a collection's items: its fields and indexes, as reads and writes of items need them.
//!
//! A [`Shape`] is a snapshot. It is loaded once, shared, and checked against `collections.shape_version`, which is
//! another one after every change of fields or indexes; whoever writes items holds that row against changes of the shape meanwhile.

mod field;
mod index;
mod load;
#[cfg(test)]
pub mod sample;

pub use field::FieldRow;
pub use index::{Index, IndexKind, IndexOrigin, IndexRow, IndexStatus};
pub use load::{
    Shapes, bump, for_change, for_read, for_write, held, lock_for_change, new_version, within_change,
};

use crate::schema::collections;
use diesel::prelude::*;
use fields::{Field, FieldSet};
use model::{
    Code, CollectionGroupId, CollectionId, Error, FieldId, JsonText, Result, Timestamp, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use utoipa::ToSchema;

/// A collection as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = collections)]
#[expect(missing_docs, reason = "the fields are those of `Collection`")]
pub struct CollectionRow {
    pub id: CollectionId,
    pub workspace_id: WorkspaceId,
    pub group_id: Option<CollectionGroupId>,
    pub name: String,
    pub name_key: String,
    pub slug: String,
    pub description: Option<String>,
    pub icon: Option<String>,
    pub color: Option<String>,
    pub primary_field_id: Option<FieldId>,
    pub position: i64,
    pub status: String,
    pub settings: JsonText,
    pub shape_version: i64,
    pub item_count: i64,
    pub item_count_at: Option<Timestamp>,
    pub version: i64,
    pub created_by: JsonText,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub trashed_at: Option<Timestamp>,
}

/// What [`CollectionRow::status`] says of a collection that is read-only.
pub const ARCHIVED: &str = "archived";

impl CollectionRow {
    /// Refuses a change of a collection that is archived.
    ///
    /// # Errors
    /// `invalid_state`.
    pub fn refuse_archived(&self) -> Result<()> {
        if self.status == ARCHIVED {
            return Err(Error::new(Code::InvalidState, "The collection is archived; unarchive it first.")
                .with("details", serde_json::json!({ "state": ARCHIVED })));
        }
        Ok(())
    }
}

/// What a collection can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CollectionSettings {
    /// Days after which activity is forgotten.
    #[schema(minimum = 1, maximum = 3650)]
    pub activity_retention_days: i64,
    /// Whether items may be commented on.
    pub comments_enabled: bool,
    /// Sets of up to 3 fields, by key, whose values together are unique.
    #[schema(max_items = 10)]
    pub unique_keys: Vec<Vec<String>>,
}

impl Default for CollectionSettings {
    fn default() -> Self {
        Self { activity_retention_days: 365, comments_enabled: true, unique_keys: Vec::new() }
    }
}

/// The shape of a collection's items, at one moment.
#[derive(Debug)]
pub struct Shape {
    /// The tenant.
    pub workspace: WorkspaceId,
    /// The collection.
    pub collection: CollectionId,
    /// The state of the shape: another one after every change.
    pub version: i64,
    /// Whether items may be changed: an archived collection is read-only.
    pub archived: bool,
    /// What the collection was told.
    pub settings: CollectionSettings,
    /// The field whose value is an item's title.
    pub primary: Option<FieldId>,
    /// The fields, in order. Deleted ones are not among them.
    pub fields: FieldSet,
    /// Keys of deleted fields whose values are still being taken out of items.
    pub leaving: Vec<String>,
    /// The indexes, whatever their state; deleted ones are not among them.
    pub indexes: Vec<Index>,
}

impl Deref for Shape {
    type Target = FieldSet;
    fn deref(&self) -> &FieldSet {
        &self.fields
    }
}

impl Shape {
    /// The field whose value is an item's title.
    pub fn primary(&self) -> Option<&Field> {
        self.field_by_id(self.primary?)
    }
}
