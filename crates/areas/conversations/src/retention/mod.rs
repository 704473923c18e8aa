//! Messages, and files that contacts sent, are deleted when the time is over for which the business keeps them.
//!
//! Nobody waits for it: it goes in small transactions, and what others are changing at that moment has its turn an hour
//! later.

mod files;
mod messages;

use crate::messages::BroadcastRecipients;
use jobs::{Job, JobContext, JobError};
use model::{Timestamp, WorkspaceId};
use ports::{BusinessRetention, FileUses};
use std::sync::Arc;
use std::time::Duration;

/// The job that deletes.
const JOB: &str = "messages.expire";

/// What says how long messages and files are kept.
#[derive(Clone)]
pub struct RetentionParts {
    /// For how many days each business keeps them.
    pub days: Arc<dyn BusinessRetention>,
    /// What refers to files, because those that something else needs stay.
    pub file_uses: FileUses,
    /// The recipients of broadcasts: messages that are still needed for those stay.
    pub broadcasts: Arc<dyn BroadcastRecipients>,
}

/// The job.
pub(crate) fn job(retention_parts: RetentionParts) -> Job {
    Job::every(
        JOB,
        Duration::from_secs(3_600),
        "deletes messages, and files that contacts sent, after the time that the business profile says",
        move |job| expire(job, retention_parts.clone()),
    )
}

async fn expire(job: JobContext, retention_parts: RetentionParts) -> Result<(), JobError> {
    let mut after = WorkspaceId(0);
    loop {
        let days = retention_parts.days.clone();
        let Some(kept) = job.db.read(move |read| days.next(read, after)).await? else { return Ok(()) };
        after = kept.workspace;
        let before = |days: i64| job.db.now().plus_seconds(-days * 86_400);
        if let Some(days) = kept.files {
            files::expire(&job, &retention_parts.file_uses, after, before(days)).await?;
        }
        if let Some(days) = kept.messages {
            messages::expire(&job, &retention_parts.broadcasts, after, before(days)).await?;
        }
    }
}

/// Ends a job that is to stop between two pieces of its work.
fn expect_time(job: &JobContext) -> Result<(), JobError> {
    if job.soft.is_cancelled() { Err(JobError::hand_back()) } else { Ok(()) }
}

/// What came before a moment, of rows in the order in which they came.
fn until<T>(rows: Vec<T>, horizon: Timestamp, came_at: impl Fn(&T) -> Timestamp) -> Vec<T> {
    rows.into_iter().take_while(|row| came_at(row) < horizon).collect()
}
