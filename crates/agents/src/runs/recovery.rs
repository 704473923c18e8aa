//! Runs whose workers died, and texts whose time is over.

use super::engine::RunEngine;
use super::execute::{Ending, Work};
use super::model::{RunRow, RunStatus, ToolOutput};
use super::queries;
use crate::agents::queries as agents;
use model::{Caller, Code, Error, JsonText, Result};
use std::sync::Arc;

/// Workers that may die over a run before it is given up.
const MOST_EPOCHS: i64 = 5;
/// How long an ephemeral conversation is remembered after its last run.
const EPHEMERAL_SECONDS: i64 = 72 * 3600;

impl RunEngine {
    /// Takes over the runs whose workers fell silent and drives them on, each in a task of its own. Gives their
    /// number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn resume_silent(&self) -> Result<usize> {
        let rows = self.db().write(|tx| queries::claim_silent(tx, 20)).await?;
        let count = rows.len();
        for row in rows {
            let engine = self.clone();
            tokio::spawn(async move {
                let id = row.id.clone();
                tracing::warn!(run_id = %id, epoch = row.epoch, "a run is resumed");
                if let Err(error) = engine.resume(row).await
                    && error.code() == Code::InternalError
                {
                    tracing::error!(run_id = %id, ?error, "a run could not be resumed");
                }
            });
        }
        Ok(count)
    }

    async fn resume(&self, row: RunRow) -> Result<RunRow> {
        let caller = self.caller_of(&row).await?;
        let too_often = row.epoch > MOST_EPOCHS;
        let work = self.load(caller, row).await?;
        if too_often {
            let message = "The run was interrupted too often.".to_owned();
            return self.finish(work, Ending::Failed(Code::AgentFailed, message), 0, None).await;
        }
        self.drive(work, None).await
    }

    /// The caller that a run acts for. A key that was revoked meanwhile lets its runs finish.
    async fn caller_of(&self, row: &RunRow) -> Result<Caller> {
        let id = row.key_id.clone();
        let stored = self.db().read(move |read| auth::keys::by_id(read, &id)).await?;
        let workspace = self.0.parts.directory.workspace(row.workspace_id).await?;
        let workspace = workspace.ok_or_else(|| Error::internal("a run's workspace is gone"))?;
        Ok(Caller { request: row.request_id.clone(), key: Arc::new(stored.key), workspace })
    }

    /// A run as it stands in the database, ready to be driven on after its last finished step.
    pub(super) async fn load(&self, caller: Caller, row: RunRow) -> Result<Work> {
        let engine = self.clone();
        self.db()
            .write(move |tx| {
                let workspace = row.workspace_id;
                let (settings, tools) =
                    agents::version_settings(tx, workspace, row.agent_id, row.agent_version)?;
                let turns = engine.turns(tx, &row, &settings.memory)?;
                let mut work = Work::new(caller.clone(), row.clone(), settings, tools, turns)?;
                let now = tx.now();
                for mut step in queries::steps(tx, workspace, &row.id)? {
                    if step.completed_at.is_none() {
                        step.completed_at = Some(now);
                        step.status = "unknown".to_owned();
                        if !step.is_model() {
                            // Whether the call had its effect nobody knows, and the model must not assume either.
                            let told = "outcome unknown: the service was interrupted during the call";
                            step.output = Some(JsonText::of(&ToolOutput::error(told)));
                        }
                        queries::finish_step(tx, &step)?;
                    }
                    work.count_stored(&step);
                    work.steps.push(step);
                }
                if row.status()? == RunStatus::InProgress {
                    work.start = Some(engine.begin_step(tx, &mut work)?);
                }
                Ok(work)
            })
            .await
    }

    /// Forgets the texts of ephemeral conversations 72 hours after their last run. Gives the number of runs.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn purge_ephemeral(&self) -> Result<usize> {
        let mut purged = 0;
        loop {
            let batch = self
                .db()
                .write(|tx| {
                    let cutoff = tx.now().plus_seconds(-EPHEMERAL_SECONDS);
                    queries::purge(tx, cutoff, 200)
                })
                .await?;
            purged += batch;
            if batch < 200 {
                return Ok(purged);
            }
        }
    }
}
