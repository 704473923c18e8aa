//! Links to exports of contacts.

use super::list::ContactFilters;
use crate::record::find::contacts;
use files::Files;
use model::{Caller, Result};
use operation::{Json, Query, State, operation};
use query::Planner;
use records::shape::Shapes;
use store::Read;
use transfer::exports::{ExportLink, ExportQuery};

/// A signed link to the contacts as CSV or JSON Lines
///
/// Accepts the filters and the order of the contact list. The link works for 15 minutes and returns the contacts as they
/// are when it is opened. In CSV, an apostrophe is added before text that a spreadsheet would evaluate as a formula; an
/// import removes it.
#[operation(get "/contacts/export", scope = "contacts:read")]
pub fn export_contacts(
    read: &mut Read,
    caller: &Caller,
    filters: ContactFilters,
    Query(query): Query<ExportQuery>,
    shapes: State<Shapes>,
    planner: State<Planner>,
    files: State<Files>,
) -> Result<Json<ExportLink>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let selection = filters.read(read, &shape)?;
    // Reading one row rejects invalid filters now rather than when the link is opened.
    selection.query.page(read, &planner.0, &shape, None, 1)?;
    let now = read.now();
    Ok(Json(query.link(&shape, filters.into_pairs(), &files.0, now)?))
}
