//! What a collection is, as callers see and write it.

use model::{Actor, CollectionGroupId, CollectionId, Patch, Result, Timestamp};
use records::count::ItemCount;
use records::definitions::{CollectionField, NewField};
pub use records::shape::CollectionStatus;
use records::shape::{CollectionRow, CollectionSettings};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A collection: a table of items with fields of its own.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Collection {
    /// The collection.
    pub id: CollectionId,
    /// Always `collection`.
    pub object: &'static str,
    /// Its name, unique in the workspace whatever the case.
    pub name: String,
    /// Its name for addresses, unique in the workspace.
    pub slug: String,
    /// What it is for.
    pub description: Option<String>,
    /// An emoji, or the name of an icon.
    pub icon: Option<String>,
    /// A colour, such as `#ff8800` or `green`.
    pub color: Option<String>,
    /// The group it is shown in.
    pub group_id: Option<CollectionGroupId>,
    /// Its fields, in order. Lists of collections leave them out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<CollectionField>>,
    /// The key of the field whose value is an item's title.
    pub primary_field: Option<String>,
    /// Its place among the collections.
    pub position: i64,
    /// How many live items it has: exact up to 100,000 (10,000 in lists of collections), counted at
    /// `item_count_exact_at` above that.
    pub item_count: i64,
    /// When `item_count` was exact.
    pub item_count_exact_at: Option<Timestamp>,
    /// Whether it is in use.
    pub status: CollectionStatus,
    /// What it was told.
    pub settings: CollectionSettings,
    /// Who created it.
    pub created_by: Actor,
    /// Raised with every change of the collection itself. Fields and views have versions of their own.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A collection to be created.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCollection {
    /// Its name, unique in the workspace whatever the case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub name: String,
    /// Its name for addresses; made of the name if not given.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    #[serde(default)]
    pub slug: Option<String>,
    /// What it is for.
    #[schema(max_length = 2000)]
    #[serde(default)]
    pub description: Option<String>,
    /// An emoji, or the name of an icon.
    #[schema(max_length = 64)]
    #[serde(default)]
    pub icon: Option<String>,
    /// A colour, such as `#ff8800` or `green`.
    #[schema(pattern = "^(#[0-9a-fA-F]{6}|[a-z]{2,20})$")]
    #[serde(default)]
    pub color: Option<String>,
    /// The group to show it in.
    #[serde(default)]
    #[schema(value_type = Option<i64>)]
    pub group_id: Option<CollectionGroupId>,
    /// Its place among the collections; behind all others if not given.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    pub position: Option<i64>,
    /// Its fields, in order; a text field `name` if not given.
    #[schema(max_items = 500)]
    #[serde(default)]
    pub fields: Option<Vec<NewField>>,
    /// The key of the field whose value is an item's title; the first text field if not given.
    #[schema(min_length = 1, max_length = 63)]
    #[serde(default)]
    pub primary_field: Option<String>,
    /// What it is told.
    #[serde(default)]
    pub settings: Option<SettingsPatch>,
}

/// A change of a collection. Fields that are not sent stay as they are.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectionPatch {
    /// Its name.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub name: Option<String>,
    /// Its name for addresses.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    #[serde(default)]
    pub slug: Option<String>,
    /// What it is for.
    #[schema(value_type = Option<String>, max_length = 2000)]
    #[serde(default)]
    pub description: Patch<String>,
    /// An emoji, or the name of an icon.
    #[schema(value_type = Option<String>, max_length = 64)]
    #[serde(default)]
    pub icon: Patch<String>,
    /// A colour, such as `#ff8800` or `green`.
    #[schema(value_type = Option<String>, pattern = "^(#[0-9a-fA-F]{6}|[a-z]{2,20})$")]
    #[serde(default)]
    pub color: Patch<String>,
    /// The group to show it in; `null` takes it out of its group.
    #[schema(value_type = Option<i64>)]
    #[serde(default)]
    pub group_id: Patch<CollectionGroupId>,
    /// Its place among the collections.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    pub position: Option<i64>,
    /// The key of the field whose value is an item's title.
    #[schema(min_length = 1, max_length = 63)]
    #[serde(default)]
    pub primary_field: Option<String>,
    /// What it is told.
    #[serde(default)]
    pub settings: Option<SettingsPatch>,
    /// The version that the change was made for: 409 `version_conflict` where the collection has another by now.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// What a collection is told. What is not sent stays as it is.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsPatch {
    /// Days after which activity is forgotten; 365 if never given.
    #[schema(minimum = 1, maximum = 3650)]
    #[serde(default)]
    pub activity_retention_days: Option<i64>,
    /// Whether items may be commented on; `true` if never given.
    #[serde(default)]
    pub comments_enabled: Option<bool>,
    /// Sets of up to 3 fields, by key, whose values together are unique.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub unique_keys: Option<Vec<Vec<String>>>,
}

impl SettingsPatch {
    /// Applies it to what is stored.
    pub(crate) fn apply(self, settings: &mut CollectionSettings) {
        if let Some(days) = self.activity_retention_days {
            settings.activity_retention_days = days;
        }
        if let Some(enabled) = self.comments_enabled {
            settings.comments_enabled = enabled;
        }
        if let Some(keys) = self.unique_keys {
            settings.unique_keys = keys;
        }
    }
}

impl Collection {
    /// A stored collection as callers see it.
    pub(crate) fn of(
        row: CollectionRow,
        primary_field: Option<String>,
        count: ItemCount,
        fields: Option<Vec<CollectionField>>,
    ) -> Result<Self> {
        Ok(Self {
            id: row.id,
            object: "collection",
            name: row.name,
            slug: row.slug,
            description: row.description,
            icon: row.icon,
            color: row.color,
            group_id: row.group_id,
            fields,
            primary_field,
            position: row.position,
            item_count: count.items,
            item_count_exact_at: count.exact_at,
            status: row.status,
            settings: row.settings.parse()?,
            created_by: row.created_by.parse()?,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}
