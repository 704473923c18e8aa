//! Links to exports of items.

use files::Files;
use model::{Caller, CollectionId, Result};
use operation::{Json, Path, Query, State, operation};
use query::{Planner, QueryParams};
use records::shape::{self, Shapes};
use store::Read;
use transfer::exports::{ExportLink, ExportQuery};

/// A signed link to the items as CSV or JSON Lines
///
/// Accepts the filters, order and views of the item list. The link works for 15 minutes and returns the items as they
/// are when it is opened. In CSV, an apostrophe is added before text that a spreadsheet would evaluate as a formula; an
/// import removes it.
#[operation(get "/collections/{collectionId}/items/export", scope = "items:read")]
#[expect(clippy::too_many_arguments, reason = "an operation names each thing that it takes")]
pub fn export_items(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    params: QueryParams,
    Query(query): Query<ExportQuery>,
    shapes: State<Shapes>,
    planner: State<Planner>,
    files: State<Files>,
) -> Result<Json<ExportLink>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let parsed = params.read(read, &shape, false)?;
    // Reading one row rejects invalid queries now rather than when the link is opened.
    parsed.query.page(read, &planner.0, &shape, None, 1)?;
    let now = read.now();
    Ok(Json(query.link(&shape, params.into_pairs(), &files.0, now)?))
}
