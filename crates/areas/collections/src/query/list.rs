//! The operation that lists the items of a collection.

use crate::items::Item;
use auth::Seal;
use model::{Caller, CollectionId, Result};
use operation::{Cursors, Describe, FromInput, Input, Path, Query, RawCursorList, State, With, operation};
use query::{PlacedRow, Planner, QueryParams, cursor_at, place_behind};
use records::selection::Selection;
use records::shape::{self, Shapes};
use serde::Deserialize;
use std::sync::Arc;
use store::{CursorPage, Read};
use utoipa::IntoParams;

/// The parsed parameters of a list: filters, order and selected fields.
#[derive(Debug, Clone)]
pub struct Listing {
    params: QueryParams,
    selection: Selection,
    trashed: bool,
    /// The key that signs cursors.
    seal: Arc<Seal>,
}

#[derive(Debug, Clone, Deserialize, IntoParams)]
struct TrashedQuery {
    /// `true` lists the items in the trash instead.
    #[serde(default)]
    trashed: bool,
}

impl FromInput for Listing {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let Query(TrashedQuery { trashed }) = Query::from_input(input, name)?;
        let seal = input.services.get()?;
        Ok(Self {
            params: QueryParams::from_input(input, name)?,
            selection: Selection::from_input(input, name)?,
            trashed,
            seal,
        })
    }

    fn describe(describe: &mut Describe, name: &'static str) {
        QueryParams::describe(describe, name);
        Selection::describe(describe, name);
        describe.query_parameters::<TrashedQuery>();
    }
}

/// List items with filters and sort
///
/// Lists the items that match the filter, in the given order. `starting_after` accepts the `next_cursor` of the
/// previous page or the id of its last item. Prefer `next_cursor`: it remembers the item's position, so that the next
/// page is correct even if the item was changed. The header `X-Svc-Query-Plan` shows how the query was executed and how
/// many items were read.
#[operation(get "/collections/{collectionId}/items", scope = "items:read")]
pub fn list_items(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    listing: Listing,
    page: CursorPage,
    shapes: State<Shapes>,
    planner: State<Planner>,
) -> Result<With<RawCursorList<Item<'static>>>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let Listing { params, selection, trashed, seal } = listing;
    let parsed = params.read(read, &shape, trashed)?;
    let cursors = Cursors::new(seal, "listItems", shape.workspace, parsed.bound_to);
    let after = page.after::<String>()?;
    let after = after.map(|after| place_behind(read, &shape, &parsed.query, &cursors, &after)).transpose()?;
    let need = usize::try_from(page.fetch()).unwrap_or(1);
    let found = query::counted_page(read, &planner.0, &shape, &parsed.query, after.as_deref(), need)?;
    let rows: Vec<_> = found.found.iter().map(|found| &found.row).collect();
    let printer = selection.printer(read, &shapes.0, &shape, parsed.visible.as_deref(), &rows)?;
    let mut printed = Vec::with_capacity(found.found.len());
    for found in &found.found {
        let mut text = String::with_capacity(found.row.data.as_str().len() + 512);
        printer.print(&found.row, &mut text)?;
        printed.push((found, text));
    }
    let cursor = |last: &(&PlacedRow, String)| cursor_at(&cursors, &last.0.place);
    let answer = RawCursorList::of(&page, &printed, |(_, text), out| out.push_str(text), cursor);
    Ok(With { answer, headers: vec![found.report.header()] })
}
