//! The activity log: who did what to an item, from what to what.

mod size;
mod stored;

pub use size::ACTIVITY_LOG;
pub(crate) use stored::{short_actor, short_changes, short_created, short_source};

use crate::schema::item_activity;
use crate::{Author, Source};
use diesel::prelude::*;
use fields::{Data, FieldSet};
use model::{Actor, CollectionId, ItemId, JsonText, Result, Timestamp, WorkspaceId, text_enum};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::{OptInPage, Read, Tx, each};
use utoipa::ToSchema;

text_enum! {
    /// The type of activity.
    pub enum Action {
        /// The item was created.
        Created = "created",
        /// Values were changed.
        Updated = "updated",
        /// The item was moved to the trash.
        Trashed = "trashed",
        /// The item was restored from the trash.
        Restored = "restored",
        /// The item was permanently deleted.
        Deleted = "deleted",
        /// A link was created.
        Linked = "linked",
        /// A link was deleted.
        Unlinked = "unlinked",
        /// A comment was added.
        Commented = "commented",
        /// The item was moved to or from another collection.
        Moved = "moved",
        /// The item was locked.
        Locked = "locked",
        /// The item was unlocked.
        Unlocked = "unlocked",
        /// A file was attached.
        Attached = "attached",
        /// A file was detached.
        Detached = "detached",
        /// An import was completed.
        Imported = "imported",
        /// The collection, its fields or its views were changed.
        SchemaChanged = "schema_changed",
    }
}

/// What changed: by field key, the old and the new value.
pub type Changes = Map<String, Value>;

/// One change of a field.
pub fn change(old: Option<&Value>, new: Option<&Value>) -> Value {
    json!({ "old": old.unwrap_or(&Value::Null), "new": new.unwrap_or(&Value::Null) })
}

/// What changed of an item that was created: all values that it has.
pub(crate) fn created(fields: &FieldSet, data: &Data) -> Changes {
    shown(fields, data).map(|(key, value)| (key.clone(), change(None, Some(value)))).collect()
}

/// The values that callers see.
fn shown<'a>(fields: &FieldSet, data: &'a Data) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let hidden: Vec<String> =
        fields.iter().filter(|field| field.hidden).map(|field| field.key.clone()).collect();
    data.iter().filter(move |(key, _)| !hidden.contains(key))
}

// `NULL` is written as such, so that diesel can keep the statement.
#[derive(Insertable)]
#[diesel(table_name = item_activity, treat_none_as_default_value = false)]
struct NewActivity<'a> {
    workspace_id: WorkspaceId,
    collection_id: CollectionId,
    item_id: Option<ItemId>,
    action: Action,
    changed: JsonText,
    actor: &'a str,
    source: &'a str,
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
        action,
        changed: short_changes(changed),
        actor: short_actor(&author.cause.actor),
        source: short_source(&author.source),
        operation_id: author.operation.as_deref(),
        created_at: tx.now(),
    };
    each!(tx.connection(), |connection| diesel::insert_into(item_activity::table)
        .values(row)
        .execute(connection))?;
    Ok(())
}

/// An entry as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = item_activity)]
pub struct ActivityRow {
    id: i64,
    collection_id: CollectionId,
    item_id: Option<ItemId>,
    action: Action,
    changed: JsonText,
    actor: String,
    source: String,
    operation_id: Option<String>,
    created_at: Timestamp,
}

/// An activity on an item or a collection.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "id": 1042, "item_id": 1, "action": "updated", "changed": { "price": { "old": 39.9, "new": 34.9 } },
    "source": { "request_id": "req_01m7w4n5e0k3p8r2v6x9b1d4f7" },
}))]
pub struct ActivityEntry {
    /// The id of the entry.
    pub id: i64,
    /// Always `activity`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The id of the item. `null` for activities on the collection.
    pub item_id: Option<ItemId>,
    /// The type of activity.
    pub action: Action,
    /// The changes by field key, each with `old` and `new`.
    #[schema(value_type = Object)]
    pub changed: JsonText,
    /// Who performed the action.
    pub actor: Actor,
    /// What caused the change.
    pub source: Source,
    /// Shared by all changes of one bulk request or import.
    pub operation_id: Option<String>,
    /// When the action was performed.
    pub created_at: Timestamp,
}

impl ActivityRow {
    /// As it goes out.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn entry(self) -> Result<ActivityEntry> {
        Ok(ActivityEntry {
            id: self.id,
            object: "activity",
            collection_id: self.collection_id,
            item_id: self.item_id,
            action: self.action,
            changed: stored::changes(self.changed)?,
            actor: stored::actor(self.actor)?,
            source: stored::source(self.source)?,
            operation_id: self.operation_id,
            created_at: self.created_at,
        })
    }
}

/// What was done to an item, the newest first.
///
/// # Errors
/// 400 `validation_error` for a cursor that is none, or the database's.
pub fn of_item(
    read: &mut Read,
    workspace: WorkspaceId,
    item: ItemId,
    page: &OptInPage,
) -> Result<Vec<ActivityRow>> {
    of_items(read, workspace, &[item], page)
}

/// What was done to some items, the newest first.
///
/// # Errors
/// 400 `validation_error` for a cursor that is none, or the database's.
pub fn of_items(
    read: &mut Read,
    workspace: WorkspaceId,
    items: &[ItemId],
    page: &OptInPage,
) -> Result<Vec<ActivityRow>> {
    let mut query = item_activity::table
        .filter(item_activity::item_id.eq_any(items))
        .filter(item_activity::workspace_id.eq(workspace))
        .order(item_activity::id.desc())
        .limit(page.fetch())
        .select(ActivityRow::as_select())
        .into_boxed();
    if let Some(after) = page.after::<i64>()? {
        query = query.filter(item_activity::id.lt(after));
    }
    Ok(query.load(read.connection())?)
}
