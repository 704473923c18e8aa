//! What a view is, as callers see and write it.

use diesel::prelude::*;
use fields::saved::SavedQuery;
use model::{CollectionId, JsonText, Patch, Result, Timestamp, ViewId, text_enum};
use records::schema::collection_views;
use records::shape::Shape;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// How a view shows items. For whoever draws it: what items it holds does not depend on it.
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
pub struct CollectionView {
    /// The view.
    pub id: ViewId,
    /// Always `view`.
    pub object: &'static str,
    /// The collection it is of.
    pub collection_id: CollectionId,
    /// Its name, unique in the collection whatever the case.
    pub name: String,
    /// How it shows items.
    #[serde(rename = "type")]
    pub kind: ViewKind,
    /// Its conditions; `null` for none.
    #[schema(value_type = Option<Object>)]
    pub filter_tree: Option<Value>,
    /// Its order: field keys, the most important first, with `-` before those whose greater values come first.
    pub sort: Vec<String>,
    /// The fields that it shows, by key, in order; `null` for all.
    pub visible_fields: Option<Vec<String>>,
    /// The fields whose equal values it shows together, by key.
    pub group_by: Vec<String>,
    /// Text that its items contain.
    pub search: Option<String>,
    /// Whether it is the one that is shown first.
    pub is_default: bool,
    /// Whether it can only be unlocked.
    pub locked: bool,
    /// Whether an index of its own makes its order fast.
    pub materialized_sort: bool,
    /// Whether it can be used. A field or choice that it names may have gone.
    pub valid: bool,
    /// Why it cannot be used.
    pub invalid_reasons: Vec<String>,
    /// Its place among the views.
    pub position: i64,
    /// Raised with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A view to be created.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewView {
    /// Its name, unique in the collection whatever the case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub name: String,
    /// How it shows items; `grid` if not given.
    #[serde(default, rename = "type")]
    pub kind: Option<ViewKind>,
    /// Conditions: `{"and": […]}`, `{"or": […]}`, `{"not": {…}}` or `{"field": "price", "op": "gt", "value": 5}`, at most
    /// 5 levels deep and 100 conditions in all.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub filter_tree: Option<Value>,
    /// The order: field keys, the most important first, with `-` before those whose greater values come first.
    #[schema(max_items = 4)]
    #[serde(default)]
    pub sort: Option<Vec<String>>,
    /// The fields that are shown, by key, in order; `null` for all.
    #[schema(max_items = 500)]
    #[serde(default)]
    pub visible_fields: Option<Vec<String>>,
    /// The fields whose equal values are shown together, by key.
    #[schema(max_items = 2)]
    #[serde(default)]
    pub group_by: Option<Vec<String>>,
    /// Text that items must contain.
    #[schema(min_length = 1, max_length = 500)]
    #[serde(default)]
    pub search: Option<String>,
    /// Whether it is the one that is shown first, in place of the one that is now.
    #[serde(default)]
    pub is_default: bool,
    /// Whether it can only be unlocked.
    #[serde(default)]
    pub locked: bool,
    /// Whether to make an index for its order.
    #[serde(default)]
    pub materialized_sort: bool,
    /// Its place among the views; behind all others if not given.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    pub position: Option<i64>,
}

/// A change of a view. What is not sent stays as it is.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewPatch {
    /// Its name.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub name: Option<String>,
    /// How it shows items.
    #[serde(default, rename = "type")]
    pub kind: Option<ViewKind>,
    /// Its conditions; `null` takes them away.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub filter_tree: Patch<Value>,
    /// Its order; an empty list takes it away.
    #[schema(max_items = 4)]
    #[serde(default)]
    pub sort: Option<Vec<String>>,
    /// The fields that are shown; `null` for all.
    #[schema(value_type = Option<Vec<String>>, max_items = 500)]
    #[serde(default)]
    pub visible_fields: Patch<Vec<String>>,
    /// The fields to group by; an empty list takes them away.
    #[schema(max_items = 2)]
    #[serde(default)]
    pub group_by: Option<Vec<String>>,
    /// Text that items must contain; `null` takes it away.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 500)]
    #[serde(default)]
    pub search: Patch<String>,
    /// Whether it is the one that is shown first.
    #[serde(default)]
    pub is_default: Option<bool>,
    /// Whether it can only be unlocked. A locked view takes no other change, but for one that unlocks it.
    #[serde(default)]
    pub locked: Option<bool>,
    /// Whether an index makes its order fast.
    #[serde(default)]
    pub materialized_sort: Option<bool>,
    /// Its place among the views.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    pub position: Option<i64>,
    /// The version that the change was made for: 409 `version_conflict` where the view has another by now.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// What is stored of a view beside its columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) query: SavedQuery,
    pub(super) materialized_sort: bool,
}

/// A view as it is stored.
#[derive(Debug, Clone, Queryable, Selectable, AsChangeset)]
#[diesel(table_name = collection_views)]
pub(super) struct ViewRow {
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

impl ViewRow {
    /// What is stored beside its columns.
    pub(super) fn settings(&self) -> Result<Settings> {
        self.settings.parse()
    }

    /// As callers see it.
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
