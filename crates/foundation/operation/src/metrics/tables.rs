//! Metrics that are read from the database. Every replica exports the same values, so they must not be summed.

use model::{Error, Result};
use prometheus::core::Collector;
use prometheus::{IntGauge, IntGaugeVec, Opts};
use std::borrow::Cow;
use std::time::{Duration, Instant};
use store::{Db, Read};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long values are reused for further scrapes.
const FRESH: Duration = Duration::from_secs(10);
/// How long a scrape waits for the database. Prometheus gives up after 10 seconds.
const PATIENCE: Duration = Duration::from_secs(3);

/// Values, each with the value of its label.
pub type Counts = Vec<(Cow<'static, str>, i64)>;

/// A gauge that is read from the database. It reads at most [`store::MOST_COUNTED`] rows, through an index.
#[derive(Debug, Clone, Copy)]
pub struct TableGauge {
    /// The name, such as `svc_jobs_due`.
    pub name: &'static str,
    /// The help text. A note that every replica exports the same value is appended.
    pub help: &'static str,
    /// The label. `None` for a gauge with one value, whose label value is empty.
    pub label: Option<&'static str>,
    /// Reads the values.
    pub read: fn(&mut Read) -> Result<Counts>,
}

impl TableGauge {
    /// Creates a gauge with one value.
    pub const fn new(name: &'static str, help: &'static str, read: fn(&mut Read) -> Result<Counts>) -> Self {
        Self { name, help, label: None, read }
    }

    /// Adds a label.
    #[must_use]
    pub const fn by(self, label: &'static str) -> Self {
        Self { label: Some(label), ..self }
    }

    fn gauge(&self) -> Result<IntGaugeVec> {
        let help = format!("{} The same on every replica.", self.help);
        IntGaugeVec::new(Opts::new(self.name, help), self.label.as_slice()).map_err(Error::internal)
    }
}

/// All gauges with their last values.
pub(crate) struct Tables {
    gauges: Vec<(TableGauge, IntGaugeVec)>,
    /// Whether the last scrape could read the values.
    success: IntGauge,
    read_at: Option<Instant>,
    /// A read that a scrape stopped waiting for. The next scrape waits for it instead of starting another one.
    reading: Option<JoinHandle<Result<Vec<Counts>>>>,
}

impl Tables {
    pub(crate) fn new(gauges: Vec<TableGauge>) -> Result<Self> {
        let success = IntGauge::new(
            "svc_table_metrics_success",
            "Whether this scrape could read the metrics that come from tables (1), or leaves them out (0).",
        );
        let gauges = gauges.into_iter().map(|gauge| Ok((gauge, gauge.gauge()?)));
        Ok(Self {
            gauges: gauges.collect::<Result<_>>()?,
            success: success.map_err(Error::internal)?,
            read_at: None,
            reading: None,
        })
    }

    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let gauges = self.gauges.iter().map(|(_, gauge)| Box::new(gauge.clone()) as Box<dyn Collector>);
        gauges.chain([Box::new(self.success.clone()) as Box<dyn Collector>]).collect()
    }

    /// Reads the values again if they are old. Values that cannot be read in time are left out of the scrape.
    pub(crate) async fn refresh(&mut self, db: &Db) {
        if self.read_at.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let mut reading = self.reading.take().unwrap_or_else(|| self.begin(db));
        let values = match timeout(PATIENCE, &mut reading).await {
            Ok(read) => read.map_err(Error::internal).flatten(),
            Err(_) => {
                self.reading = Some(reading);
                Err(Error::internal("the database took too long"))
            }
        };
        for (_, gauge) in &self.gauges {
            gauge.reset();
        }
        self.success.set(values.is_ok().into());
        match values {
            Ok(values) => {
                self.read_at = Some(Instant::now());
                self.set(&values);
            }
            Err(error) => {
                self.read_at = None;
                tracing::warn!(?error, "the metrics that come from tables could not be read");
            }
        }
    }

    fn begin(&self, db: &Db) -> JoinHandle<Result<Vec<Counts>>> {
        let readers: Vec<_> = self.gauges.iter().map(|(gauge, _)| gauge.read).collect();
        let db = db.background();
        tokio::spawn(
            async move { db.read(move |read| readers.iter().map(|counts| counts(read)).collect()).await },
        )
    }

    fn set(&self, values: &[Counts]) {
        for ((declared, gauge), counts) in self.gauges.iter().zip(values) {
            for (value, count) in counts {
                let labels = declared.label.map(|_| value.as_ref());
                gauge.with_label_values(labels.as_slice()).set(*count);
            }
        }
    }
}
