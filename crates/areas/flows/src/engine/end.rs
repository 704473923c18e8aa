//! Ends of runs from outside: cancelled, or expired.

use super::FlowEngine;
use crate::draft::settings::Settings;
use crate::runs::queries;
use crate::runs::row::{FlowRunStatus, RunRow};
use crate::runs::waits::FlowWaitType;
use crate::schema::flow_waits;
use diesel::prelude::*;
use model::{Result, RunId};
use store::Tx;

impl FlowEngine {
    /// Ends a run, and the flows that it has started, whatever they do at this moment. Nodes that act are left to end; nothing
    /// follows from them. Returns whether the run had not ended.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn end_now(&self, tx: &mut Tx, mut row: RunRow, status: FlowRunStatus) -> Result<bool> {
        let kept_days = self.kept_days(tx, &row)?;
        self.cancel_agents(tx, &row)?;
        if !queries::end_from_outside(tx, &row.id, status, kept_days)? {
            return Ok(false);
        }
        row.status = status;
        for child in queries::open_children(tx, &row.id)? {
            self.end_now(tx, child, FlowRunStatus::Cancelled)?;
        }
        self.after_end(tx, &row, None)?;
        Ok(true)
    }

    /// Cancels the runs of agents that a run waits for.
    fn cancel_agents(&self, tx: &mut Tx, row: &RunRow) -> Result<()> {
        let keys: Vec<Option<String>> = flow_waits::table
            .filter(flow_waits::run_id.eq(&row.id))
            .filter(flow_waits::kind.eq(FlowWaitType::AgentRun))
            .filter(flow_waits::arrived.is_null())
            .select(flow_waits::key)
            .load(tx.connection())?;
        for run in keys.into_iter().flatten().filter_map(|key| RunId::parse(&key)) {
            self.0.agents.cancel(tx, row.workspace_id, &run)?;
        }
        Ok(())
    }

    /// For how many days a run is kept after its end.
    fn kept_days(&self, tx: &mut Tx, row: &RunRow) -> Result<i64> {
        let Some(version) = row.version else { return Ok(Settings::default().retention_days) };
        Ok(self.version(tx, row.workspace_id, row.flow_id, version)?.settings.retention_days)
    }
}
