//! Deletion of the data that other groups keep about a permanently deleted contact. There can be much of it, so a job
//! deletes it in small transactions.

use jobs::{Job, JobContext, JobError};
use model::{ContactId, Result, WorkspaceId};
use ports::{ContactUses, Left};
use serde::{Deserialize, Serialize};
use store::Tx;

/// The name of the job.
const JOB: &str = "crm.contacts.forget";

/// The delay in seconds before data that was in use is tried again.
const PATIENCE: i64 = 60;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Forgetting {
    workspace: WorkspaceId,
    contact: ContactId,
}

/// Enqueues the job, which starts after the transaction that deletes the contact has committed.
pub(crate) fn begin(tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
    Forgetting { workspace, contact }.enqueue(tx, 0)
}

impl Forgetting {
    fn enqueue(self, tx: &mut Tx, seconds: i64) -> Result<()> {
        let due = tx.now().plus_seconds(seconds);
        tx.enqueue(self.workspace, JOB, Some(&format!("{JOB}:{}", self.contact)), &self, due)
    }
}

/// Builds the job.
pub(crate) fn job(uses: &ContactUses) -> Job {
    let uses = uses.clone();
    Job::after(
        JOB,
        "a contact is deleted permanently",
        "deletes its conversations, messages and files, and its address in broadcasts",
        move |job| forget(job, uses.clone()),
    )
}

async fn forget(job: JobContext, uses: ContactUses) -> Result<(), JobError> {
    let forgetting: Forgetting = job.payload.parse().map_err(JobError::give_up)?;
    let Forgetting { workspace, contact } = forgetting;
    loop {
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
        let uses = uses.clone();
        let piece = job.db.write(move |tx| {
            let left = uses.forget(tx, workspace, contact)?;
            if left == Left::Busy {
                forgetting.enqueue(tx, PATIENCE)?;
            }
            Ok(left)
        });
        if piece.await? != Left::More {
            return Ok(());
        }
    }
}
