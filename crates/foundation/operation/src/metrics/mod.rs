//! The Prometheus metrics of the service.
//!
//! Code that counts something creates collectors and passes them to [`Metrics`] through its [`Group`](crate::Group).

pub(crate) mod logs;
mod requests;
mod tables;

pub use requests::RequestMetrics;
pub use tables::{Counts, TableGauge};

use model::{Error, Result};
use prometheus::core::{Collector, Desc};
use prometheus::{Registry, TextEncoder};
use store::Db;
use tables::Tables;
use tokio::sync::Mutex;

/// All metrics of the process.
pub struct Metrics {
    db: Db,
    registry: Registry,
    described: Vec<MetricInfo>,
    tables: Mutex<Tables>,
}

/// A metric, as docs/monitoring.md lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricInfo {
    /// The name.
    pub name: String,
    /// The labels.
    pub labels: Vec<String>,
    /// The help text.
    pub help: String,
}

impl Metrics {
    /// Creates the metrics from `collectors` and `tables`.
    ///
    /// # Errors
    /// `internal_error` when two metrics have the same name.
    pub fn new(db: Db, collectors: Vec<Box<dyn Collector>>, tables: Vec<TableGauge>) -> Result<Self> {
        let tables = Tables::new(tables)?;
        let registry = Registry::new();
        let mut described = Vec::new();
        for collector in collectors.into_iter().chain(tables.collectors()) {
            described.extend(collector.desc().into_iter().map(|metric| MetricInfo {
                name: metric.fq_name.clone(),
                labels: label_names(metric),
                help: metric.help.clone(),
            }));
            registry.register(collector).map_err(Error::internal)?;
        }
        described.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { db, registry, described, tables: Mutex::new(tables) })
    }

    /// Returns all metrics, sorted by name. A metric without values is missing in a scrape.
    pub fn described(&self) -> &[MetricInfo] {
        &self.described
    }

    /// Returns the values in the Prometheus text format. Scrapes run one at a time.
    ///
    /// # Errors
    /// `internal_error` when a value cannot be encoded.
    pub async fn scrape(&self) -> Result<String> {
        let mut tables = self.tables.lock().await;
        tables.refresh(&self.db).await;
        TextEncoder::new().encode_to_string(&self.registry.gather()).map_err(Error::internal)
    }
}

fn label_names(metric: &Desc) -> Vec<String> {
    let fixed = metric.const_label_pairs.iter().map(|label| label.name().to_owned());
    fixed.chain(metric.variable_labels.iter().cloned()).collect()
}
