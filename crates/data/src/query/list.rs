//! The list of a collection's items.

use crate::items::Item;
use auth::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Caller, CollectionId, Error, ItemId, Result};
use operation::{Cursors, Describe, FromInput, Input, Path, Query, RawCursorList, State, With, operation};
use records::indexes;
use records::print::Selection;
use records::query::{PlacedRow, Planner, Query as RecordQuery, QueryParams, pick};
use records::rows::find;
use records::shape::{self, Shape, Shapes};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use store::{CursorPage, Read};
use utoipa::IntoParams;

/// Where an item stands in the order of a list: the bytes that it is sorted by.
struct ListPosition(Vec<u8>);

/// As cursors carry it.
impl FromStr for ListPosition {
    type Err = base64::DecodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        URL_SAFE_NO_PAD.decode(text).map(Self)
    }
}

/// Which items are listed, and what of them.
#[derive(Debug, Clone)]
pub struct Listing {
    params: QueryParams,
    selection: Selection,
    trashed: bool,
    /// Signs the cursors.
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
) -> Result<With<RawCursorList<Item>>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let Listing { params, selection, trashed, seal } = listing;
    let parsed = params.read(read, &shape, trashed)?;
    let cursors = Cursors::new(seal, "listItems", shape.workspace, parsed.bound_to);
    let after = page.after::<String>()?;
    let after = after.map(|after| place(read, &shape, &parsed.query, &cursors, &after)).transpose()?;
    let need = usize::try_from(page.fetch()).unwrap_or(1);
    let found = indexes::jobs::counted_page(read, &planner.0, &shape, &parsed.query, after.as_deref(), need)?;
    let rows: Vec<_> = found.found.iter().map(|found| &found.row).collect();
    let printer = selection.printer(read, &shapes.0, &shape, parsed.visible.as_deref(), &rows)?;
    let mut printed = Vec::with_capacity(found.found.len());
    for found in &found.found {
        let mut text = String::with_capacity(found.row.data.as_str().len() + 512);
        printer.print(&found.row, &mut text)?;
        printed.push((found, text));
    }
    let cursor = |last: &(&PlacedRow, String)| cursors.encode(&URL_SAFE_NO_PAD.encode(&last.0.place));
    let answer = RawCursorList::of(&page, &printed, |(_, text), out| out.push_str(text), cursor);
    Ok(With { answer, headers: vec![found.report.header()] })
}

/// The place that a page goes on behind: that of an item as it is now, or the one in a cursor.
fn place(
    read: &mut Read,
    shape: &Shape,
    query: &RecordQuery,
    cursors: &Cursors,
    after: &str,
) -> Result<Vec<u8>> {
    if let Ok(id) = after.parse::<ItemId>() {
        let row = find(read, shape, id)?
            .ok_or_else(|| Error::invalid("starting_after", "is not an item of this collection"))?;
        let mut fields = BTreeSet::new();
        query.sort.fields(&mut fields);
        let keys: Vec<&str> = shape
            .fields
            .iter()
            .filter(|field| fields.contains(&field.id))
            .map(|field| field.key.as_str())
            .collect();
        let data = pick(row.data.as_str(), &keys)?;
        return Ok(query.sort.key(shape, row.record(&data)));
    }
    let ListPosition(place) = cursors.decode(after)?.read()?;
    Ok(place)
}
