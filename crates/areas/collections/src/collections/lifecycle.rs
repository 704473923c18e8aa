//! Operations that archive and delete collections.

use super::events::{CollectionChanged, CollectionData, CollectionEvent};
use super::model::{Collection, CollectionStatus};
use super::{purge, queries};
use model::{Caller, Code, CollectionId, Error, Result};
use operation::{Deleted, Json, Path, State, operation};
use records::Author;
use records::definitions;
use records::publish::{differences, publish, removed};
use records::shape::{self, Shapes};
use serde_json::json;
use store::Tx;

/// Make it read-only and hide it
///
/// Items, fields and views can still be read, but not changed. Lists of collections show it only with
/// `status=archived`. Archiving an archived collection changes nothing.
#[operation(post "/collections/{collectionId}/archive", scope = "collections:write")]
pub fn archive_collection(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    shapes: State<Shapes>,
) -> Result<Json<Collection>> {
    switch(tx, &shapes.0, caller, collection_id, CollectionStatus::Archived)
}

/// Bring an archived collection back
///
/// Makes the collection writable and visible again. Unarchiving an active collection changes nothing.
#[operation(post "/collections/{collectionId}/unarchive", scope = "collections:write")]
pub fn unarchive_collection(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    shapes: State<Shapes>,
) -> Result<Json<Collection>> {
    switch(tx, &shapes.0, caller, collection_id, CollectionStatus::Active)
}

fn switch(
    tx: &mut Tx,
    shapes: &Shapes,
    caller: &Caller,
    id: CollectionId,
    status: CollectionStatus,
) -> Result<Json<Collection>> {
    let author = Author::of(caller);
    let mut row = shape::for_change(tx, author.workspace, id)?;
    let before = queries::after_change(tx, shapes, author.workspace, id)?;
    if before.status == status {
        return Ok(Json(before));
    }
    row.status = status;
    queries::store(tx, &row)?;
    shape::bump(tx, id)?;
    let after = queries::after_change(tx, shapes, author.workspace, id)?;
    let changed = differences(&before, &after)?;
    let data = CollectionChanged { collection: &after, changed: &changed };
    let event = match status {
        CollectionStatus::Active => CollectionEvent::Unarchived(data),
        CollectionStatus::Archived => CollectionEvent::Archived(data),
    };
    publish(tx, &author, id, &changed, &event)?;
    Ok(Json(after))
}

/// Delete a collection with its items
///
/// The collection disappears at once, and its name can be used again. Its items are purged after 30 days. A collection
/// that relation fields of other collections refer to is a 409 `resource_in_use`: delete those fields first.
#[operation(delete "/collections/{collectionId}", scope = "collections:write")]
pub fn delete_collection(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    shapes: State<Shapes>,
) -> Result<Deleted<Collection>> {
    let author = Author::of(caller);
    let mut row = shape::for_change(tx, author.workspace, collection_id)?;
    let before = queries::after_change(tx, &shapes.0, author.workspace, collection_id)?;
    let shape = shape::within_change(tx, &shapes.0, author.workspace, collection_id)?;
    let users = definitions::users::pointing_here(tx, &shape)?;
    if !users.is_empty() {
        let message =
            format!("{} relation fields of other collections refer to this collection.", users.len());
        return Err(Error::new(Code::ResourceInUse, message).with("details", json!({ "used_by": users })));
    }
    let now = tx.now();
    row.trashed_at = Some(now);
    queries::store(tx, &row)?;
    shape::bump(tx, collection_id)?;
    purge::ask(tx, author.workspace, collection_id, now)?;
    let event = CollectionEvent::Deleted(CollectionData { collection: &before });
    publish(tx, &author, collection_id, &removed("collection", &before)?, &event)?;
    Ok(Deleted::of("collection", collection_id))
}
