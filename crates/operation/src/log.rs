//! The request log: a row per request, written in batches and never on the request's path.

use crate::schema::request_logs;
use auth::Quotas;
use diesel::prelude::*;
use model::{KeyId, Result, Timestamp, WorkspaceId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::{AnyConnection, Db, Tx};
use tokio::sync::{Notify, mpsc, watch};

/// What is kept of a request. No header, no query, no body: nothing a caller sends but the path.
#[derive(Debug, Clone, Insertable)]
#[diesel(table_name = request_logs, treat_none_as_default_value = false)]
pub struct LogRow {
    /// The request id.
    pub id: String,
    /// When it came.
    pub created_at: Timestamp,
    /// The workspace it operated.
    pub workspace_id: Option<WorkspaceId>,
    /// The key that asked.
    pub key_id: Option<KeyId>,
    /// The operation id.
    pub operation: Option<&'static str>,
    /// The method, cut at 10 characters.
    pub method: String,
    /// The path, cut at 300 characters.
    pub path: String,
    /// The HTTP status.
    pub status: i64,
    /// The error code.
    pub code: Option<&'static str>,
    /// The gate that answered, where none let it through.
    pub gate: Option<&'static str>,
    /// Whether the key was live.
    pub livemode: Option<bool>,
    /// From the first byte to the answer, in microseconds.
    pub latency_us: i64,
    /// The Energy spent.
    pub energy: i64,
    /// Whether the answer was a stored one.
    pub replayed: bool,
    /// The caller's own id for the request.
    pub client_request_id: Option<String>,
}

/// Rows that may wait to be written. Beyond it rows are dropped and counted: a slow disk must not slow requests.
const WAITING: usize = 16_384;
const BATCH: usize = 500;
const EVERY: Duration = Duration::from_millis(250);
/// How often it is told at most that rows were dropped.
const REPORTED_EVERY: Duration = Duration::from_secs(10);

/// Where the pipeline drops its rows.
#[derive(Clone)]
pub struct RequestLog {
    sender: mpsc::Sender<LogRow>,
    dropped: Arc<AtomicU64>,
    transactions: Arc<AtomicU64>,
    /// Wakes the writer before its time.
    hurry: Arc<Notify>,
}

impl RequestLog {
    /// A log, and the task that writes it. The task ends, with everything written, once `stop` turns true.
    pub fn start(
        db: Db,
        quotas: Arc<Quotas>,
        stop: watch::Receiver<bool>,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let log =
            Self { sender, dropped: Arc::default(), transactions: Arc::default(), hurry: Arc::default() };
        let writing = tokio::spawn(write_behind(db, quotas, log.clone(), receiver, stop));
        (log, writing)
    }

    /// Takes a row, or drops it when too many wait.
    pub fn push(&self, row: LogRow) {
        if self.sender.try_send(row).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if self.sender.capacity() < WAITING / 2 {
            self.hurry.notify_one();
        }
    }

    /// How many rows were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// How many transactions the log has asked for so far, those of the monthly counts included.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }
}

async fn write_behind(
    db: Db,
    quotas: Arc<Quotas>,
    log: RequestLog,
    mut receiver: mpsc::Receiver<LogRow>,
    mut stop: watch::Receiver<bool>,
) {
    let transactions = &log.transactions;
    let mut drops = Drops::default();
    loop {
        let stopping = tokio::select! {
            () = tokio::time::sleep(EVERY) => false,
            () = log.hurry.notified() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        loop {
            let mut rows = Vec::with_capacity(BATCH);
            while rows.len() < BATCH
                && let Ok(row) = receiver.try_recv()
            {
                rows.push(row);
            }
            if rows.is_empty() {
                break;
            }
            let count = rows.len();
            transactions.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = db.write(move |tx| insert(tx, &rows)).await {
                tracing::error!(?error, count, "request log rows were lost");
            }
        }
        match quotas.flush().await {
            Ok(wrote) => {
                transactions.fetch_add(u64::from(wrote), Ordering::Relaxed);
            }
            Err(error) => tracing::error!(?error, "request counts could not be written; they wait"),
        }
        drops.report(log.dropped(), stopping);
        if stopping {
            return;
        }
    }
}

/// What was told of dropped rows.
#[derive(Default)]
struct Drops {
    reported: u64,
    last: Option<Instant>,
}

impl Drops {
    /// Reports those that came since the last time; not at every turn, because those who cause them come in crowds.
    fn report(&mut self, dropped: u64, at_last: bool) {
        let is_soon = self.last.is_some_and(|last| last.elapsed() < REPORTED_EVERY);
        if dropped > self.reported && (at_last || !is_soon) {
            tracing::warn!(rows = dropped - self.reported, in_all = dropped, "request log rows were dropped");
            (self.reported, self.last) = (dropped, Some(Instant::now()));
        }
    }
}

fn insert(tx: &mut Tx, rows: &[LogRow]) -> Result<()> {
    match tx.connection() {
        // There is no way to a server and back, and one statement for all rows would be parsed anew each time.
        AnyConnection::Sqlite(connection) => {
            for row in rows {
                diesel::insert_into(request_logs::table)
                    .values(row)
                    .on_conflict_do_nothing()
                    .execute(connection)?;
            }
        }
        // In pieces, because the number of values in a statement is bounded.
        AnyConnection::Postgres(connection) => {
            for rows in rows.chunks(100) {
                diesel::insert_into(request_logs::table)
                    .values(rows)
                    .on_conflict_do_nothing()
                    .execute(connection)?;
            }
        }
    }
    Ok(())
}

/// How long rows are kept, in seconds.
const KEPT_SECONDS: i64 = 30 * 24 * 3600;

/// How many rows a transaction deletes: it must not keep others waiting.
const PURGED_AT_ONCE: i64 = 1_000;

/// Deletes rows older than 30 days, some at a time. Gives their number; zero when there are none left.
///
/// # Errors
/// When the database fails.
pub fn purge_request_logs(tx: &mut Tx) -> Result<usize> {
    let before = tx.now().plus_seconds(-KEPT_SECONDS);
    let old: Vec<String> = request_logs::table
        .filter(request_logs::created_at.lt(before))
        .order(request_logs::created_at.asc())
        .limit(PURGED_AT_ONCE)
        .select(request_logs::id)
        .load(tx.connection())?;
    let mut deleted = 0;
    for ids in old.chunks(500) {
        deleted += diesel::delete(request_logs::table.filter(request_logs::id.eq_any(ids)))
            .execute(tx.connection())?;
    }
    Ok(deleted)
}
