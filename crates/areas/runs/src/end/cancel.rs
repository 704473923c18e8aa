//! Cancellation of a run by something else than its worker.

use crate::engine::RunEngine;
use crate::queries::runs;
use crate::run::{RunRow, RunStatus};
use model::Result;
use store::Tx;

impl RunEngine {
    /// Cancels a run that has not ended, and returns its row. Its worker closes its books: the one of this process is told, others
    /// find out at their next step.
    pub(crate) fn cancel(&self, tx: &mut Tx, row: &RunRow, reason: &str) -> Result<Option<RunRow>> {
        let waited_for_people = row.status == RunStatus::RequiresAction;
        let Some(cancelled) = runs::cancel(tx, row, reason)? else { return Ok(None) };
        self.emit_end(tx, &cancelled)?;
        let (engine, id) = (self.clone(), cancelled.id.clone());
        tx.after_commit(move || {
            engine.active().stop(&id);
            if waited_for_people {
                engine.close_abandoned();
            }
        });
        Ok(Some(cancelled))
    }
}
