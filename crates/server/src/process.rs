//! Metrics of the process, under the names that Prometheus' own clients use where they have one.

use model::{Error, Result};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGauge, Opts};

/// What the kernel says of this process. Systems without `/proc` leave it out.
pub(crate) struct ProcessMetrics {
    resident: IntGauge,
    anonymous: IntGauge,
    threads: IntGauge,
}

/// Metrics of a process that started at this moment, and of the program's version.
///
/// # Errors
/// Never: names and help texts are constants.
pub(crate) fn collectors(started: model::Timestamp, version: &str) -> Result<Vec<Box<dyn Collector>>> {
    let gauge = |opts: Opts| IntGauge::with_opts(opts).map_err(Error::internal);
    let start =
        gauge(Opts::new("process_start_time_seconds", "When the process began to serve, in Unix time."))?;
    start.set(started.seconds());
    let build = Opts::new("svc_build_info", "Always 1. The labels tell which version is running.");
    let build = gauge(build.const_label("version", version))?;
    build.set(1);
    let process = ProcessMetrics {
        resident: gauge(Opts::new(
            "process_resident_memory_bytes",
            "Memory of the process, with pages of the program's file.",
        ))?,
        anonymous: gauge(Opts::new(
            "svc_anonymous_memory_bytes",
            "Memory that the process has allocated, without mapped files.",
        ))?,
        threads: gauge(Opts::new("process_threads", "Threads of the process."))?,
    };
    Ok(vec![Box::new(start), Box::new(build), Box::new(process)])
}

impl ProcessMetrics {
    fn gauges(&self) -> [(&'static str, &IntGauge, i64); 3] {
        [
            ("VmRSS:", &self.resident, 1024),
            ("RssAnon:", &self.anonymous, 1024),
            ("Threads:", &self.threads, 1),
        ]
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges().into_iter().flat_map(|(_, gauge, _)| gauge.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Vec::new() };
        let found = self.gauges().into_iter().filter_map(|(name, gauge, unit)| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let number: i64 = line.split_whitespace().next()?.parse().ok()?;
            gauge.set(number * unit);
            Some(gauge.collect())
        });
        found.flatten().collect()
    }
}
