//! What runs offer to other groups: their traces, and themselves as targets of links.

use crate::schema::{run_steps, runs};
use diesel::prelude::*;
use model::{Result, RunId, StepId, Timestamp, WorkspaceId};
use operation::ports::{LinkTargets, LinkedTarget, RunTraces, TraceStep};
use store::{Read, Tx};

/// Runs as other groups see them.
pub struct RunDirectory;

#[derive(Queryable, Selectable)]
#[diesel(table_name = run_steps)]
struct TraceRow {
    id: StepId,
    position: i64,
    kind: String,
    name: String,
    status: String,
    input_tokens: i64,
    output_tokens: i64,
    energy: i64,
    started_at: Timestamp,
    completed_at: Option<Timestamp>,
}

impl From<TraceRow> for TraceStep {
    fn from(row: TraceRow) -> Self {
        Self {
            id: row.id,
            position: row.position,
            kind: row.kind,
            name: row.name,
            status: row.status,
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            energy: row.energy,
            started_at: row.started_at,
            completed_at: row.completed_at,
        }
    }
}

impl RunTraces for RunDirectory {
    fn steps(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        run: &str,
        first: i64,
        last: i64,
    ) -> Result<Vec<TraceStep>> {
        let rows: Vec<TraceRow> = run_steps::table
            .filter(run_steps::run_id.eq(run))
            .filter(run_steps::position.between(first, last))
            .filter(run_steps::workspace_id.eq(workspace))
            .order(run_steps::position.asc())
            .select(TraceRow::as_select())
            .load(read.connection())?;
        Ok(rows.into_iter().map(TraceStep::from).collect())
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
        let rows: Vec<(RunId, String)> = runs::table
            .filter(runs::workspace_id.eq(workspace))
            .filter(runs::id.eq_any(ids))
            .select((runs::id, runs::status))
            .load(read.connection())?;
        let shown = rows.into_iter().map(|(id, status)| LinkedTarget {
            id: id.to_string(),
            title: None,
            mime_type: None,
            status: Some(status),
        });
        Ok(shown.collect())
    }
}
