//! `GET /billing/executions` and `GET /billing/executions/{executionId}`.

use super::ledger::{LedgerEntry, of_run};
use crate::schema::executions;
use diesel::prelude::*;
use model::{AgentId, Caller, ExecutionId, KeyId, Result, StepId, Timestamp};
use operation::ports::{RunTraces, TraceStep};
use operation::{Json, OffsetList, OffsetPage, Path, State, operation};
use serde::Serialize;
use std::sync::Arc;
use store::{OneRow, Read};
use utoipa::ToSchema;

/// Where the steps of executions are found. A service that operations ask for.
pub struct Traces(pub Arc<dyn RunTraces>);

/// Something that has a price.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Execution {
    /// Always `execution`.
    object: &'static str,
    #[serde(flatten)]
    row: StoredExecution,
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
struct StoredExecution {
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
#[derive(Debug, Clone, Serialize, ToSchema)]
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

impl StoredExecution {
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
    let rows: Vec<StoredExecution> = own()
        .order(executions::id.desc())
        .limit(page.limit)
        .offset(page.offset)
        .select(StoredExecution::as_select())
        .load(read.connection())?;
    Ok(OffsetList::of(page, rows.into_iter().map(StoredExecution::show).collect(), total))
}

/// One execution's cost in detail
#[operation(get "/billing/executions/{executionId}", scope = "billing:read")]
pub fn get_execution(
    read: &mut Read,
    caller: &Caller,
    Path(execution_id): Path<ExecutionId>,
    traces: State<Traces>,
) -> Result<Json<Execution>> {
    let workspace = caller.workspace_id();
    let (row, first, last): (StoredExecution, i64, Option<i64>) = executions::table
        .find((workspace, execution_id))
        .select((StoredExecution::as_select(), executions::first_step, executions::last_step))
        .first(read.connection())
        .or_not_found("execution")?;
    // Work without steps in the trace, and what older versions recorded, knows no last one.
    let range = (first, last.unwrap_or(i64::MAX));
    let mut execution = row.show();
    let steps = traces.0.0.steps(read, workspace, &execution.row.source_id, range.0, range.1)?;
    execution.steps = Some(steps.into_iter().map(ExecutionStep::from).collect());
    execution.entries = Some(of_run(read, workspace, &execution.row.source_id, range)?);
    Ok(Json(execution))
}

impl From<TraceStep> for ExecutionStep {
    fn from(step: TraceStep) -> Self {
        Self {
            id: step.id,
            position: step.position,
            kind: step.kind,
            name: step.name,
            status: step.status,
            input_tokens: step.input_tokens,
            output_tokens: step.output_tokens,
            energy: step.energy,
            started_at: step.started_at,
            completed_at: step.completed_at,
        }
    }
}
