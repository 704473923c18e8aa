//! Operations on runs: create, list, read.

use crate::accept::Submitted;
use crate::engine::RunEngine;
use crate::queries::{RunFilter, runs, steps};
use crate::run::{NewRun, Run, RunAnswer, RunStatus, response};
use crate::{approvals, trace};
use model::{AgentId, Caller, Result, RunId, Scope, text_enum};
use operation::{Body, CursorList, CursorPage, Cx, Json, Path, Query, Reply, State, operation};
use serde::Deserialize;
use store::Read;
use utoipa::IntoParams;

/// Run the workspace's agent on a text input
///
/// Waits up to 100 seconds for the answer and returns 200 with the run; a run that takes longer returns 202 and
/// continues to execute. With `background: true` it returns 202 at once, and with `stream: true` it sends server-sent
/// events while the run executes. A run that needs an approval returns with the status `requires_action`.
///
/// With a live key the run spends Energy: it is held before each step and settled after it. With a test key it costs
/// nothing. The run is not bound to a contact. It sees only the given input and the memory of its conversation.
#[operation(post "/runs", scope = "runs:execute", energy)]
pub async fn create_run(
    cx: &Cx,
    Body(new): Body<NewRun>,
    State(engine): State<RunEngine>,
) -> Result<RunAnswer> {
    submit(cx, new, &engine).await
}

/// Run the agent of the named workspace
///
/// The same as `POST /runs`, with the workspace in the path.
#[operation(post "/workspaces/{workspaceId}/runs", scope = "runs:execute", energy)]
pub async fn create_workspace_run(
    cx: &Cx,
    Body(new): Body<NewRun>,
    State(engine): State<RunEngine>,
) -> Result<RunAnswer> {
    submit(cx, new, &engine).await
}

async fn submit(cx: &Cx, new: NewRun, engine: &RunEngine) -> Result<RunAnswer> {
    let submitted = engine.submit(&cx.caller, new, cx.claim.clone()).await?;
    cx.mark_answered();
    Ok(RunAnswer(match submitted {
        Submitted::Run(submission) => {
            cx.note_energy(submission.row.energy);
            let still_running = submission.still_running;
            response::reply(engine.show(submission.row).await?, still_running)?
        }
        Submitted::Events(events) => Reply::events(events),
    }))
}

/// Which runs to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct RunQuery {
    /// Only runs with this status.
    #[serde(default)]
    status: Option<RunStatus>,
    /// Only runs of this agent.
    #[serde(default)]
    #[param(value_type = Option<i64>)]
    agent_id: Option<AgentId>,
    /// Only runs of this conversation.
    #[serde(default)]
    #[param(max_length = 128)]
    conversation_id: Option<String>,
}

/// List runs, newest first
///
/// Lists runs, newest first. Steps and approval links are left out; get a single run to see them.
#[operation(get "/runs", scope = "runs:read")]
pub fn list_runs(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<RunQuery>,
    page: CursorPage,
) -> Result<CursorList<Run>> {
    let filter =
        RunFilter { status: query.status, agent: query.agent_id, conversation: query.conversation_id };
    let rows = runs::list(read, caller.workspace_id(), &filter, &page)?;
    let rows = approvals::shown_in_list(read, caller.workspace_id(), rows)?;
    Ok(CursorList::of(&page, rows, |run| run.id.to_string()))
}

text_enum! {
    /// What to add to the response.
    pub enum Include {
        /// The run's steps.
        Steps = "steps",
    }
}

/// What to add to the response.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct IncludeQuery {
    /// What to add to the response, separated by commas.
    #[serde(default)]
    #[param(inline, style = Form, explode = false, min_items = 1)]
    include: Vec<Include>,
}

/// One run with its steps, usage and cost
///
/// Returns the run with its status, output, usage and cost. Send `include=steps` for its steps. While the run waits for
/// an approval, `required_action` lists the tool calls; keys with `runs:execute` also see the approval link.
#[operation(get "/runs/{runId}", scope = "runs:read")]
pub fn get_run(
    read: &mut Read,
    caller: &Caller,
    Path(run_id): Path<RunId>,
    Query(query): Query<IncludeQuery>,
    engine: State<RunEngine>,
) -> Result<Json<Run>> {
    let row = runs::by_id(read, caller.workspace_id(), &run_id)?;
    let may_answer = caller.key.scopes.contains(Scope::RunsExecute);
    if !query.include.contains(&Include::Steps) {
        return Ok(Json(engine.0.shown(read, row, may_answer)?));
    }
    let steps = steps::of_run(read, caller.workspace_id(), &run_id)?;
    let (settings, _) =
        agents::queries::version_settings(read, row.workspace_id, row.agent_id, row.agent_version)?;
    let items = trace::energy_items(&row, &steps)?;
    let steps = trace::shown(&row, settings, steps)?;
    let mut run = engine.0.shown(read, row, may_answer)?;
    run.energy.items = Some(items);
    run.steps = Some(steps);
    Ok(Json(run))
}
