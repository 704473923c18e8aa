//! Operations that delete and restore items.

use super::answer::{self, ItemAnswer};
use super::item::Item;
use super::model::ItemDeletion;
use model::{Caller, Code, CollectionId, Error, ItemId, Result};
use operation::{Deleted, IfMatch, Path, Query, State, operation};
use records::links;
use records::rows;
use records::rows::Editor;
use records::shape::Shapes;
use store::Tx;

/// Move an item to the trash
///
/// Moves the item to the trash, where it stays for 30 days and can be restored. With `permanent=true` it is deleted
/// permanently, even from the trash.
#[operation(delete "/collections/{collectionId}/items/{itemId}", scope = "items:write")]
pub fn delete_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Query(query): Query<ItemDeletion>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Deleted<Item<'static>>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    if query.permanent {
        links::hold_purged(tx, &shapes.0, editor.shape.workspace, &[item_id])?;
    } else {
        links::hold_leaving(tx, &shapes.0, editor.shape.workspace, &[item_id])?;
    }
    let row = rows::find_locked(tx, &editor.shape, item_id)?
        .filter(|row| query.permanent || row.trashed_at.is_none())
        .ok_or_else(|| Error::not_found("item"))?;
    rows::expect_version(&editor.shape, &row, if_match.into())?;
    if query.permanent {
        editor.writer().destroy(tx, &row)?;
    } else {
        editor.writer().trash(tx, &row)?;
    }
    Ok(Deleted::of("item", item_id))
}

/// Bring an item back from the trash
///
/// Restores the item with its values. If another item now has a value that must be unique, the request is rejected with
/// 409 `duplicate_value`. An item that is not in the trash is a 409 `invalid_state`.
#[operation(post "/collections/{collectionId}/items/{itemId}/restore", scope = "items:write")]
pub fn restore_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    links::hold_returning(tx, &shapes.0, editor.shape.workspace, item_id)?;
    let row = rows::find_locked(tx, &editor.shape, item_id)?.ok_or_else(|| Error::not_found("item"))?;
    if row.trashed_at.is_none() {
        return Err(Error::new(Code::InvalidState, "The item is not in the trash.")
            .with("details", serde_json::json!({ "state": "live" })));
    }
    let row = editor.writer().restore(tx, &row)?;
    answer::shown(&editor.shape, &row)
}
