//! The activity log: who did what to an item, from what to what.

use crate::author::Author;
use diesel::prelude::*;
use model::{CollectionId, ItemId, JsonText, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::Tx;
use store::schema::item_activity;
use utoipa::ToSchema;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The item was created.
    Created,
    /// Values changed.
    Updated,
    /// It was moved to the trash.
    Trashed,
    /// It came back from the trash.
    Restored,
    /// It was deleted for good.
    Deleted,
    /// A link was made.
    Linked,
    /// A link was removed.
    Unlinked,
    /// Somebody commented.
    Commented,
    /// It was moved to another collection, or came from one.
    Moved,
    /// It was locked.
    Locked,
    /// It was unlocked.
    Unlocked,
    /// A file was attached.
    Attached,
    /// A file was detached.
    Detached,
    /// An import ran.
    Imported,
    /// The collection, its fields or views changed.
    SchemaChanged,
}

impl Action {
    /// The word of the wire format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Trashed => "trashed",
            Self::Restored => "restored",
            Self::Deleted => "deleted",
            Self::Linked => "linked",
            Self::Unlinked => "unlinked",
            Self::Commented => "commented",
            Self::Moved => "moved",
            Self::Locked => "locked",
            Self::Unlocked => "unlocked",
            Self::Attached => "attached",
            Self::Detached => "detached",
            Self::Imported => "imported",
            Self::SchemaChanged => "schema_changed",
        }
    }
}

/// What changed: by field key, the old and the new value.
pub type Changes = Map<String, Value>;

/// One change of a field.
pub fn change(old: Option<&Value>, new: Option<&Value>) -> Value {
    json!({ "old": old.unwrap_or(&Value::Null), "new": new.unwrap_or(&Value::Null) })
}

// `NULL` is written as such, so that diesel can keep the statement.
#[derive(Insertable)]
#[diesel(table_name = item_activity, treat_none_as_default_value = false)]
struct NewActivity<'a> {
    workspace_id: WorkspaceId,
    collection_id: CollectionId,
    item_id: Option<ItemId>,
    action: &'static str,
    changed: JsonText,
    actor: &'a JsonText,
    source: &'a JsonText,
    operation_id: Option<&'a str>,
    created_at: Timestamp,
}

/// Writes an entry.
///
/// # Errors
/// When the database fails.
pub fn record(
    tx: &mut Tx,
    author: &Author,
    collection: CollectionId,
    item: Option<ItemId>,
    action: Action,
    changed: &Changes,
) -> Result<()> {
    let row = NewActivity {
        workspace_id: author.workspace,
        collection_id: collection,
        item_id: item,
        action: action.as_str(),
        changed: JsonText::of(changed),
        actor: &author.actor,
        source: &author.source,
        operation_id: author.operation.as_deref(),
        created_at: tx.now(),
    };
    diesel::insert_into(item_activity::table).values(row).execute(tx.connection())?;
    Ok(())
}
