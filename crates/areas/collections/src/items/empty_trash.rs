//! The operation that empties the trash of a collection.

use model::{Caller, CollectionId, Result};
use operation::{Json, Path, State, operation};
use records::rows::{Editor, purge};
use records::shape::Shapes;
use serde::Serialize;
use store::Tx;
use utoipa::ToSchema;

/// The result of emptying the trash.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "count": 3, "done": true }))]
pub struct EmptiedTrash {
    /// Always `item_trash`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The number of items in the trash.
    pub count: i64,
    /// Whether the items are already deleted. More than 1,000 items are deleted in the background.
    pub done: bool,
}

/// Delete for good what is in the trash
///
/// Permanently deletes all items in the trash. Up to 1,000 items are deleted at once; more are deleted in the
/// background, and `done` is `false`.
#[operation(delete "/collections/{collectionId}/items/trash", scope = "items:write")]
pub fn empty_item_trash(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    shapes: State<Shapes>,
) -> Result<Json<EmptiedTrash>> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let (count, done) = purge::empty_trash(tx, &editor.writer())?;
    Ok(Json(EmptiedTrash { object: "item_trash", collection_id, count, done }))
}
