//! Metrics of the sandbox.

use model::{Error, Result};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntGauge, IntGaugeVec, Opts};
use sandbox::{Landlock, Sandbox};
use std::sync::{Mutex, PoisonError};

/// What the sandbox counts. Its counts are read at each scrape.
struct SandboxMetrics {
    sandbox: Sandbox,
    running: IntGauge,
    waiting: IntGauge,
    idle: IntGauge,
    calls: IntCounter,
    workers: IntCounter,
    zygotes: IntCounter,
    protection: IntGaugeVec,
    /// Two scrapes at once would add the same difference twice.
    scraping: Mutex<()>,
}

/// The metrics of a sandbox.
///
/// # Errors
/// Never: names and help texts are constants.
pub(crate) fn collector(sandbox: Sandbox) -> Result<Box<dyn Collector>> {
    let gauge = |name, help| IntGauge::new(name, help).map_err(Error::internal);
    let counter = |name, help| IntCounter::new(name, help).map_err(Error::internal);
    let protection = Opts::new(
        "svc_sandbox_protection",
        "1 if code is held by this protection of the kernel, 0 if the kernel lacks it. Appears with the first call.",
    );
    Ok(Box::new(SandboxMetrics {
        sandbox,
        running: gauge("svc_sandbox_calls_running", "Calls of functions and scripts that run.")?,
        waiting: gauge(
            "svc_sandbox_calls_waiting",
            "Calls of functions and scripts that wait for their turn.",
        )?,
        idle: gauge("svc_sandbox_workers_idle", "Processes of the sandbox that wait for a call.")?,
        calls: counter("svc_sandbox_calls_total", "Calls of functions and scripts.")?,
        workers: counter(
            "svc_sandbox_workers_total",
            "Processes of the sandbox that were started for calls.",
        )?,
        zygotes: counter(
            "svc_sandbox_zygotes_total",
            "Starts of the process that starts those. More than one means that it ended and was started again.",
        )?,
        protection: IntGaugeVec::new(protection, &["kind"]).map_err(Error::internal)?,
        scraping: Mutex::new(()),
    }))
}

impl SandboxMetrics {
    fn parts(&self) -> [&dyn Collector; 7] {
        let Self { running, waiting, idle, calls, workers, zygotes, protection, .. } = self;
        [running, waiting, idle, calls, workers, zygotes, protection]
    }
}

impl Collector for SandboxMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.parts().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let _scraping = self.scraping.lock().unwrap_or_else(PoisonError::into_inner);
        let stats = self.sandbox.stats();
        for (gauge, value) in
            [(&self.running, stats.running), (&self.waiting, stats.waiting), (&self.idle, stats.idle)]
        {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        for (counter, value) in
            [(&self.calls, stats.calls), (&self.workers, stats.workers), (&self.zygotes, stats.zygotes)]
        {
            counter.inc_by(value.saturating_sub(counter.get()));
        }
        if let Some(protection) = stats.protection {
            let landlock = protection.landlock != Landlock::Missing;
            for (kind, is_there) in [("landlock", landlock), ("seccomp", protection.seccomp)] {
                self.protection.with_label_values(&[kind]).set(i64::from(is_there));
            }
        }
        self.parts().into_iter().flat_map(Collector::collect).collect()
    }
}
