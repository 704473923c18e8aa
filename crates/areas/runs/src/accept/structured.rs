//! Structured answers for operations of other groups: a run like any other, whose answer fits a schema.

use super::submit::Submitted;
use crate::end::outcome;
use crate::engine::{RunEngine, is_superseded};
use crate::run::{NewRun, OnBusy, RunOptions, RunPurpose, RunRow, RunStatus, RunTrigger};
use agents::{ResponseFormat, ResponseKind};
use fields::json_schema::Schema;
use model::{Caller, Error, Result};
use operation::BoxFuture;
use ports::{StructuredAnswer, StructuredRuns, StructuredTask};
use providers::json;

/// The timeout of such a run in seconds. It is shorter than the time that its request waits.
const LONGEST: i64 = 90;

impl StructuredRuns for RunEngine {
    fn answer(&self, caller: Caller, task: StructuredTask) -> BoxFuture<Result<StructuredAnswer>> {
        let engine = self.clone();
        Box::pin(async move {
            let schema = task.schema.clone();
            let row = engine.run_structured(caller, task).await?;
            let data = row.output.as_deref().filter(|_| row.status == RunStatus::Completed);
            let data = data.and_then(json::text_of).map(|text| json::parsed(&text));
            let data = data.filter(|data| Schema::new(schema).mismatch(data).is_none());
            let reason = row.incomplete_reason.clone().or_else(|| {
                data.is_none().then(|| {
                    if row.status.is_final() { "output_invalid" } else { "still_running" }.to_owned()
                })
            });
            Ok(StructuredAnswer {
                run: row.id,
                agent: row.agent_id,
                status: row.status.as_str(),
                reason,
                data,
                energy: row.energy,
            })
        })
    }
}

impl RunEngine {
    /// The run of a task, at its end.
    async fn run_structured(&self, caller: Caller, task: StructuredTask) -> Result<RunRow> {
        let purpose = RunPurpose::parse(task.purpose)
            .ok_or_else(|| Error::internal(format!("no work is called {}", task.purpose)))?;
        let format = ResponseFormat { kind: ResponseKind::JsonSchema, schema: Some(task.schema) };
        format.check()?;
        let new = NewRun {
            input: task.input,
            conversation_id: None,
            agent_id: task.agent,
            agent_version: None,
            background: false,
            stream: false,
            response_format: Some(format),
            max_steps: None,
            timeout_seconds: Some(LONGEST),
            metadata: None,
            on_busy: OnBusy::default(),
            trigger: RunTrigger::default(),
            answering: task.contact,
            question: None,
            inner: None,
            energy_limit: None,
            reading_tier: None,
        };
        // The request's key names the outcome of its own operation, not that of the run.
        let caller = Caller { idempotency_key: None, ..caller };
        let submitted = match self.begun_before(&caller, task.claim.as_ref()).await? {
            Some(row) if row.status != RunStatus::Failed => self.wait_for(row, self.patience(), None).await?,
            _ => {
                let base = RunOptions { purpose, ..RunOptions::default() };
                let (engine, claim) = (self.clone(), task.claim);
                // As with other runs, no part of it lives in the request's future.
                let driving = self.0.parts.runtime.spawn(async move {
                    let (execution, start) = engine.accept(caller, new, claim, base).await?;
                    let row = execution.row.clone();
                    match engine.drive(execution, start, None).await {
                        Err(error) if is_superseded(&error) => {
                            engine.wait_for(row, engine.patience(), None).await
                        }
                        ended => ended?.submitted(),
                    }
                });
                driving.await.map_err(Error::internal)??
            }
        };
        match submitted {
            Submitted::Run(run) => outcome(run.row),
            Submitted::Events(_) => Err(Error::internal("a run that is not streamed was")),
        }
    }
}
