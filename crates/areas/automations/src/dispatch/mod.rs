//! Dispatching: a firing that is pending starts its target, by a job of its own.
//!
//! A flow is started in the transaction that marks the firing. An agent and a function are started outside a transaction, under
//! the name of the firing, so that another attempt after a crash finds what the first one started.

mod job;
mod outcome;
mod targets;

pub(crate) use job::{Dispatcher, input, job};

use crate::firings::row::FiringRow;
use model::{Chain, FiringId, Result, Timestamp};
use serde::{Deserialize, Serialize};
use store::Tx;

/// The name of the job.
const JOB: &str = "automations.dispatch";

/// The payload of the job.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Dispatch {
    firing: FiringId,
}

/// Asks for the dispatch of a firing at a moment.
///
/// # Errors
/// When the database fails.
pub(crate) fn enqueue(tx: &mut Tx, firing: &FiringRow, at: Timestamp) -> Result<()> {
    let (workspace, id) = (firing.workspace_id, firing.id.clone());
    tx.at_chain(Chain::stored(firing.chain.as_ref()), |tx| {
        tx.enqueue(workspace, JOB, Some(&format!("firing:{id}")), &Dispatch { firing: id.clone() }, at)
    })
}
