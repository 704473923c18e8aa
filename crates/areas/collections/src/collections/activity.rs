//! The activity log of a collection.

use diesel::prelude::*;
use model::{Caller, CollectionId, Error, ItemId, KeyId, Result, WorkspaceId};
use operation::{OptIn, OptInList, Path, Query, State, operation};
use records::activity::{Action, ActivityEntry, ActivityRow};
use records::schema::item_activity;
use records::shape::{self, Shapes};
use serde::Deserialize;
use store::{OptInPage, Read};
use utoipa::IntoParams;

/// Which entries to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ActivityQuery {
    /// Only activities of this type. `schema_changed` stands for changes of the collection itself.
    #[serde(default)]
    action: Option<Action>,
    /// Only activities of this item.
    #[serde(default)]
    #[param(value_type = Option<i64>)]
    item_id: Option<ItemId>,
    /// Only activities of the actor with this id, such as `key_…`.
    #[serde(default)]
    #[param(min_length = 1, max_length = 100)]
    actor: Option<String>,
}

/// Who changed what in the collection
///
/// Lists changes of the collection, its fields, views and items, newest first. Entries are kept for at
/// most `activity_retention_days`.
#[operation(get "/collections/{collectionId}/activity", scope = "collections:read", ceiling = 100)]
pub fn list_collection_activity(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Query(query): Query<ActivityQuery>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<ActivityEntry>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let rows = list(read, shape.workspace, collection_id, &query, page.page())?;
    let entries = rows.into_iter().map(ActivityRow::entry).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(entries, |entry| entry.id.to_string()))
}

fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    collection: CollectionId,
    wanted: &ActivityQuery,
    page: &OptInPage,
) -> Result<Vec<ActivityRow>> {
    let mut query = item_activity::table
        .filter(item_activity::collection_id.eq(collection))
        .filter(item_activity::workspace_id.eq(workspace))
        .order(item_activity::id.desc())
        .limit(page.fetch())
        .select(ActivityRow::as_select())
        .into_boxed();
    if let Some(action) = wanted.action {
        query = query.filter(item_activity::action.eq(action.as_str()));
    }
    if let Some(item) = wanted.item_id {
        query = query.filter(item_activity::item_id.eq(item));
    }
    if let Some(actor) = &wanted.actor {
        // An actor is stored as its id if it is an API key, and as JSON that ends with the id otherwise. Keys can
        // have both forms. The pattern is equivalent to: the actor's `id` equals the given one.
        let key = KeyId::parse(actor);
        let id = serde_json::to_string(actor)
            .map_err(Error::internal)?
            .replace('\\', "\\\\")
            .replace('%', "\\%")
            .replace('_', "\\_");
        let is_printed = item_activity::actor.like(format!("%\"id\":{id}}}")).escape('\\');
        query = match key {
            Some(key) => query.filter(item_activity::actor.eq(key.to_string()).or(is_printed)),
            None => query.filter(is_printed),
        };
    }
    if let Some(after) = page.after::<i64>()? {
        query = query.filter(item_activity::id.lt(after));
    }
    Ok(query.load(read.connection())?)
}
