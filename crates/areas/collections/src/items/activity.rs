//! The activity log of an item.

use model::{Caller, CollectionId, Error, ItemId, Result};
use operation::{OptIn, OptInList, Path, State, operation};
use records::activity::{ActivityEntry, ActivityRow, of_item};
use records::rows;
use records::shape::{self, Shapes};
use store::Read;

/// Who changed which field, from what to what
///
/// Lists changes of the item, newest first, also for an item in the trash. Entries are kept for at most the
/// collection's `activity_retention_days`.
#[operation(get "/collections/{collectionId}/items/{itemId}/activity", scope = "items:read", ceiling = 100)]
pub fn list_item_activity(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<ActivityEntry>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let item = rows::find(read, &shape, item_id)?.ok_or_else(|| Error::not_found("item"))?;
    let rows = of_item(read, item.workspace_id, item.id, page.page())?;
    let entries = rows.into_iter().map(ActivityRow::entry).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(entries, |entry| entry.id.to_string()))
}
