//! The request log: a row per request, written in batches and never on the request's path.

use crate::request_hours;
use auth::Quotas;
use model::{Error, KeyId, Result, Timestamp, WorkspaceId};
use prometheus::IntCounter;
use prometheus::core::Collector;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::logs::{Key, LogKind, PerRow, Size, add, sum};
use store::{Db, OnConflict, Rows, Tx};
use tokio::sync::{Notify, mpsc, watch};

/// What is kept of a request: no header, no query, no body. Of a refused request it is the message too, which may quote a
/// value.
#[derive(Debug, Clone)]
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
    /// The interface that the request came through, such as `mcp`. `None` for REST.
    pub interface: Option<&'static str>,
    /// The caller's own id for the request.
    pub client_request_id: Option<String>,
    /// The id of the trace that the request came with. One without a trace has the trace of its own id.
    pub trace_id: Option<String>,
    /// What a refused request was told, cut at 300 bytes.
    pub message: Option<String>,
    /// The parameter that it was told about, cut at 200 bytes.
    pub param: Option<String>,
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
    dropped: IntCounter,
    transactions: Arc<AtomicU64>,
    /// Wakes the writer before its time.
    hurry: Arc<Notify>,
}

impl RequestLog {
    /// A log, and the task that writes it. The task ends, with everything written, once `stop` turns true.
    ///
    /// # Errors
    /// Never: names and help texts of metrics are constants.
    pub fn start(
        db: Db,
        quotas: Arc<Quotas>,
        stop: watch::Receiver<bool>,
    ) -> Result<(Self, tokio::task::JoinHandle<()>)> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let dropped = IntCounter::new(
            "svc_request_log_dropped_total",
            "Rows that the request log lost, because too many were waiting to be written.",
        );
        let dropped = dropped.map_err(Error::internal)?;
        let log = Self { sender, dropped, transactions: Arc::default(), hurry: Arc::default() };
        let writing = tokio::spawn(write_behind(db, quotas, log.clone(), receiver, stop));
        Ok((log, writing))
    }

    /// What is exported.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.dropped.clone())]
    }

    /// Takes a row, or drops it when too many wait.
    pub fn push(&self, row: LogRow) {
        if self.sender.try_send(row).is_err() {
            self.dropped.inc();
        }
        if self.sender.capacity() < WAITING / 2 {
            self.hurry.notify_one();
        }
    }

    /// How many rows were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
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
            // In the order in which they are stored, which fills the pages of the database better.
            rows.sort_unstable_by(|one, other| one.id.cmp(&other.id));
            transactions.fetch_add(1, Ordering::Relaxed);
            let store = move |tx: &mut Tx| {
                // A crash loses rows that wait in memory all the same.
                tx.answer_before_flush();
                insert(tx, &rows)
            };
            if let Err(error) = db.write(store).await {
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
    Rows::of(rows)
        .text("id", |row| row.id.as_str())
        .time("created_at", |row| row.created_at)
        .big_int("workspace_id", |row| row.workspace_id)
        .text("key_id", |row| row.key_id.as_ref())
        .text("operation", |row| row.operation)
        .text("method", |row| row.method.as_str())
        .text("path", |row| row.path.as_str())
        .big_int("status", |row| row.status)
        .text("code", |row| row.code)
        .text("gate", |row| row.gate)
        .bool("livemode", |row| row.livemode)
        .big_int("latency_us", |row| row.latency_us)
        .big_int("energy", |row| row.energy)
        .bool("replayed", |row| row.replayed)
        .text("client_request_id", |row| row.client_request_id.as_deref())
        .text("trace_id", |row| row.trace_id.as_deref())
        .text("interface", |row| row.interface)
        .text("message", |row| row.message.as_deref())
        .text("param", |row| row.param.as_deref())
        .insert_or(tx, "request_logs", OnConflict::Ignore)?;
    let fixed = REQUEST_LOG.row_bytes.on(tx);
    let sizes = rows.iter().map(|row| (row.workspace(), Size::row(fixed + row.text_bytes())));
    add(tx, REQUEST_LOG.name, &sum(sizes));
    request_hours::count(tx, rows.iter().filter_map(LogRow::counted))
}

/// The request log.
pub const REQUEST_LOG: LogKind = LogKind {
    key: Key::Id("id"),
    texts: &[
        "path",
        "operation",
        "code",
        "gate",
        "client_request_id",
        "key_id",
        "trace_id",
        "interface",
        "message",
        "param",
    ],
    row_bytes: PerRow { sqlite: 134, postgres: 284 },
    ..LogKind::of("request_logs")
};

impl LogRow {
    /// Whose row it is; 0 stands for nobody.
    fn workspace(&self) -> WorkspaceId {
        self.workspace_id.unwrap_or(WorkspaceId(0))
    }

    /// What its hour counts of it; `None` for a request of no workspace.
    fn counted(&self) -> Option<request_hours::Counted<'_>> {
        Some(request_hours::Counted {
            workspace: self.workspace_id?,
            key: self.key_id.as_ref(),
            at: self.created_at,
            status: self.status,
            latency_us: self.latency_us,
        })
    }

    /// The bytes of its texts, as they are counted in the database.
    fn text_bytes(&self) -> i64 {
        let texts = [
            self.operation,
            Some(self.path.as_str()),
            self.code,
            self.gate,
            self.client_request_id.as_deref(),
            self.key_id.as_ref().map(KeyId::as_str),
            self.trace_id.as_deref(),
            self.interface,
            self.message.as_deref(),
            self.param.as_deref(),
        ];
        texts.into_iter().flatten().map(|text| i64::try_from(text.len()).unwrap_or(0)).sum()
    }
}
