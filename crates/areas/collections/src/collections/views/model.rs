//! Request bodies and responses of the operations on views.

use diesel::prelude::*;
use fields::filter::FilterTree;
use fields::saved::SavedQuery;
use fields::text;
use model::{CollectionId, JsonText, Patch, Result, Timestamp, ViewId, text_enum};
use records::schema::collection_views;
use records::shape::Shape;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// How a user interface shows the items of a view. It does not affect which items the view contains.
    #[derive(Default)]
    pub enum ViewKind {
        /// A table.
        #[default]
        Grid = "grid",
        /// Columns of cards, one for each group.
        Board = "board",
        /// Days with items on them.
        Calendar = "calendar",
        /// Cards with pictures.
        Gallery = "gallery",
        /// Lines.
        List = "list",
    }
}

/// A view of a collection.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Expensive toys",
    "filter_tree": {
        "and": [
            { "field": "category", "op": "eq", "value": "toys" },
            { "field": "price", "op": "gt", "value": 30 },
        ],
    },
    "sort": ["-price", "name"], "visible_fields": ["name", "price", "stock"], "group_by": [], "valid": true,
    "invalid_reasons": [], "position": 0, "version": 1,
}))]
pub struct CollectionView {
    /// The id of the view.
    pub id: ViewId,
    /// Always `view`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The name, unique in the collection regardless of case.
    pub name: String,
    /// How a user interface shows the items.
    #[serde(rename = "type")]
    pub kind: ViewKind,
    /// The filter. `null` means all items.
    #[schema(value_type = Option<FilterTree>)]
    pub filter_tree: Option<Value>,
    /// The order: field keys, most significant first, with a leading `-` for descending order.
    pub sort: Vec<String>,
    /// The keys of the visible fields, in order. `null` means all fields.
    pub visible_fields: Option<Vec<String>>,
    /// The keys of the fields by which items are grouped.
    pub group_by: Vec<String>,
    /// Text that the items contain.
    pub search: Option<String>,
    /// Whether this is the collection's default view.
    pub is_default: bool,
    /// Whether the view is locked. A locked view accepts only a change that unlocks it.
    pub locked: bool,
    /// Whether the view has its own index for its order.
    pub materialized_sort: bool,
    /// Whether the view can be used. `false` if it uses fields or choices that no longer exist.
    pub valid: bool,
    /// Why the view cannot be used.
    pub invalid_reasons: Vec<String>,
    /// The position among the views.
    pub position: i64,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A view to create.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Cheap toys",
    "filter_tree": {
        "and": [
            { "field": "category", "op": "eq", "value": "toys" },
            { "field": "price", "op": "lt", "value": 20 },
        ],
    },
    "sort": ["price", "name"],
}))]
pub struct NewView {
    /// The name, unique in the collection regardless of case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub name: String,
    /// How a user interface shows the items; `grid` if not given.
    #[serde(default, rename = "type")]
    pub kind: Option<ViewKind>,
    /// The filter, such as `{"field": "price", "op": "gt", "value": 5}`; all items if not given.
    #[schema(value_type = Option<FilterTree>)]
    #[serde(default)]
    pub filter_tree: Option<Value>,
    /// The order: field keys, most significant first, with a leading `-` for descending order.
    #[schema(max_items = 4)]
    #[serde(default)]
    pub sort: Option<Vec<String>>,
    /// The keys of the visible fields, in order. `null` means all fields.
    #[schema(max_items = 500)]
    #[serde(default)]
    pub visible_fields: Option<Vec<String>>,
    /// The keys of the fields by which items are grouped.
    #[schema(max_items = 2)]
    #[serde(default)]
    pub group_by: Option<Vec<String>>,
    /// Text that the items contain.
    #[schema(min_length = 1, max_length = 500)]
    #[serde(default)]
    pub search: Option<String>,
    /// Whether to make this the collection's default view.
    #[serde(default)]
    pub is_default: bool,
    /// Whether the view is locked. A locked view accepts only a change that unlocks it.
    #[serde(default)]
    pub locked: bool,
    /// Whether to create an index for the order.
    #[serde(default)]
    pub materialized_sort: bool,
    /// The position among the views; last if not given.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    pub position: Option<i64>,
}

/// A change of a view. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "sort": ["-price"] }))]
pub struct ViewPatch {
    /// The name.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub name: Option<String>,
    /// How a user interface shows the items.
    #[serde(default, rename = "type")]
    pub kind: Option<ViewKind>,
    /// The filter. `null` removes it.
    #[schema(value_type = Option<FilterTree>)]
    #[serde(default)]
    pub filter_tree: Patch<Value>,
    /// The order. An empty list removes it.
    #[schema(max_items = 4)]
    #[serde(default)]
    pub sort: Option<Vec<String>>,
    /// The keys of the visible fields. `null` means all fields.
    #[schema(value_type = Option<Vec<String>>, max_items = 500)]
    #[serde(default)]
    pub visible_fields: Patch<Vec<String>>,
    /// The fields to group by. An empty list removes them.
    #[schema(max_items = 2)]
    #[serde(default)]
    pub group_by: Option<Vec<String>>,
    /// Text that the items contain. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 500)]
    #[serde(default)]
    pub search: Patch<String>,
    /// Whether this is the collection's default view.
    #[serde(default)]
    pub is_default: Option<bool>,
    /// Whether the view is locked. A locked view accepts only a change that unlocks it.
    #[serde(default)]
    pub locked: Option<bool>,
    /// Whether the view has its own index for its order.
    #[serde(default)]
    pub materialized_sort: Option<bool>,
    /// The position among the views.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    pub position: Option<i64>,
    /// The expected version. If the view has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// The part of a view that is stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) query: SavedQuery,
    pub(super) materialized_sort: bool,
}

/// A row of `collection_views`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = collection_views)]
pub(super) struct ViewRow {
    #[diesel(skip_insertion)]
    pub(super) id: ViewId,
    pub(super) workspace_id: model::WorkspaceId,
    pub(super) collection_id: CollectionId,
    pub(super) name: String,
    pub(super) name_key: String,
    pub(super) kind: ViewKind,
    pub(super) settings: JsonText,
    pub(super) is_default: bool,
    pub(super) locked: bool,
    pub(super) position: i64,
    pub(super) version: i64,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
}

operation::resource! {
    ViewRow, collection_views, ViewId, "view";
    unique "name": name_key;
    at most 200 "views per collection";
    within: collection_id;
}

impl ViewRow {
    pub(super) fn rename(&mut self, name: &str) {
        name.trim().clone_into(&mut self.name);
        self.name_key = text::name_key(&self.name);
    }

    /// Parses the settings.
    pub(super) fn settings(&self) -> Result<Settings> {
        self.settings.parse()
    }

    /// Builds the response.
    pub(super) fn view(&self, shape: &Shape, now: Timestamp) -> Result<CollectionView> {
        let settings = self.settings()?;
        let text = settings.query.to_api(shape);
        let invalid_reasons = settings.query.problems(shape, now);
        Ok(CollectionView {
            id: self.id,
            object: "view",
            collection_id: self.collection_id,
            name: self.name.clone(),
            kind: self.kind,
            filter_tree: text.filter_tree,
            sort: text.sort,
            visible_fields: text.visible_fields,
            group_by: text.group_by,
            search: text.search,
            is_default: self.is_default,
            locked: self.locked,
            materialized_sort: settings.materialized_sort,
            valid: invalid_reasons.is_empty(),
            invalid_reasons,
            position: self.position,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}
