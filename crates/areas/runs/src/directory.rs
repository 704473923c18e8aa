//! Ports for other groups: traces of runs, and runs as targets of links.

use crate::run::RunStatus;
use crate::schema::{run_steps, runs};
use diesel::prelude::*;
use model::{Result, RunId, WorkspaceId};
use ports::{LinkTargets, LinkedTarget, RunTraces, TraceStep};
use store::{Read, Tx};

/// Runs as other groups see them.
pub struct RunDirectory;

impl RunTraces for RunDirectory {
    fn steps(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        run: &str,
        first: i64,
        last: i64,
    ) -> Result<Vec<TraceStep>> {
        Ok(run_steps::table
            .filter(run_steps::run_id.eq(run))
            .filter(run_steps::position.between(first, last))
            .filter(run_steps::workspace_id.eq(workspace))
            .order(run_steps::position.asc())
            .select((
                run_steps::id,
                run_steps::position,
                run_steps::kind,
                run_steps::name,
                run_steps::status,
                run_steps::input_tokens,
                run_steps::output_tokens,
                run_steps::energy,
                run_steps::started_at,
                run_steps::completed_at,
            ))
            .load(read.connection())?)
    }
}

impl LinkTargets for RunDirectory {
    fn target_type(&self) -> &'static str {
        "run"
    }

    fn hold(&self, tx: &mut Tx, workspace: WorkspaceId, id: &str) -> Result<bool> {
        let Some(id) = RunId::parse(id) else { return Ok(false) };
        // Runs are never deleted, so there is nothing to lock.
        let found: Option<RunId> =
            runs::table.find((workspace, id)).select(runs::id).get_result(tx.connection()).optional()?;
        Ok(found.is_some())
    }

    fn show(&self, read: &mut Read, workspace: WorkspaceId, ids: &[&str]) -> Result<Vec<LinkedTarget>> {
        let ids: Vec<RunId> = ids.iter().filter_map(|id| RunId::parse(id)).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<(RunId, RunStatus)> = runs::table
            .filter(runs::workspace_id.eq(workspace))
            .filter(runs::id.eq_any(ids))
            .select((runs::id, runs::status))
            .load(read.connection())?;
        let shown = rows.into_iter().map(|(id, status)| LinkedTarget {
            id: id.to_string(),
            title: None,
            mime_type: None,
            status: Some(status.as_str().to_owned()),
        });
        Ok(shown.collect())
    }
}
