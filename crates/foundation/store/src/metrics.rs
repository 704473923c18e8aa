//! What is counted of the access to the database.

use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, IntCounter, PullingGauge, Result, exponential_buckets};

/// The most rows that are counted for a metric: a scrape must not cost what a scan costs.
pub const MOST_COUNTED: i64 = 100_000;

/// Name and help of the gauge of what waits for a connection.
pub(crate) const WAITING: (&str, &str) =
    ("svc_database_waiting", "Reads, and on PostgreSQL transactions, that are waiting for a connection.");
/// Name and help of the gauge of what waits for SQLite's writer.
pub(crate) const WRITER_WAITING: (&str, &str) =
    ("svc_sqlite_writer_waiting", "Transactions that are waiting for the writer.");

/// What is counted on both databases.
pub(crate) struct Metrics {
    pub(crate) reads: IntCounter,
    pub(crate) writes: IntCounter,
    pub(crate) retries: IntCounter,
    /// How long what needs a connection waits for one.
    pub(crate) waits: Histogram,
    pub(crate) groups: GroupMetrics,
}

/// What is counted of SQLite's groups of transactions.
#[derive(Clone)]
pub(crate) struct GroupMetrics {
    pub(crate) sizes: Histogram,
    pub(crate) durations: Histogram,
}

impl Metrics {
    pub(crate) fn new() -> Result<Self> {
        let seconds = exponential_buckets(0.0001, 4.0, 9)?;
        let waits = HistogramOpts::new(
            "svc_database_wait_seconds",
            "How long reads, and on PostgreSQL transactions, waited for a connection.",
        );
        let sizes = HistogramOpts::new("svc_sqlite_group_size", "Transactions that shared a commit.");
        let durations = HistogramOpts::new(
            "svc_sqlite_group_duration_seconds",
            "How long the writer worked on transactions that shared a commit, with the commit. The rate of its sum is \
             the share of time in which the writer is busy.",
        );
        Ok(Self {
            reads: IntCounter::new("svc_database_reads_total", "Reads that were begun.")?,
            writes: IntCounter::new("svc_database_transactions_total", "Transactions that were begun.")?,
            retries: IntCounter::new(
                "svc_database_retries_total",
                "Transactions that ran again after a deadlock or a serialization conflict of PostgreSQL.",
            )?,
            waits: Histogram::with_opts(waits.buckets(seconds.clone()))?,
            groups: GroupMetrics {
                sizes: Histogram::with_opts(sizes.buckets(exponential_buckets(1.0, 2.0, 8)?))?,
                durations: Histogram::with_opts(durations.buckets(seconds))?,
            },
        })
    }

    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.reads.clone()),
            Box::new(self.writes.clone()),
            Box::new(self.retries.clone()),
            Box::new(self.waits.clone()),
        ]
    }
}

impl GroupMetrics {
    pub(crate) fn collectors(&self) -> [Box<dyn Collector>; 2] {
        [Box::new(self.sizes.clone()), Box::new(self.durations.clone())]
    }
}

/// A gauge of the length of a queue.
pub(crate) fn queue(
    (name, help): (&str, &str),
    length: impl Fn() -> usize + Send + Sync + 'static,
) -> Result<PullingGauge> {
    PullingGauge::new(name, help, Box::new(move || u32::try_from(length()).unwrap_or(u32::MAX).into()))
}
