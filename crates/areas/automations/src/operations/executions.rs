//! Operations on firings.

use crate::firings::model::{Firing, FiringDetail, FiringQuery};
use crate::firings::row::FiringRow;
use crate::rules::row::AutomationRow;
use crate::schema::automation_firings as table;
use diesel::prelude::*;
use model::{AutomationId, Caller, ContactId, FiringId, Result, WorkspaceId};
use operation::{Json, OptIn, OptInList, Path, Query, Resource, State, operation};
use ports::People;
use store::{OptInPage, Read};

/// Past firings
///
/// Lists what became of each occurrence that fits the trigger, newest first, also of those that did not fire: `reason` says why. They
/// are kept for 30 days by default.
#[operation(get "/automations/{automationId}/executions", scope = "automations:read", ceiling = 1000)]
pub fn list_automation_executions(
    read: &mut Read,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
    Query(query): Query<FiringQuery>,
    page: OptIn,
    people: State<People>,
) -> Result<OptInList<Firing>> {
    let workspace = caller.workspace_id();
    AutomationRow::find(read, workspace, &automation_id)?;
    let contact = match query.contact_id {
        // The id of a contact that was merged finds the firings of the one that remains.
        Some(id) => people.0.ids_of(read, workspace, id)?.first().copied(),
        None => None,
    };
    let rows = list(read, workspace, automation_id, &query, contact, page.page())?;
    let all = rows.iter().map(FiringRow::summary).collect::<Result<Vec<_>>>()?;
    let numbers: Vec<i64> = rows.iter().map(|row| row.number).collect();
    let place = |firing: &Firing| {
        let place = rows.iter().position(|row| row.id == firing.id);
        place.and_then(|place| numbers.get(place)).copied().unwrap_or_default().to_string()
    };
    Ok(page.answer(all, place))
}

fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    automation: AutomationId,
    query: &FiringQuery,
    contact: Option<ContactId>,
    page: &OptInPage,
) -> Result<Vec<FiringRow>> {
    let mut rows = table::table
        .filter(table::automation_id.eq(automation))
        .filter(table::workspace_id.eq(workspace))
        .order(table::number.desc())
        .limit(page.fetch())
        .select(FiringRow::as_select())
        .into_boxed();
    if let Some(status) = query.status {
        rows = rows.filter(table::status.eq(status));
    }
    if let Some(reason) = query.reason {
        rows = rows.filter(table::reason.eq(reason));
    }
    if let Some(contact) = contact {
        rows = rows.filter(table::contact_id.eq(contact));
    }
    if let Some(event) = &query.event_id {
        rows = rows.filter(table::event_id.eq(event));
    }
    if let Some(after) = page.after::<i64>()? {
        rows = rows.filter(table::number.lt(after));
    }
    Ok(rows.load(read.connection())?)
}

/// One firing with its outcome
///
/// Returns a firing with its data, and with the conditions and the values of their parts.
#[operation(get "/automations/{automationId}/executions/{executionId}", scope = "automations:read")]
pub fn get_automation_execution(
    read: &mut Read,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
    Path(execution_id): Path<FiringId>,
) -> Result<Json<FiringDetail>> {
    let row = FiringRow::find(read, caller.workspace_id(), automation_id, &execution_id)?;
    Ok(Json(row.detail()?))
}
