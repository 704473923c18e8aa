//! What other groups keep about a contact that was deleted permanently: by a caller, or because its time in the trash was
//! over. It can be much, so it is deleted in the background, piece by piece.

use jobs::{Job, JobContext, JobError};
use model::{ContactId, Result, WorkspaceId};
use ports::{ContactUses, Left};
use serde::{Deserialize, Serialize};
use store::Tx;

/// The job that deletes it.
const JOB: &str = "crm.contacts.forget";

/// For how long what others are working with is left to them, in seconds.
const PATIENCE: i64 = 60;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Forgetting {
    workspace: WorkspaceId,
    contact: ContactId,
}

/// Lets what is kept about a contact be deleted, once the transaction that deletes the contact is committed.
///
/// # Errors
/// When the database fails.
pub(crate) fn begin(tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
    Forgetting { workspace, contact }.enqueue(tx, 0)
}

impl Forgetting {
    fn enqueue(self, tx: &mut Tx, seconds: i64) -> Result<()> {
        let due = tx.now().plus_seconds(seconds);
        tx.enqueue(self.workspace, JOB, Some(&format!("{JOB}:{}", self.contact)), &self, due)
    }
}

/// The job.
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
