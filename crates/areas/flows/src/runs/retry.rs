//! Retries of runs that failed, were cancelled, expired, or pause.

use super::row::{FlowPauseReason, FlowRunMode, FlowRunStatus, FlowTriggerType, RunContent, RunRow};
use super::start::{self, NewRun, TestRun};
use super::steps::FlowStepStatus;
use crate::engine::FlowEngine;
use crate::schema::{flow_runs, flow_steps, flow_waits};
use diesel::prelude::*;
use flow_machine::State;
use model::{Caller, Code, Error, FlowRunId, JsonText, Result, Timestamp, string_enum};
use serde::Deserialize;
use serde_json::{Map, Value};
use store::Tx;
use utoipa::ToSchema;

string_enum! {
    /// From where a run is repeated.
    #[derive(Default)]
    pub enum FlowRetryFrom {
        /// From the nodes at which it stopped.
        #[default]
        FailedStep = "failed_step",
        /// From a node.
        Node = "node",
        /// From the start, as a new run.
        Start = "start",
    }
}

/// How to repeat a run.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RetryFlowRun, example = json!({ "from": "failed_step" }))]
pub struct Retry {
    /// From where.
    #[serde(default)]
    from: FlowRetryFrom,
    /// The node, with `from: node`. It must not be in the body of a loop.
    #[schema(max_length = 40)]
    #[serde(default)]
    node_id: Option<String>,
    /// Other settings for the first time that the node is executed: those of `node_id`, or of the node that failed.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    input: Option<Map<String, Value>>,
    /// Whether steps that are repeated have their effects once more.
    #[serde(default)]
    fresh_effects: bool,
}

/// Repeats a run. Returns the id of the run that goes on.
pub(super) fn retry(
    tx: &mut Tx,
    engine: &FlowEngine,
    caller: &Caller,
    row: RunRow,
    body: &Retry,
) -> Result<FlowRunId> {
    if body.node_id.is_some() != (body.from == FlowRetryFrom::Node) {
        return Err(Error::invalid("node_id", "goes with `from: node`"));
    }
    if body.from == FlowRetryFrom::Start {
        if body.input.is_some() {
            return Err(Error::invalid("input", "does not go with `from: start`"));
        }
        return from_start(tx, engine, caller, &row);
    }
    expect_stopped(&row)?;
    let executed = match row.version {
        Some(version) => engine.version(tx, row.workspace_id, row.flow_id, version)?,
        None => {
            let message = "A test run of a draft is repeated from the start.";
            return Err(Error::new(Code::InvalidState, message).param("from"));
        }
    };
    let days = executed.settings.run_timeout_days;
    let Some(state) = &row.state else {
        // It paused or was ended before it began, so it begins.
        if body.from == FlowRetryFrom::Node || body.input.is_some() {
            let message = "The run has not begun: it has no node to go on from.";
            return Err(Error::new(Code::InvalidState, message).param("from"));
        }
        reopen(tx, engine, &row, None, days)?;
        return Ok(row.id);
    };
    let mut state: State = state.parse()?;
    let program = &executed.program;
    match &body.node_id {
        Some(node) => {
            if !program.restart_at(&mut state, node) {
                return Err(Error::invalid(
                    "node_id",
                    "must name a node of the flow that is not its trigger",
                ));
            }
        }
        None => program.resume(&mut state),
    }
    if let Some(input) = &body.input {
        let failed = body.node_id.clone().or_else(|| state.nodes().next().map(str::to_owned));
        if let Some(node) = failed {
            program.edit(&mut state, &node, Value::Object(input.clone()));
        }
    }
    if state.nodes().next().is_none() {
        let message = "The run stopped at no node. Send `from: start` or `from: node`.";
        return Err(Error::new(Code::InvalidState, message).param("from"));
    }
    if body.fresh_effects {
        state.renew_all_keys();
    }
    reopen(tx, engine, &row, Some(&state), days)?;
    Ok(row.id)
}

/// Lets a run go on with a state, or begin, as another attempt.
fn reopen(tx: &mut Tx, engine: &FlowEngine, row: &RunRow, state: Option<&State>, days: i64) -> Result<()> {
    let now = tx.now();
    let steps = flow_steps::table.filter(flow_steps::run_id.eq(&row.id));
    diesel::update(steps.filter(flow_steps::status.eq_any(FlowStepStatus::OPEN)))
        .set((flow_steps::status.eq(FlowStepStatus::Cancelled), flow_steps::ended_at.eq(now)))
        .execute(tx.connection())?;
    diesel::delete(flow_waits::table.filter(flow_waits::run_id.eq(&row.id))).execute(tx.connection())?;
    let updated = diesel::update(flow_runs::table.find(&row.id).filter(flow_runs::epoch.eq(row.epoch)))
        .set((
            flow_runs::status.eq(FlowRunStatus::Queued),
            flow_runs::pause_reason.eq(None::<FlowPauseReason>),
            flow_runs::state.eq(state.map(JsonText::of)),
            flow_runs::output.eq(None::<JsonText>),
            flow_runs::error.eq(None::<JsonText>),
            flow_runs::attempt.eq(row.attempt + 1),
            flow_runs::epoch.eq(row.epoch + 1),
            flow_runs::wake_at.eq(now),
            flow_runs::lease_until.eq(None::<Timestamp>),
            flow_runs::expires_at.eq(now.plus_seconds(days.saturating_mul(86_400))),
            flow_runs::ended_at.eq(None::<Timestamp>),
        ))
        .execute(tx.connection())?;
    if updated == 0 {
        return Err(Error::new(Code::InvalidState, "The run is being repeated already."));
    }
    engine.wake_after(tx);
    Ok(())
}

/// Makes a new run with the same input.
fn from_start(tx: &mut Tx, engine: &FlowEngine, caller: &Caller, row: &RunRow) -> Result<FlowRunId> {
    let content: RunContent = row.content.parse()?;
    let test = (row.mode == FlowRunMode::Test).then(|| TestRun {
        key: caller.key.id.clone(),
        lineage: caller.key.lineage.clone(),
        is_of_draft: row.version.is_none(),
        replies: content.replies.clone(),
    });
    let new = NewRun {
        input: content.input,
        payload: content.payload,
        contact: row.contact_id,
        livemode: row.livemode,
        trigger: FlowTriggerType::Api,
        test,
        retry_of: Some(row.id.clone()),
        ..NewRun::of_request(caller, row.flow_id)
    };
    start::start(engine, tx, &new)?.run()
}

/// Refuses a run that is under way, or has done its work.
fn expect_stopped(row: &RunRow) -> Result<()> {
    let is_stopped = row.status.is_final() || row.status == FlowRunStatus::Paused;
    if is_stopped && row.status != FlowRunStatus::Completed {
        return Ok(());
    }
    let message = format!("The run is {}.", row.status.as_str());
    Err(Error::new(Code::InvalidState, message))
}
