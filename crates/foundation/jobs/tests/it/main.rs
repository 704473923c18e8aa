//! Tests of the runner, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails must say where"
)]

mod rules;
mod running;

use diesel::prelude::*;
use jobs::{Job, JobContext, JobError};
use model::Timestamp;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Db;
use store::schema::jobs as table;
use testkit::TestDb;

/// Returns a job that tests enqueue.
fn job<F, Fut>(kind: &'static str, handler: F) -> Job
where
    F: Fn(JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), JobError>> + Send + 'static,
{
    Job::after(kind, "a test asks for it", "is tested", handler)
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
struct Row {
    payload: String,
    run_at: Timestamp,
    attempts: i64,
    epoch: i64,
    lease_until: Option<Timestamp>,
    last_error: Option<String>,
    failed_at: Option<Timestamp>,
}

/// Returns the remaining jobs, in the order in which they were enqueued.
async fn rows(db: &Db) -> Vec<Row> {
    db.read(|read| {
        let columns = (
            table::payload,
            table::run_at,
            table::attempts,
            table::epoch,
            table::lease_until,
            table::last_error,
            table::failed_at,
        );
        Ok(table::table.select(columns).order(table::id).load(read.connection())?)
    })
    .await
    .unwrap()
}

/// Returns the only remaining job.
async fn row(db: &Db) -> Row {
    let mut rows = rows(db).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

async fn ask(db: &Db, kind: &'static str, key: Option<&'static str>, payload: i64) {
    db.write(move |tx| tx.enqueue(None, kind, key, &payload, tx.now())).await.unwrap();
}

/// The inputs that handlers received.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(i64, i64)>>>);

impl Seen {
    /// Records payload and attempt.
    fn note(&self, context: &JobContext) -> Result<(), JobError> {
        let payload = context.payload.parse().unwrap_or(0);
        self.0.lock().unwrap().push((payload, context.attempts));
        Ok(())
    }

    fn all(&self) -> Vec<(i64, i64)> {
        self.0.lock().unwrap().clone()
    }
}

/// Advances the database's clock.
fn pass(test: &TestDb, seconds: i64) {
    test.clock.advance(chrono::Duration::seconds(seconds));
}

/// Waits until a condition is true, for a minute at most.
async fn until(mut happened: impl AsyncFnMut() -> bool) {
    let patience = async {
        while !happened().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), patience).await.unwrap();
}
