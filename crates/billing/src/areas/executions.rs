//! `GET /billing/executions` and `GET /billing/executions/{executionId}`.

use super::ledger::{LedgerEntry, of_run};
use diesel::prelude::*;
use model::{AgentId, Caller, Error, ExecutionId, KeyId, Result, StepId, Timestamp, WorkspaceId};
use operation::{Json, OffsetList, OffsetPage, Path, operation};
use serde::Serialize;
use store::Read;
use store::schema::{executions, run_steps};
use utoipa::ToSchema;

/// Something that has a price.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Execution {
    /// Always `execution`.
    object: &'static str,
    #[serde(flatten)]
    row: Row,
    /// The steps of this attempt in their order: only where one execution is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    steps: Option<Vec<ExecutionStep>>,
    /// What this attempt moved in the ledger: only where one execution is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    entries: Option<Vec<LedgerEntry>>,
}

/// What was done, and what it cost.
#[derive(Debug, Clone, Serialize, ToSchema, Queryable, Selectable)]
#[diesel(table_name = executions)]
#[schema(as = ExecutionCost)]
struct Row {
    /// Its id.
    id: ExecutionId,
    /// What it was, such as `run`.
    kind: String,
    /// The id of what it was: a run's, for a run. A run that failed and began anew has one for each attempt.
    source_id: String,
    /// How it ended.
    status: String,
    /// Whether it was real. What a test key does costs nothing.
    livemode: bool,
    /// Energy that it cost, after a refund.
    energy: i64,
    /// That Energy's money, in millionths of a dollar.
    usd_micros: i64,
    /// The key that asked, or `null`.
    key_id: Option<KeyId>,
    /// The agent that ran, or `null`.
    agent_id: Option<AgentId>,
    /// The model that was used last, or `null`.
    model: Option<String>,
    /// When it ended.
    created_at: Timestamp,
}

/// A step of an execution.
#[derive(Debug, Clone, Serialize, ToSchema, Queryable, Selectable)]
#[diesel(table_name = run_steps)]
pub struct ExecutionStep {
    /// Its id.
    id: StepId,
    /// Its place, as in the ledger's `step`.
    position: i64,
    /// What it was, such as a call of the model or of a tool.
    kind: String,
    /// The model or the tool.
    name: String,
    /// How it ended.
    status: String,
    /// Tokens that went in.
    input_tokens: i64,
    /// Tokens that came out.
    output_tokens: i64,
    /// Energy that it cost.
    energy: i64,
    /// When it began.
    started_at: Timestamp,
    /// When it ended; `null` while it has not.
    completed_at: Option<Timestamp>,
}

impl Row {
    fn show(self) -> Execution {
        Execution { object: "execution", row: self, steps: None, entries: None }
    }
}

/// What spent Energy
///
/// Newest first.
#[operation(get "/billing/executions", scope = "billing:read")]
pub fn list_executions(read: &mut Read, caller: &Caller, page: OffsetPage) -> Result<OffsetList<Execution>> {
    let own = || executions::table.filter(executions::workspace_id.eq(caller.workspace_id()));
    let total = own().count().get_result(read.connection())?;
    let rows: Vec<Row> = own()
        .order(executions::id.desc())
        .limit(page.limit)
        .offset(page.offset)
        .select(Row::as_select())
        .load(read.connection())?;
    Ok(OffsetList::of(page, rows.into_iter().map(Row::show).collect(), total))
}

/// One execution's cost in detail
#[operation(get "/billing/executions/{executionId}", scope = "billing:read")]
pub fn get_execution(
    read: &mut Read,
    caller: &Caller,
    Path(execution_id): Path<ExecutionId>,
) -> Result<Json<Execution>> {
    let workspace = caller.workspace_id();
    let row: Option<(Row, i64, Option<i64>)> = executions::table
        .find((workspace, execution_id))
        .select((Row::as_select(), executions::first_step, executions::last_step))
        .first(read.connection())
        .optional()?;
    let (row, first, last) = row.ok_or_else(|| Error::not_found("execution"))?;
    // Work without steps in the trace, and what older versions recorded, knows no last one.
    let range = (first, last.unwrap_or(i64::MAX));
    let mut execution = row.show();
    execution.steps = Some(steps(read, workspace, &execution.row.source_id, range)?);
    execution.entries = Some(of_run(read, workspace, &execution.row.source_id, range)?);
    Ok(Json(execution))
}

/// A run's steps from `first` to `last`.
fn steps(
    read: &mut Read,
    workspace: WorkspaceId,
    run: &str,
    (first, last): (i64, i64),
) -> Result<Vec<ExecutionStep>> {
    Ok(run_steps::table
        .filter(run_steps::run_id.eq(run))
        .filter(run_steps::position.between(first, last))
        .filter(run_steps::workspace_id.eq(workspace))
        .order(run_steps::position.asc())
        .select(ExecutionStep::as_select())
        .load(read.connection())?)
}
