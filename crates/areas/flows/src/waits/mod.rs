//! Who wakes runs: replies of contacts, events, and decisions of people.

use crate::draft::settings::Settings;
use crate::engine::FlowEngine;
use crate::runs::row::RunRow;
use crate::runs::waits::{FlowWaitType, WaitRow, arrive};
use flow_machine::Values;
use model::{FlowRunId, Result};
use store::Tx;

/// Looks for what a wait awaits among what has happened already: between the moment from which it counts and the moment at which
/// others could find the wait.
pub(crate) async fn look_back(engine: &FlowEngine, row: &RunRow, wait: WaitRow) -> Result<()> {
    let workspace = row.workspace_id;
    match wait.kind {
        FlowWaitType::FlowRun => {
            let look = move |tx: &mut Tx| {
                let Some(id) = wait.key.as_deref().and_then(FlowRunId::parse) else { return Ok(()) };
                let other = RunRow::find(tx, workspace, &id)?;
                if other.status.is_final() {
                    arrive(tx, &wait.run_id, wait.token, &other.end())?;
                }
                Ok(())
            };
            engine.db().write(look).await
        }
        _ => Ok(()),
    }
}

/// The waits for the events that cancel a run. Their tokens are negative.
pub(crate) fn cancels(row: &RunRow, settings: &Settings, values: &Values) -> Result<Vec<WaitRow>> {
    let _ = (row, settings, values);
    Ok(Vec::new())
}
