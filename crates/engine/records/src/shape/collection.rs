//! Rows of collections.

use crate::schema::collections;
use diesel::prelude::*;
use model::{
    Code, CollectionGroupId, CollectionId, Error, FieldId, JsonText, Result, Timestamp, WorkspaceId,
    text_enum,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

text_enum! {
    /// The state of a collection.
    pub enum CollectionStatus {
        /// In use.
        Active = "active",
        /// Read-only, and left out of lists.
        Archived = "archived",
    }
}

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
    pub status: CollectionStatus,
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

impl CollectionRow {
    /// Refuses a change of a collection that is archived.
    ///
    /// # Errors
    /// `invalid_state`.
    pub fn refuse_archived(&self) -> Result<()> {
        if self.status == CollectionStatus::Archived {
            return Err(Error::new(Code::InvalidState, "The collection is archived. Unarchive it first.")
                .with("details", serde_json::json!({ "state": self.status })));
        }
        Ok(())
    }
}

/// The settings of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "activity_retention_days": 365, "comments_enabled": true, "unique_keys": [] }))]
pub struct CollectionSettings {
    /// The number of days for which activities are kept.
    #[schema(minimum = 1, maximum = 3650)]
    pub activity_retention_days: i64,
    /// Whether items can be commented on.
    pub comments_enabled: bool,
    /// Combinations of up to 3 fields, by key, whose values must be unique together.
    #[schema(max_items = 10)]
    pub unique_keys: Vec<Vec<String>>,
}

impl Default for CollectionSettings {
    fn default() -> Self {
        Self { activity_retention_days: 365, comments_enabled: true, unique_keys: Vec::new() }
    }
}
