//! `GET /billing/executions` and `GET /billing/executions/{executionId}`.

use super::ledger::{LedgerEntry, of_run};
use crate::schema::executions;
use diesel::prelude::*;
use model::{AgentId, Caller, ExecutionId, KeyId, Result, StepId, Timestamp};
use operation::{Json, OffsetList, OffsetPage, Path, State, operation};
use ports::{RunTraces, TraceStep};
use serde::Serialize;
use std::sync::Arc;
use store::{OneRow, Read};
use utoipa::ToSchema;

/// Where the steps of executions are found. A service that operations ask for.
pub struct Traces(pub Arc<dyn RunTraces>);

/// Work that consumed Energy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Execution {
    /// Always `execution`.
    object: &'static str,
    #[serde(flatten)]
    row: StoredExecution,
    /// The steps of this attempt in order. Only when a single execution is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    steps: Option<Vec<ExecutionStep>>,
    /// The ledger entries of this attempt. Only when a single execution is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    entries: Option<Vec<LedgerEntry>>,
}

/// What was executed, and its cost.
#[derive(Debug, Clone, Serialize, ToSchema, Queryable, Selectable)]
#[diesel(table_name = executions)]
#[schema(as = ExecutionCost)]
#[schema(example = json!({
    "kind": "run", "source_id": "run_01m7w4n5e0k3p8r2v6x9b1d4f7", "status": "completed", "livemode": true, "energy": 12,
    "usd_micros": 12000, "key_id": "key_01m7w4n5e0k3p8r2v6x9b1d4f7", "agent_id": 1, "model": "balanced",
}))]
struct StoredExecution {
    /// The id.
    id: ExecutionId,
    /// The type of work, such as `run`.
    kind: String,
    /// The id of the object, such as that of a run. A run that failed and was restarted has one execution for each
    /// attempt.
    source_id: String,
    /// The final status.
    status: String,
    /// Whether it was executed with a live key. Work of test keys costs no Energy.
    livemode: bool,
    /// The Energy spent, after refunds.
    energy: i64,
    /// The value of that Energy in millionths of a US dollar.
    usd_micros: i64,
    /// The key of the request, or `null`.
    key_id: Option<KeyId>,
    /// The id of the agent, or `null`.
    agent_id: Option<AgentId>,
    /// The model that was used last, or `null`.
    model: Option<String>,
    /// When it ended.
    created_at: Timestamp,
}

/// A step of an execution.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ExecutionStep {
    /// The id.
    id: StepId,
    /// The position, as in the `step` of ledger entries.
    position: i64,
    /// The type of step, such as a model call or a tool call.
    kind: String,
    /// The name of the model or tool.
    name: String,
    /// The final status.
    status: String,
    /// The number of input tokens.
    input_tokens: i64,
    /// The number of output tokens.
    output_tokens: i64,
    /// The Energy spent, after refunds.
    energy: i64,
    /// When it started.
    started_at: Timestamp,
    /// When the step ended. `null` while it executes.
    completed_at: Option<Timestamp>,
}

impl StoredExecution {
    fn show(self) -> Execution {
        Execution { object: "execution", row: self, steps: None, entries: None }
    }
}

/// What spent Energy
///
/// Lists everything that consumed Energy, newest first, with its cost. Steps and ledger entries are left out; get a
/// single execution to see them.
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
///
/// Returns the cost of one execution with its steps and ledger entries.
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
