//! The shape of a collection's items: its fields and indexes, as reads and writes of items need them.
//!
//! A [`Shape`] is a snapshot. It is loaded once, shared, and checked against `collections.shape_version`, which is
//! another one after every change of fields or indexes; whoever writes items holds that row against changes of the shape meanwhile.

mod field;
mod index;
mod kind;
mod load;
mod options;
#[cfg(test)]
pub(crate) mod sample;

pub use field::{Field, FieldRow};
pub use index::{Index, IndexKind, IndexOrigin, IndexRow, IndexStatus, Part, Subject, System};
pub use kind::{Family, FieldType};
pub use load::{
    Shapes, bump, for_change, for_read, for_write, held, lock_for_change, new_version, within_change,
};
pub use options::{Cardinality, Choice, FieldOptions, OnDelete, RollupAggregate};

use diesel::prelude::*;
use model::{CollectionGroupId, CollectionId, FieldId, JsonText, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::OnceLock;
use store::schema::collections;
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
    pub fields: Vec<Field>,
    /// Keys of deleted fields whose values are still being taken out of items.
    pub leaving: Vec<String>,
    /// The indexes, whatever their state; deleted ones are not among them.
    pub indexes: Vec<Index>,
    formulas: OnceLock<Vec<FieldId>>,
}

impl Shape {
    /// The field with this key.
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// The field with this id.
    pub fn field_by_id(&self, id: FieldId) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// The field whose value is an item's title.
    pub fn primary(&self) -> Option<&Field> {
        self.field_by_id(self.primary?)
    }

    /// The key nearest to one that is no field, for messages.
    pub fn nearest(&self, wrong: &str) -> Option<&str> {
        let keys = self.fields.iter().map(|field| field.key.as_str());
        crate::text::nearest(wrong, keys.chain(System::ALL.map(System::as_str)))
    }

    /// The formula fields, each after those that it reads.
    pub fn formulas(&self) -> impl Iterator<Item = &Field> {
        let order = self.formulas.get_or_init(|| {
            let (mut order, mut seen) = (Vec::new(), HashSet::new());
            for field in self.fields.iter().filter(|field| field.kind == FieldType::Formula) {
                self.put_after_its_inputs(field, &mut seen, &mut order);
            }
            order
        });
        order.iter().filter_map(|id| self.field_by_id(*id))
    }

    fn put_after_its_inputs(&self, field: &Field, seen: &mut HashSet<FieldId>, order: &mut Vec<FieldId>) {
        if !seen.insert(field.id) {
            return;
        }
        let inputs = field.formula().map(|formula| formula.fields()).unwrap_or_default();
        for input in inputs.into_iter().filter_map(|key| self.field(key)) {
            if input.kind == FieldType::Formula {
                self.put_after_its_inputs(input, seen, order);
            }
        }
        order.push(field.id);
    }
}
