//! Deleting for good what is in the trash.

use model::{Caller, CollectionId, Result};
use operation::{Json, Path, State, operation};
use records::rows::{Editor, purge};
use records::shape::Shapes;
use serde::Serialize;
use store::Tx;
use utoipa::ToSchema;

/// What becomes of a trash that is emptied.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EmptiedTrash {
    /// Always `item_trash`.
    pub object: &'static str,
    /// The collection.
    pub collection_id: CollectionId,
    /// How many items were in the trash.
    pub count: i64,
    /// Whether they are gone already. More than 1,000 are deleted in the background.
    pub done: bool,
}

/// Delete for good what is in the trash
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
