//! The end of a run, with everything that follows from it in one transaction.

use super::{Drive, Driven, commit};
use crate::engine::FlowEngine;
use crate::engine::commit::{Changes, Progress};
use crate::events::FlowRunEvent;
use crate::nodes::{NodeFailure, Work};
use crate::runs::row::{FlowRunStatus, FlowTriggerType, RunContent, RunError, RunRow};
use crate::runs::start::{self, NewRun};
use crate::runs::waits::{FlowWaitType, WaitRow, arrive};
use flow_machine::{Ending, Outcome};
use model::{Actor, ActorType, Cause, Chain, FlowId, JsonText, Result};
use serde_json::{Value, json};
use store::Tx;

impl Drive {
    /// The machine has ended the run.
    pub(super) async fn end(self, ending: Ending) -> Result<Driven> {
        match ending {
            Ending::Completed { output } => self.finish(FlowRunStatus::Completed, Some(output), None).await,
            Ending::Failed { output } => {
                let message =
                    output.as_str().unwrap_or("An `end` node says that the flow failed.").to_owned();
                let error = RunError { node_id: None, code: "ended_as_failed".to_owned(), message };
                self.finish(FlowRunStatus::Failed, Some(output), Some(error)).await
            }
            Ending::Fault(fault) => {
                self.finish(FlowRunStatus::Failed, None, Some(RunError::of(&fault))).await
            }
        }
    }

    /// Ends the run, unless others have done so.
    pub(super) async fn finish(
        mut self,
        status: FlowRunStatus,
        output: Option<Value>,
        error: Option<RunError>,
    ) -> Result<Driven> {
        for token in self.open.keys().copied().collect::<Vec<_>>() {
            self.drop_step(token);
        }
        let mut progress = self.progress(status, false);
        progress.output = output.map(|output| JsonText::of(&output));
        progress.error = error.map(|error| JsonText::of(&error));
        let (engine, row, changes) = (self.engine.clone(), self.row.clone(), self.changes.clone());
        let error_flow = self.content.settings.error_flow_id.map(FlowId);
        let written = self
            .engine
            .db()
            .write(move |tx| engine.write_end(tx, &row, &changes, &progress, error_flow))
            .await?;
        Ok(if written { Driven::Ended } else { Driven::Lost })
    }

    /// Records the end of a node of a run that was cancelled meanwhile. What fails here is only missing in the trace.
    pub(super) async fn record_late(&self, token: u32, result: std::result::Result<Work, NodeFailure>) {
        let outcome = match result {
            Ok(Work::Ended(outcome)) => outcome,
            Ok(Work::Answers(_) | Work::Waits(_)) => Outcome::done(Value::Null),
            Err(failure) => failure.into(),
        };
        let Some(step) = self.open.get(&token) else { return };
        let row = super::trace::ended(step.row.clone(), &outcome, self.engine.now());
        let written = self.engine.db().write(move |tx| commit::write_late_step(tx, &row)).await;
        if let Err(error) = written {
            tracing::warn!(?error, "the end of a node of a cancelled run was not recorded");
        }
    }
}

impl FlowEngine {
    /// Writes the end of a run with its event, wakes the run that waits for it, and starts the flow for errors.
    pub(crate) fn write_end(
        &self,
        tx: &mut Tx,
        row: &RunRow,
        changes: &Changes,
        progress: &Progress,
        error_flow: Option<FlowId>,
    ) -> Result<bool> {
        if !commit::write(tx, row, changes, progress)? {
            return Ok(false);
        }
        let mut ended = row.clone();
        ended.status = progress.status;
        ended.output.clone_from(&progress.output);
        ended.error.clone_from(&progress.error);
        ended.response.clone_from(&progress.response);
        ended.contact_id = progress.contact;
        ended.energy = progress.energy;
        self.after_end(tx, &ended, error_flow)?;
        Ok(true)
    }

    /// Emits the event of an end, wakes the parent, and starts the flow for errors.
    pub(crate) fn after_end(&self, tx: &mut Tx, row: &RunRow, error_flow: Option<FlowId>) -> Result<()> {
        if let Some(event) = FlowRunEvent::of_end(row)? {
            tx.emit(row.workspace_id, &cause_of(row), row.livemode, &event)?;
        }
        let end = row.end();
        for wait in WaitRow::by_key(tx, FlowWaitType::FlowRun, row.id.as_str())? {
            arrive(tx, &wait.run_id, wait.token, &end)?;
            self.wake_after(tx);
        }
        if row.status == FlowRunStatus::Failed
            && let Some(flow) = error_flow
        {
            self.start_error_flow(tx, row, flow)?;
        }
        let (engine, ended) = (self.clone(), row.clone());
        tx.after_commit(move || engine.ended(&ended));
        Ok(())
    }

    /// Starts the flow for errors with its published version: never for its own failures, or those of another one.
    fn start_error_flow(&self, tx: &mut Tx, row: &RunRow, flow: FlowId) -> Result<()> {
        let content: RunContent = row.content.parse()?;
        if content.trigger == FlowTriggerType::Error || flow == row.flow_id {
            return Ok(());
        }
        let payload = json!({
            "run_id": row.id, "flow_id": row.flow_id, "version": row.version, "error": row.error,
            "contact_id": row.contact_id,
        });
        let new = NewRun {
            input: payload,
            contact: row.contact_id,
            trigger: FlowTriggerType::Error,
            trigger_id: Some(row.id.to_string()),
            chain: row.leads_to(),
            once: Some(format!("error:{}:{}", row.id, row.attempt)),
            ..NewRun::of(row.workspace_id, flow, row.livemode, content.request_id)
        };
        // PostgreSQL would refuse the rest of the transaction after a statement that failed.
        if let Err(error) = tx.savepoint(|tx| start::start(self, tx, &new)) {
            tracing::warn!(run_id = %row.id, ?error, "the flow for errors was not started");
        }
        Ok(())
    }
}

/// The cause of the events of a run.
pub(crate) fn cause_of(row: &RunRow) -> Cause {
    let actor = Actor { kind: ActorType::Flow, id: row.flow_id.to_string(), run_id: None };
    Cause::by(&actor).at(Chain::stored(row.chain.as_ref()))
}
