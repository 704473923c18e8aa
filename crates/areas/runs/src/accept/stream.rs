//! Server-sent events of a run: `POST /runs` with `stream: true`.
//!
//! The worker reports the model's output and the steps that begin. Finished steps are read from the database, so that
//! they look as with `include=steps`. Where another worker takes the run over, the stream waits for its end.

use crate::end::outcome;
use crate::engine::RunEngine;
use crate::execution::{Progress, StepHead};
use crate::queries::{runs, steps};
use crate::run::{Ended, RunRow, RunStatus, RunStep, response};
use crate::trace;
use futures::stream;
use model::{Code, Error, Result, RunId, StepId};
use operation::{EventStream, StreamEvent};
use providers::Delta;
use serde::Serialize;
use serde_json::json;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Poll interval for a run that another worker executes.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The longest wait for such a run: its time in the queue, its timeout, and five workers that died before the last one.
const LONGEST: Duration = Duration::from_secs(600 + 600 + 5 * 40);

/// A stream of a run.
pub(crate) struct RunStream {
    engine: RunEngine,
    run: RunRow,
    progress: UnboundedReceiver<Progress>,
    driving: JoinHandle<Result<Ended>>,
    /// The `step.started` events of steps up to this position are sent.
    begun: i64,
    /// The `step.completed` events of steps up to this position are sent.
    ended: i64,
    waiting: VecDeque<StreamEvent>,
    is_over: bool,
}

impl RunStream {
    /// The events of a run that was accepted, and is driven by `driving`.
    ///
    /// # Errors
    /// `internal_error` where what is stored cannot be read.
    pub(crate) fn events(
        engine: &RunEngine,
        run: RunRow,
        progress: UnboundedReceiver<Progress>,
        driving: JoinHandle<Result<Ended>>,
    ) -> Result<EventStream> {
        // Steps of attempts that failed are not sent twice.
        let before = run.options()?.attempt_from.map_or(0, |first| first - 1);
        let created = StreamEvent::new("run.created", response::reply(run.clone().run()?, false)?.text()?);
        let stream = Self {
            engine: engine.clone(),
            run,
            progress,
            driving,
            begun: before,
            ended: before,
            waiting: VecDeque::from([created]),
            is_over: false,
        };
        Ok(Box::pin(stream::unfold(stream, |mut stream| async move {
            let event = stream.next().await?;
            Some((event, stream))
        })))
    }

    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.listen().await {
                self.is_over = true;
                let error = error.with("run_id", self.run.id.as_str());
                self.waiting.push_back(StreamEvent::failed("error", error));
            }
        }
    }

    /// Waits for the next progress.
    async fn listen(&mut self) -> Result<()> {
        tokio::select! {
            biased;
            Some(progress) = self.progress.recv() => self.publish(progress).await,
            ended = &mut self.driving => {
                self.is_over = true;
                while let Ok(progress) = self.progress.try_recv() {
                    self.publish(progress).await?;
                }
                let row = match ended.map_err(Error::internal)? {
                    Ok(ended) => ended.row,
                    // Another worker has it, or will: its own error was logged.
                    Err(_) => self.follow().await?,
                };
                self.publish_ended(i64::MAX).await?;
                let last = self.last_event(row).await?;
                self.waiting.push_back(last);
                Ok(())
            }
        }
    }

    async fn publish(&mut self, progress: Progress) -> Result<()> {
        match progress {
            Progress::Ended(position) => self.publish_ended(position).await?,
            Progress::Begun(step) => self.publish_begun(&step),
            Progress::Text(step, piece) => self.waiting.push_back(delta(&self.run.id, &step, &piece)),
        }
        Ok(())
    }

    fn publish_begun(&mut self, step: &StepHead) {
        if step.position > self.begun {
            self.begun = step.position;
            self.waiting.push_back(step_started(&self.run.id, step));
        }
    }

    /// Publishes the steps up to a position that have ended and were not published yet.
    async fn publish_ended(&mut self, through: i64) -> Result<()> {
        if through <= self.ended {
            return Ok(());
        }
        let (run, after) = (self.run.clone(), self.ended);
        // All of them, because the prompt of a step follows from the steps before.
        let read = self.engine.db().read(move |read| {
            let steps = steps::of_run(read, run.workspace_id, &run.id)?;
            let (settings, _) =
                agents::queries::version_settings(read, run.workspace_id, run.agent_id, run.agent_version)?;
            trace::shown(&run, settings, steps)
        });
        let ended = read
            .await?
            .into_iter()
            .filter(|step| step.completed_at.is_some() && step.position > after && step.position <= through);
        for step in ended {
            self.ended = step.position;
            let head = StepHead {
                id: step.id.clone(),
                position: step.position,
                kind: step.kind,
                name: step.name.clone(),
            };
            // What guardrails found has ended when it begins.
            self.publish_begun(&head);
            self.waiting.push_back(step_completed(&self.run.id, step)?);
        }
        Ok(())
    }

    /// Waits for the end of a run that another worker drives.
    async fn follow(&self) -> Result<RunRow> {
        let deadline = Instant::now() + LONGEST;
        loop {
            let (workspace, id) = (self.run.workspace_id, self.run.id.clone());
            let row = self.engine.db().read(move |read| runs::by_id(read, workspace, &id)).await?;
            if !matches!(row.status, RunStatus::Queued | RunStatus::InProgress) {
                return Ok(row);
            }
            if Instant::now() >= deadline {
                return Err(Error::new(
                    Code::AgentTimeout,
                    "The run takes too long for a stream. Get it by its id.",
                ));
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// The end, with what the same request would have been answered without `stream`.
    async fn last_event(&self, row: RunRow) -> Result<StreamEvent> {
        let (name, energy) = (format!("run.{}", row.status.as_str()), row.energy);
        let event = match outcome(row) {
            Ok(row) => StreamEvent::new(name, response::reply(self.engine.show(row).await?, false)?.text()?),
            Err(error) => StreamEvent::failed(name, error),
        };
        Ok(event.spent(energy))
    }
}

fn delta(run: &RunId, step: &StepId, piece: &Delta) -> StreamEvent {
    let data = json!({ "run_id": run, "step_id": step, "offset": piece.offset, "delta": piece.text });
    StreamEvent::new("output.delta", data.to_string())
}

fn step_started(run: &RunId, step: &StepHead) -> StreamEvent {
    let StepHead { id, position, kind, name } = step;
    let data = json!({ "run_id": run, "step_id": id, "position": position, "type": kind, "name": name });
    StreamEvent::new("step.started", data.to_string())
}

fn step_completed(run: &RunId, step: RunStep) -> Result<StreamEvent> {
    #[derive(Serialize)]
    struct Completed<'a> {
        run_id: &'a RunId,
        step: RunStep,
    }
    let data = serde_json::to_string(&Completed { run_id: run, step }).map_err(Error::internal)?;
    Ok(StreamEvent::new("step.completed", data))
}
