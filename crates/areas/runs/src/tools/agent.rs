//! Calls of tools of type `agent`: the run of another agent within a run, whose answer is the result.
//!
//! The inner run is a run of its own. It is named after the step that calls it, so that a worker that takes the outer run over
//! finds it and waits on. While the outer run waits, it holds nothing that an inner run needs: no thread, no connection and no
//! conversation.

use super::operation_call::CallContext;
use crate::engine::{RunEngine, chain_of};
use crate::queries::{runs, steps};
use crate::run::{
    CalledRun, InnerRun, NewRun, OnBusy, RunRow, RunStatus, RunTrigger, RunTriggerKind, StepRow, ToolOutput,
};
use agents::MOST_DEPTH;
use model::{AgentId, Caller, Code, Error, JsonText, Result, RunId};
use operation::BoxFuture;
use providers::json;
use serde::Serialize;
use std::time::Duration;
use store::{Read, Tx};

/// Why an inner run is cancelled: its outer run ended, or waits for it no longer.
const OUTER_ENDED: &str = "outer_ended";

/// Poll interval for a run that another worker is about to start.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The longest time in which a worker of this process closes the books of a run that was cancelled.
const CLOSING: Duration = Duration::from_secs(2);

/// The part of an inner run that the model receives.
#[derive(Serialize)]
struct Answered {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// JSON where the agent answers with JSON, and otherwise a text.
    answer: Option<JsonText>,
}

impl RunEngine {
    /// Runs another agent. Every failure is an answer to the model, never an error of the run.
    pub(crate) async fn call_agent(
        &self,
        context: &CallContext<'_>,
        agent: AgentId,
        arguments: &JsonText,
        patience: Duration,
    ) -> ToolOutput {
        let input = json::parsed(arguments).get("input").and_then(|input| input.as_str()).map(str::to_owned);
        let Some(input) = input else { return ToolOutput::bad_arguments("lack the text `input`") };
        if input.trim().is_empty() {
            return ToolOutput::bad_arguments("do not fit: `input` is empty");
        }
        let depth = context.execution.plan.inner.as_ref().map_or(0, |inner| inner.depth) + 1;
        if depth > MOST_DEPTH {
            return ToolOutput::error(format!("agents can call each other at most {MOST_DEPTH} deep"));
        }
        let cancel = context.execution.active.cancel.clone();
        let waiting = async {
            let run = self.start_inner(context, agent, input, depth, patience).await?;
            let ended = self.ended_row_of(context.execution.row.workspace_id, run.clone());
            let ended = tokio::select! {
                ended = tokio::time::timeout(patience, ended) => ended.ok(),
                () = cancel.cancelled() => None,
            };
            let row = match ended {
                Some(row) => row?,
                None => self.stop_inner(context, run).await?,
            };
            self.db().read(move |read| Ok((spent(read, &row)?, row.clone()))).await
        };
        match waiting.await {
            Ok((energy, row)) => output(row, energy),
            Err(error) if error.code() != Code::InternalError => ToolOutput::error(error.message()),
            Err(error) => {
                tracing::error!(run_id = %context.execution.row.id, ?error, "an agent could not be called");
                ToolOutput::error("the agent cannot be called")
            }
        }
    }

    /// Starts the inner run of a step, or finds the one that an earlier worker started.
    async fn start_inner(
        &self,
        context: &CallContext<'_>,
        agent: AgentId,
        input: String,
        depth: usize,
        patience: Duration,
    ) -> Result<RunId> {
        let execution = context.execution;
        let row = &execution.row;
        let chain = chain_of(row)?.map(|chain| chain.next());
        let mut caller = self.standing_caller(row.workspace_id, &row.key_id, chain).await?;
        caller.trace = Some(context.trace.clone());
        let (charged, month) = execution.charged_agent();
        let spent = row.energy.saturating_add(execution.inner_energy);
        let inner = InnerRun {
            outer: row.id.clone(),
            depth,
            agent: charged,
            month,
            energy: execution.energy_limit().map(|limit| limit.saturating_sub(spent).max(0)),
            // It ends a little earlier than its outer run stops to wait, so that what it has by then is not lost.
            timeout_seconds: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX).saturating_sub(1).max(1),
        };
        let new = NewRun {
            input,
            conversation_id: None,
            agent_id: Some(agent),
            agent_version: None,
            background: true,
            stream: false,
            response_format: None,
            max_steps: None,
            timeout_seconds: None,
            metadata: None,
            on_busy: OnBusy::default(),
            trigger: RunTrigger { kind: RunTriggerKind::Agent, id: Some(row.id.to_string()) },
            answering: execution.plan.caller.answering,
            question: None,
            inner: Some(inner),
            energy_limit: None,
            reading_tier: None,
        };
        let once = format!("run:{}", context.step.id);
        let late = |_| Error::new(Code::ServiceUnavailable, "The agent could not be started in time.");
        tokio::time::timeout(patience, self.starting(caller, once, new)).await.map_err(late)?
    }

    /// Starts a run. It is boxed because the work on a run contains the work on its inner runs.
    fn starting(&self, caller: Caller, once: String, new: NewRun) -> BoxFuture<Result<RunId>> {
        let engine = self.clone();
        Box::pin(async move {
            loop {
                match engine.start_named(&caller, &once, new.clone()).await {
                    Err(error) if error.code() == Code::IdempotencyInProgress => {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                    started => return started,
                }
            }
        })
    }

    /// Cancels an inner run for which its outer run waits no longer. It goes on if another worker has taken the outer run over,
    /// which waits for it then.
    async fn stop_inner(&self, context: &CallContext<'_>, inner: RunId) -> Result<RunRow> {
        let (engine, outer) = (self.clone(), context.execution.row.clone());
        let stopped = self.db().write(move |tx| {
            let now = runs::by_id(tx, outer.workspace_id, &outer.id)?;
            let row = runs::by_id(tx, outer.workspace_id, &inner)?;
            if !now.status.is_final() && now.epoch != outer.epoch {
                return Ok(row);
            }
            Ok(engine.cancel(tx, &row, OUTER_ENDED)?.unwrap_or(row))
        });
        let row = stopped.await?;
        if let Some(closed) = self.active().end_of(&row.id) {
            // Its worker settles the step that it is at.
            let _ = tokio::time::timeout(CLOSING, closed.cancelled()).await;
        }
        Ok(row)
    }

    /// Cancels a run if it is within a run that has ended: the worker of that may have died before it could do so. Returns whether
    /// it did.
    pub(crate) fn cancel_orphan(&self, tx: &mut Tx, row: &RunRow, inner: Option<&InnerRun>) -> Result<bool> {
        let Some(inner) = inner else { return Ok(false) };
        if !runs::by_id(tx, row.workspace_id, &inner.outer)?.status.is_final() {
            return Ok(false);
        }
        Ok(self.cancel(tx, row, OUTER_ENDED)?.is_some())
    }
}

/// Returns the Energy that a run spent, with the runs within it.
fn spent(read: &mut Read, row: &RunRow) -> Result<i64> {
    let steps = steps::of_run(read, row.workspace_id, &row.id)?;
    let own = match row.status {
        RunStatus::Failed => 0,
        // The worker of a cancelled run may not have written the sum yet.
        RunStatus::Cancelled => steps.iter().map(|step| step.energy).sum(),
        _ => row.energy,
    };
    let run = |step: &StepRow| step.output.as_ref()?.parse::<ToolOutput>().ok()?.run;
    let within: i64 = steps.iter().filter(|step| step.is_tool()).filter_map(run).map(|run| run.energy).sum();
    Ok(own.saturating_add(within))
}

/// Returns the result for the model of an inner run.
fn output(row: RunRow, energy: i64) -> ToolOutput {
    let is_json = row.options().is_ok_and(|options| options.json);
    let answer = row.output.as_ref().map(|text| match json::text_of(text).filter(|_| is_json) {
        Some(json) => json,
        None => JsonText::of(text),
    });
    let reason = row.incomplete_reason.as_deref().unwrap_or_default();
    let error = match row.status {
        RunStatus::Completed => None,
        RunStatus::Incomplete => Some(format!("the agent did not finish: {reason}")),
        RunStatus::Cancelled if reason == OUTER_ENDED => Some(
            "the agent took longer than the tool's timeout and was stopped; what it did until then remains"
                .to_owned(),
        ),
        RunStatus::Failed => Some("the agent failed".to_owned()),
        status => Some(format!("the agent did not answer: its run is {}", status.as_str())),
    };
    let run = Some(CalledRun { id: row.id, energy });
    let output = match (error, &answer) {
        (Some(error), None) => ToolOutput::error(error),
        (error, _) => ToolOutput::new(error.is_none(), &Answered { error, answer }),
    };
    ToolOutput { run, ..output }
}
