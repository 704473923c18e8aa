//! Ends of runs from outside: cancelled, or expired.

use super::FlowEngine;
use crate::runs::queries;
use crate::runs::row::{FlowRunStatus, RunRow};
use model::Result;
use store::Tx;

impl FlowEngine {
    /// Ends a run, and the flows that it has started, whatever they do at this moment. Nodes that act are left to end; nothing
    /// follows from them. Returns whether the run had not ended.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn end_now(&self, tx: &mut Tx, mut row: RunRow, status: FlowRunStatus) -> Result<bool> {
        if !queries::end_from_outside(tx, &row.id, status)? {
            return Ok(false);
        }
        row.status = status;
        for child in queries::open_children(tx, &row.id)? {
            self.end_now(tx, child, FlowRunStatus::Cancelled)?;
        }
        self.after_end(tx, &row, None)?;
        Ok(true)
    }
}
