//! Answers of runs, for the requests of this process that wait for them.

use super::FlowEngine;
use crate::runs::row::{FlowRunStatus, RunError, RunRow};
use model::{FlowRunId, JsonText, Result, WorkspaceId};
use ports::{FlowAnswer, FlowResponse};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How often the row of a run is read that another process may execute.
const POLL: Duration = Duration::from_millis(500);

impl FlowEngine {
    /// The `respond` node of a run has answered.
    pub(crate) fn answered(&self, run: &FlowRunId, response: &FlowResponse) {
        self.0.waiters.tell(run, &FlowAnswer::Response(run.clone(), response.clone()));
    }

    /// A run has ended.
    pub(crate) fn ended(&self, row: &RunRow) {
        if let Some(answer) = answer_of(row) {
            self.0.waiters.tell(&row.id, &answer);
        }
    }

    /// Waits for the answer of a run, or its end.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn await_answer(
        &self,
        workspace: WorkspaceId,
        run: FlowRunId,
        patience: Duration,
    ) -> Result<FlowAnswer> {
        let until = Instant::now() + patience;
        loop {
            let receiver = self.0.waiters.add(&run);
            let id = run.clone();
            let row = self.db().read(move |read| RunRow::find(read, workspace, &id)).await?;
            if let Some(answer) = answer_of(&row) {
                drop(receiver);
                self.0.waiters.forget_closed(&run);
                return Ok(answer);
            }
            let left = until.saturating_duration_since(Instant::now());
            if let Ok(Ok(answer)) = timeout(left.min(POLL), receiver).await {
                return Ok(answer);
            }
            self.0.waiters.forget_closed(&run);
            if left <= POLL {
                return Ok(FlowAnswer::Pending(run));
            }
        }
    }
}

/// Returns the answer of a run for those who wait for it. `None` as long as it has none.
fn answer_of(row: &RunRow) -> Option<FlowAnswer> {
    let id = row.id.clone();
    if let Some(response) = row.response.as_ref().and_then(|response| response.parse().ok()) {
        return Some(FlowAnswer::Response(id, response));
    }
    match row.status {
        FlowRunStatus::Completed => {
            let output = row.output.as_ref().and_then(|output| output.parse().ok());
            Some(FlowAnswer::Completed(id, output.unwrap_or_default()))
        }
        status if status.is_final() => {
            let error: Option<RunError> = row.error.as_ref().map(JsonText::parse).transpose().ok().flatten();
            let message = error.map_or_else(|| format!("The run is {}.", status.as_str()), |it| it.message);
            Some(FlowAnswer::Ended(id, status.as_str(), message))
        }
        _ => None,
    }
}
