//! Metrics of deliveries.

use super::Finished;
use super::Verdict;
use diesel::prelude::*;
use model::{Error, Result};
use operation::{Counts, TableGauge};
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, IntCounterVec, Opts};
use store::{MOST_COUNTED, Read};

/// Deliveries that have not ended.
pub(crate) const OPEN_DELIVERIES: TableGauge = TableGauge::new(
    "svc_webhook_deliveries_open",
    "Webhook deliveries that have not ended, by status: `due` (with those that wait for a retry), `waiting` for an \
     earlier delivery, or `delivering`.",
    open_by_status,
)
.by("status");

/// The upper bounds of the duration histogram, in seconds. An attempt takes at most 30.
const SECONDS: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0];

/// What is counted of attempts to deliver.
pub(crate) struct DeliveryMetrics {
    attempts: IntCounterVec,
    durations: Histogram,
}

impl DeliveryMetrics {
    pub(crate) fn new() -> Result<Self> {
        let attempts = Opts::new(
            "svc_webhook_attempts_total",
            "Attempts to deliver an event, by outcome: `succeeded`, `retried` later, or `failed` for good.",
        );
        let durations = HistogramOpts::new(
            "svc_webhook_attempt_duration_seconds",
            "The time from the beginning of an attempt to the endpoint's response.",
        );
        Ok(Self {
            attempts: IntCounterVec::new(attempts, &["outcome"]).map_err(Error::internal)?,
            durations: Histogram::with_opts(durations.buckets(SECONDS.to_vec())).map_err(Error::internal)?,
        })
    }

    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.attempts.clone()), Box::new(self.durations.clone())]
    }

    /// Counts attempts that are written down.
    pub(crate) fn count(&self, finished: &[Finished]) {
        for done in finished {
            let outcome = match done.verdict {
                Verdict::Succeeded => "succeeded",
                Verdict::Retry(_) => "retried",
                Verdict::Failed => "failed",
            };
            self.attempts.with_label_values(&[outcome]).inc();
            let millis = u32::try_from(done.attempt.duration_ms).unwrap_or_default();
            self.durations.observe(f64::from(millis) / 1000.0);
        }
    }
}

/// Each count reads one partial index of the deliveries.
fn open_by_status(read: &mut Read) -> Result<Counts> {
    #[derive(QueryableByName)]
    struct Open {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        deliveries: i64,
    }
    let mut count = |filter: &str| -> Result<i64> {
        let sql = format!(
            "SELECT COUNT(*) AS deliveries FROM
                (SELECT 1 FROM webhook_deliveries WHERE {filter} LIMIT {MOST_COUNTED}) AS open"
        );
        Ok(diesel::sql_query(sql).get_result::<Open>(read.connection())?.deliveries)
    };
    Ok(vec![
        ("due".into(), count("due_at IS NOT NULL")?),
        (
            "waiting".into(),
            count("lane IS NOT NULL AND ended_at IS NULL AND due_at IS NULL AND status = 'pending'")?,
        ),
        ("delivering".into(), count("status = 'delivering'")?),
    ])
}
