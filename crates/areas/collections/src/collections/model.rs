//! Request bodies and responses of the operations on collections.

use model::{Actor, CollectionGroupId, CollectionId, Patch, Result, Timestamp};
use records::count::ItemCount;
use records::definitions::{CollectionField, NewField};
pub use records::shape::CollectionStatus;
use records::shape::{CollectionRow, CollectionSettings};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A collection: a table of items with its own fields.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Products", "slug": "products", "description": "What the shop sells.", "icon": "📦",
    "position": 0, "item_count": 200, "version": 3,
}))]
pub struct Collection {
    /// The id of the collection.
    pub id: CollectionId,
    /// Always `collection`.
    pub object: &'static str,
    /// The name, unique in the workspace regardless of case.
    pub name: String,
    /// The name used in URLs, unique in the workspace.
    pub slug: String,
    /// A description for people.
    pub description: Option<String>,
    /// An emoji, or the name of an icon.
    pub icon: Option<String>,
    /// A colour, such as `#ff8800` or `green`.
    pub color: Option<String>,
    /// The id of the group that contains the collection.
    pub group_id: Option<CollectionGroupId>,
    /// The fields in order. Left out of lists.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<CollectionField>>,
    /// The key of the field whose value is the title of an item.
    pub primary_field: Option<String>,
    /// The position among the collections.
    pub position: i64,
    /// The number of live items. Exact up to 100,000 (in lists up to 10,000); above that, the number at
    /// `item_count_exact_at`.
    pub item_count: i64,
    /// When `item_count` was last exact.
    pub item_count_exact_at: Option<Timestamp>,
    /// The state of the collection.
    pub status: CollectionStatus,
    /// The settings of the collection.
    pub settings: CollectionSettings,
    /// Who created the object.
    pub created_by: Actor,
    /// The version, incremented with every change of the collection itself. Fields and views have their own versions.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A collection to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Suppliers",
    "fields": [{ "label": "Name", "type": "text", "required": true }, { "label": "Email", "type": "email" }],
}))]
pub struct NewCollection {
    /// The name, unique in the workspace regardless of case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub name: String,
    /// The name used in URLs; derived from the name if not given.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    #[serde(default)]
    pub slug: Option<String>,
    /// A description for people.
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
    /// The id of the group that contains the collection.
    #[serde(default)]
    #[schema(value_type = Option<i64>)]
    pub group_id: Option<CollectionGroupId>,
    /// The position among the collections; last if not given.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    pub position: Option<i64>,
    /// The fields in order; one text field called `name` if not given.
    #[schema(max_items = 500)]
    #[serde(default)]
    pub fields: Option<Vec<NewField>>,
    /// The key of the field whose value is the title of an item; the first text field if not given.
    #[schema(min_length = 1, max_length = 63)]
    #[serde(default)]
    pub primary_field: Option<String>,
    /// The settings of the collection.
    #[serde(default)]
    pub settings: Option<SettingsPatch>,
}

/// A change of a collection. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "description": "What the shop sells.", "icon": "📦" }))]
pub struct CollectionPatch {
    /// The name.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub name: Option<String>,
    /// The name used in URLs.
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    #[serde(default)]
    pub slug: Option<String>,
    /// A description for people.
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
    /// The id of the group that contains the collection. `null` removes the collection from its group.
    #[schema(value_type = Option<i64>)]
    #[serde(default)]
    pub group_id: Patch<CollectionGroupId>,
    /// The position among the collections.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    pub position: Option<i64>,
    /// The key of the field whose value is the title of an item.
    #[schema(min_length = 1, max_length = 63)]
    #[serde(default)]
    pub primary_field: Option<String>,
    /// The settings of the collection.
    #[serde(default)]
    pub settings: Option<SettingsPatch>,
    /// The expected version. If the collection has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// Settings of a collection. Settings that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsPatch {
    /// The number of days for which activities are kept; 365 by default.
    #[schema(minimum = 1, maximum = 3650)]
    #[serde(default)]
    pub activity_retention_days: Option<i64>,
    /// Whether items can be commented on; `true` by default.
    #[serde(default)]
    pub comments_enabled: Option<bool>,
    /// Combinations of up to 3 fields, by key, whose values must be unique together.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub unique_keys: Option<Vec<Vec<String>>>,
}

impl SettingsPatch {
    /// Applies the patch to stored settings.
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
    /// Builds the response from a stored collection.
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
