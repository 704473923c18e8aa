//! Traces for operators: where the spans of the service go.

#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
mod without;

#[cfg(feature = "otlp")]
pub(crate) use otlp::{Collector, Exporting};
#[cfg(not(feature = "otlp"))]
pub(crate) use without::{Collector, Exporting};

use model::{Error, Random, Result};
use prometheus::core::Collector as Metric;
use prometheus::{IntCounterVec, Opts};
use std::sync::Arc;
use store::Db;
use telemetry::Tracer;
use tokio::runtime::Handle;

/// Records the spans of a service, and counts them.
pub struct Traces {
    pub(crate) tracer: Tracer,
    spans: IntCounterVec,
}

impl Traces {
    /// Nothing is recorded.
    ///
    /// # Errors
    /// Never: names and help texts of metrics are constants.
    pub fn off(random: Arc<dyn Random>) -> Result<Self> {
        Ok(Self { tracer: Tracer::off(random), spans: counter()? })
    }

    /// They are exported to `collector`, if there is one.
    pub(crate) fn start(
        collector: Option<Collector>,
        db: &Db,
        runtime: &Handle,
    ) -> Result<(Self, Option<Exporting>)> {
        let Some(collector) = collector else { return Ok((Self::off(db.random())?, None)) };
        let (traces, exporting) = collector.start(db.clock(), db.random(), runtime)?;
        Ok((traces, Some(exporting)))
    }

    /// What is exported.
    pub(crate) fn collectors(&self) -> Vec<Box<dyn Metric>> {
        vec![Box::new(self.spans.clone())]
    }
}

fn counter() -> Result<IntCounterVec> {
    let spans = Opts::new(
        "svc_spans_total",
        "Spans of traces, by outcome: `exported`, `failed` where the collector did not take them, or `dropped` because too \
         many were waiting.",
    );
    IntCounterVec::new(spans, &["outcome"]).map_err(Error::internal)
}
