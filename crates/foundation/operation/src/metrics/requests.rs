//! Metrics of requests.

use crate::Registry;
use crate::gates::Gate;
use model::{Code, Error, Result};
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts};
use std::sync::OnceLock;
use std::time::Duration;

/// The upper bounds of the latency histogram in seconds. A request that waits for a run takes up to 100.
const SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 100.0];

/// The statuses of successful responses.
const SUCCESS: [u16; 4] = [200, 201, 202, 204];

/// The label value for requests without an operation, and for requests that no gate rejected.
const NONE: &str = "none";

/// Counts requests by operation, status and gate, and measures how long they take.
///
/// Label values are looked up once. Afterwards a request costs atomic additions and no lock.
#[derive(Clone)]
pub struct RequestMetrics {
    requests: IntCounterVec,
    latencies: HistogramVec,
    /// The ids of the operations, by their index in the registry. The last one is for requests without an operation.
    ids: Vec<&'static str>,
    /// The metrics of the operations, by the same index. An operation that nobody calls has no series.
    operations: Vec<OnceLock<OperationMetrics>>,
    /// All statuses of responses, in ascending order.
    statuses: Vec<u16>,
}

#[derive(Clone)]
struct OperationMetrics {
    latency: Histogram,
    /// The counters, by gate and status.
    requests: Box<[OnceLock<IntCounter>]>,
}

impl RequestMetrics {
    /// Creates the metrics of the operations of `registry`.
    ///
    /// # Errors
    /// None in practice: names and help texts are constants.
    pub fn new(registry: &Registry) -> Result<Self> {
        let requests = Opts::new(
            "svc_requests_total",
            "Requests, by operation (`none` where none was reached), status, and the gate that rejected the request \
             (`none` where none did).",
        );
        let latencies = HistogramOpts::new(
            "svc_request_duration_seconds",
            "The time from a request's headers to its response; for a stream, to its beginning.",
        );
        let mut ids: Vec<&'static str> = registry.operations().iter().map(|one| one.meta().id).collect();
        ids.push(NONE);
        let errors = Code::ALL.iter().map(|code| code.status());
        let mut statuses: Vec<u16> = SUCCESS.into_iter().chain(errors).collect();
        statuses.sort_unstable();
        statuses.dedup();
        let labels = &["operation", "status", "gate"];
        Ok(Self {
            requests: IntCounterVec::new(requests, labels).map_err(Error::internal)?,
            latencies: HistogramVec::new(latencies.buckets(SECONDS.to_vec()), &["operation"])
                .map_err(Error::internal)?,
            operations: ids.iter().map(|_| OnceLock::new()).collect(),
            ids,
            statuses,
        })
    }

    /// Returns the collectors to export.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.requests.clone()), Box::new(self.latencies.clone())]
    }

    /// Counts an answered request. `place` is the index of the operation in the registry.
    pub(crate) fn count(&self, place: Option<usize>, gate: Option<Gate>, status: u16, latency: Duration) {
        let place = place.unwrap_or(self.ids.len() - 1);
        let (Some(id), Some(operation)) = (self.ids.get(place), self.operations.get(place)) else { return };
        let metrics = operation.get_or_init(|| self.of_operation(id));
        metrics.latency.observe(latency.as_secs_f64());
        let counter = || {
            let gate = gate.map_or(NONE, Gate::as_str);
            self.requests.with_label_values(&[id, status.to_string().as_str(), gate])
        };
        match self.slot(gate, status).and_then(|slot| metrics.requests.get(slot)) {
            Some(slot) => slot.get_or_init(counter).inc(),
            None => counter().inc(),
        }
    }

    fn of_operation(&self, id: &str) -> OperationMetrics {
        let slots = (Gate::ALL.len() + 1) * self.statuses.len();
        OperationMetrics {
            latency: self.latencies.with_label_values(&[id]),
            requests: std::iter::repeat_with(OnceLock::new).take(slots).collect(),
        }
    }

    /// Returns the index of a counter, or `None` for a status that no response is known to have.
    fn slot(&self, gate: Option<Gate>, status: u16) -> Option<usize> {
        let row = gate.map_or(0, |gate| gate as usize + 1);
        let column = self.statuses.binary_search(&status).ok()?;
        Some(row * self.statuses.len() + column)
    }
}
