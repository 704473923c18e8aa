//! Many items in one request, which is one transaction: creating, changing, creating or changing, deleting.

mod model;

use self::model::{BulkCreate, BulkDelete, BulkRow, BulkUpdate, BulkUpsert, Rows};
use super::model::mode;
use ::model::{Caller, CollectionId, Result};
use operation::{Json, Path, State, operation};
use records::bulk::{self, BulkReport};
use records::rows::Editor;
use records::shape::Shapes;
use store::Tx;

/// Create up to 1,000 items
#[operation(post "/collections/{collectionId}/items/bulk-create", scope = "items:write", body_mib = 16)]
pub fn bulk_create_items(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    body: Rows<BulkCreate>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let BulkCreate { mode: bulk_mode, typecast, rows } = &*body.0;
    let inputs = rows.iter().map(|row| &row.data);
    let editor = Editor::open_for(tx, caller, &shapes.0, collection_id, *typecast, inputs)?.in_bulk(caller);
    let rows: Vec<_> = rows.iter().map(BulkRow::row).collect();
    Ok(Json(bulk::create(tx, &editor, *bulk_mode, mode(*typecast), &rows)?))
}

/// Change up to 1,000 items
///
/// The rows are done in order, so one may change what another has changed before.
#[operation(post "/collections/{collectionId}/items/bulk-update", scope = "items:write", body_mib = 16)]
pub fn bulk_update_items(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    body: Rows<BulkUpdate>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let BulkUpdate { mode: bulk_mode, typecast, rows } = &*body.0;
    let inputs = rows.iter().map(|row| &row.data);
    let editor = Editor::open_for(tx, caller, &shapes.0, collection_id, *typecast, inputs)?.in_bulk(caller);
    let changes: Vec<_> = rows.iter().map(|row| row.change(mode(*typecast))).collect();
    Ok(Json(bulk::update(tx, &editor, *bulk_mode, &changes)?))
}

/// Create or change up to 1,000 items by a key field
///
/// A row is for the item with the same values in the fields of `match_on`. Where there is none it becomes a new item,
/// where there are several it is a mistake (`ambiguous_match`). A row that changes nothing is `unchanged`: its item keeps
/// its version, and no event tells of it.
#[operation(post "/collections/{collectionId}/items/bulk-upsert", scope = "items:write", body_mib = 16)]
pub fn bulk_upsert_items(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    body: Rows<BulkUpsert>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let BulkUpsert { mode: bulk_mode, typecast, match_on, on_match, rows } = &*body.0;
    let inputs = rows.iter().map(|row| &row.data);
    let editor = Editor::open_for(tx, caller, &shapes.0, collection_id, *typecast, inputs)?.in_bulk(caller);
    let rows: Vec<_> = rows.iter().map(BulkRow::row).collect();
    Ok(Json(bulk::upsert(tx, &editor, *bulk_mode, mode(*typecast), match_on, *on_match, &rows)?))
}

/// Delete up to 1,000 items
///
/// They are moved to the trash; with `permanent` they are deleted for good, also out of the trash.
#[operation(post "/collections/{collectionId}/items/bulk-delete", scope = "items:write", body_mib = 16)]
pub fn bulk_delete_items(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    body: Rows<BulkDelete>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let BulkDelete { mode, permanent, ids } = &*body.0;
    let editor =
        Editor::open_for(tx, caller, &shapes.0, collection_id, false, std::iter::empty())?.in_bulk(caller);
    Ok(Json(bulk::delete(tx, &shapes.0, &editor, *mode, ids, *permanent)?))
}
