//! Operations on many items in one request and one transaction: create, update, upsert, delete.

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
///
/// Creates items in one transaction. In the mode `atomic`, one invalid row rejects the whole request; in the mode
/// `partial`, valid rows are stored and the others are reported. The report has one result for each row.
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
/// Changes items in the order of the rows, so that a row sees the changes of earlier rows. In the mode `atomic`, one
/// invalid row rejects the whole request. The report has one result for each row.
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
/// A row matches the item that has the same values in the fields of `match_on`. Without such an item, a new one is
/// created; several matches are an error, `ambiguous_match`. A row that changes nothing is `unchanged`: its item keeps
/// its version, and no event is published.
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
/// Moves the items to the trash. With `permanent` they are deleted permanently, including items that are already in the
/// trash.
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
