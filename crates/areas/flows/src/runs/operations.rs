//! Operations on runs.

use super::model::{Run, RunQuery, StartRun, Step};
use super::retry::{Retry, retry};
use super::row::{FlowRunMode, FlowRunStatus, RunRow};
use super::start::{self, NewRun, TestRun};
use super::steps::StepRow;
use super::waits::WaitRow;
use crate::engine::FlowEngine;
use crate::schema::{flow_runs, flow_steps, flow_waits};
use diesel::prelude::*;
use model::{Caller, Code, ContactId, Error, FlowId, FlowRunId, Result, WorkspaceId};
use operation::{Body, Created, Cx, Json, OptIn, OptInList, Path, Query, State, operation};
use ports::{ContactRef, People};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use store::{OptInPage, Read, Tx};

/// Start a run of the published version, or a test run of the draft
///
/// Returns the run at once, or after its end if `wait_seconds` is long enough. The run acts for the key that published the
/// version. With a test key, or if a test key published it, its effects outside are simulated. A contact that has a run of a flow
/// which allows one is a 409 `invalid_state` with the run in `details.run_id`.
#[operation(post "/workspaces/{workspaceId}/flows/{flowId}/runs", scope = "automations:execute")]
pub(crate) async fn start_flow_run(
    cx: &Cx,
    Path(flow_id): Path<FlowId>,
    Body(body): Body<StartRun>,
    State(engine): State<FlowEngine>,
    State(people): State<People>,
) -> Result<Created<Run>> {
    let (caller, workspace) = (cx.caller.clone(), cx.caller.workspace_id());
    let patience = Duration::from_secs(body.wait_seconds.unsigned_abs());
    let asked = new_run(&caller, flow_id, &body);
    let starter = engine.clone();
    let id = cx.change(move |tx| {
        let mut new = asked.clone();
        if let Some(contact) = new.contact {
            let found = people.find(tx, workspace, &ContactRef::from(contact));
            new.contact = Some(found.map_err(|error| error.param("contact_id"))?.id);
        }
        start::start(&starter, tx, &new)?.run().map_err(|error| error.param("contact_id"))
    });
    let id = id.await?;
    if !patience.is_zero() {
        engine.await_answer(workspace, id.clone(), patience).await?;
    }
    Ok(Created(cx.db.read(move |read| shown(read, workspace, &id)).await?))
}

fn new_run(caller: &Caller, flow: FlowId, body: &StartRun) -> NewRun {
    let is_test = body.mode == Some(FlowRunMode::Test);
    let test = is_test.then(|| TestRun {
        key: caller.key.id.clone(),
        lineage: caller.key.lineage.clone(),
        is_of_draft: !body.published,
        replies: body.replies.clone(),
    });
    NewRun {
        input: Value::Object(body.input.clone()),
        contact: body.contact_id,
        livemode: caller.livemode() && !is_test,
        test,
        ..NewRun::of_request(caller, flow)
    }
}

fn shown(read: &mut Read, workspace: WorkspaceId, id: &FlowRunId) -> Result<Run> {
    let row = RunRow::find(read, workspace, id)?;
    let waits = flow_waits::table
        .filter(flow_waits::run_id.eq(id))
        .order(flow_waits::token)
        .select(WaitRow::as_select())
        .load(read.connection())?;
    Run::of(row, &waits)
}

/// List flow runs
///
/// Lists the runs of the workspace, newest first.
#[operation(get "/workspaces/{workspaceId}/flow-runs", scope = "automations:read")]
pub fn list_flow_runs(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<RunQuery>,
    page: OptIn,
    people: State<People>,
) -> Result<OptInList<Run>> {
    let workspace = caller.workspace_id();
    let contact = match query.contact_id {
        // The id of a contact that was merged finds the runs of the one that remains.
        Some(id) => people.0.ids_of(read, workspace, id)?.first().copied(),
        None => None,
    };
    let rows = list(read, workspace, &query, contact, page.page())?;
    let mut waits: HashMap<FlowRunId, Vec<WaitRow>> = HashMap::new();
    let ids: Vec<&FlowRunId> = rows.iter().map(|row| &row.id).collect();
    let all: Vec<WaitRow> = flow_waits::table
        .filter(flow_waits::run_id.eq_any(ids))
        .order(flow_waits::token)
        .select(WaitRow::as_select())
        .load(read.connection())?;
    for wait in all {
        waits.entry(wait.run_id.clone()).or_default().push(wait);
    }
    let runs = rows.into_iter().map(|row| {
        let own = waits.remove(&row.id).unwrap_or_default();
        Run::of(row, &own)
    });
    Ok(page.answer(runs.collect::<Result<Vec<_>>>()?, |run| run.id().to_string()))
}

fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    query: &RunQuery,
    contact: Option<ContactId>,
    page: &OptInPage,
) -> Result<Vec<RunRow>> {
    let mut runs = flow_runs::table
        .filter(flow_runs::workspace_id.eq(workspace))
        .order(flow_runs::id.desc())
        .limit(page.fetch())
        .select(RunRow::as_select())
        .into_boxed();
    if let Some(flow) = query.flow_id {
        runs = runs.filter(flow_runs::flow_id.eq(flow));
    }
    if let Some(status) = query.status {
        runs = runs.filter(flow_runs::status.eq(status));
    }
    if let Some(contact) = contact {
        runs = runs.filter(flow_runs::contact_id.eq(contact));
    }
    if let Some(root) = &query.root_run_id {
        runs = runs.filter(flow_runs::root_run_id.eq(root.clone()));
    }
    if let Some(after) = page.after::<FlowRunId>()? {
        runs = runs.filter(flow_runs::id.lt(after));
    }
    Ok(runs.load(read.connection())?)
}

/// One flow run
///
/// Returns a run with what it waits for.
#[operation(get "/workspaces/{workspaceId}/flow-runs/{runId}", scope = "automations:read")]
pub fn get_flow_run(read: &mut Read, caller: &Caller, Path(run_id): Path<FlowRunId>) -> Result<Json<Run>> {
    Ok(Json(shown(read, caller.workspace_id(), &run_id)?))
}

/// Each node's input, output, error and duration
///
/// Lists the steps of a run in the order in which they began: a node in a loop, or one that was tried again, has several.
#[operation(get "/workspaces/{workspaceId}/flow-runs/{runId}/steps", scope = "automations:read")]
pub fn list_flow_run_steps(
    read: &mut Read,
    caller: &Caller,
    Path(run_id): Path<FlowRunId>,
    page: OptIn,
) -> Result<OptInList<Step>> {
    let row = RunRow::find(read, caller.workspace_id(), &run_id)?;
    let mut query = flow_steps::table
        .filter(flow_steps::run_id.eq(row.id))
        .order(flow_steps::position)
        .limit(page.page().fetch())
        .select(StepRow::as_select())
        .into_boxed();
    if let Some(after) = page.page().after::<i64>()? {
        query = query.filter(flow_steps::position.gt(after));
    }
    let rows: Vec<StepRow> = query.load(read.connection())?;
    let steps = rows.into_iter().map(Step::of).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(steps, |step| step.position().to_string()))
}

/// Mark a run cancelled; no new nodes are scheduled
///
/// Ends the run, the flows that it has started, and everything that it waits for. A node that acts at this moment is left to end,
/// and its step records how. A run that was cancelled before is returned as it is; one that ended otherwise is a 409
/// `invalid_state`.
#[operation(post "/workspaces/{workspaceId}/flow-runs/{runId}/cancel", scope = "automations:execute")]
pub fn cancel_flow_run(
    tx: &mut Tx,
    caller: &Caller,
    Path(run_id): Path<FlowRunId>,
    engine: State<FlowEngine>,
) -> Result<Json<Run>> {
    let workspace = caller.workspace_id();
    let row = RunRow::find(tx, workspace, &run_id)?;
    if !engine.0.end_now(tx, row, FlowRunStatus::Cancelled)? {
        let row = RunRow::find(tx, workspace, &run_id)?;
        if row.status != FlowRunStatus::Cancelled {
            let message = format!("The run has ended as {}.", row.status.as_str());
            return Err(Error::new(Code::InvalidState, message));
        }
    }
    Ok(Json(shown(tx, workspace, &run_id)?))
}

/// Run again from the failed node, a given node or the start
///
/// `failed_step` and `node` continue the run on its version, with what its nodes gave before; `start` makes a new run with the same
/// input. A step that is repeated uses the same idempotency key, unless you send `fresh_effects`. A run that is under way is a 409
/// `invalid_state`.
#[operation(post "/workspaces/{workspaceId}/flow-runs/{runId}/retry", scope = "automations:execute")]
pub fn retry_flow_run(
    tx: &mut Tx,
    caller: &Caller,
    Path(run_id): Path<FlowRunId>,
    Body(body): Body<Retry>,
    engine: State<FlowEngine>,
) -> Result<Json<Run>> {
    let workspace = caller.workspace_id();
    let row = RunRow::find(tx, workspace, &run_id)?;
    let id = retry(tx, &engine.0, caller, row, &body)?;
    Ok(Json(shown(tx, workspace, &id)?))
}
