//! The operation for full-text search of items.

use crate::items::Item;
use model::{Caller, CollectionId, Result};
use operation::{PageNumber, Path, RawPageList, State, With, operation};
use query::Planner;
use query::search::{Search, SearchFacts};
use records::shape::{self, Shapes};
use store::Read;

/// Full-text search of the items
///
/// Searches text, e-mail, URL, telephone and select fields. Changes can be found immediately. Combine `q` with the
/// filters of the item list.
#[operation(get "/collections/{collectionId}/items/search", scope = "items:read")]
pub fn search_items(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    search: Search,
    page: PageNumber,
    shapes: State<Shapes>,
    planner: State<Planner>,
) -> Result<With<RawPageList<Item<'static>, SearchFacts>>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let found = search.run(read, &planner.0, &shapes.0, &shape, &page)?;
    let answer = RawPageList::of(page, found.printed, found.total, found.facts);
    Ok(With { answer, headers: vec![found.report.header()] })
}
