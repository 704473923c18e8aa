//! `svc doctor`: checks a configuration and everything that the service depends on. It changes nothing.

mod channels;
mod database;
mod environment;
mod model;

use super::output;
use crate::Config;
use anyhow::bail;
use serde_json::json;
use std::time::Duration;

/// How long a check may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    /// The service works, but somebody should know.
    Warn,
    /// The service does not start, or something of it does not work.
    Fail,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What a check found: a sentence, and what to do where something is wrong. Never a secret.
struct Finding {
    status: Status,
    message: String,
}

impl Finding {
    fn ok(message: impl Into<String>) -> Self {
        Self { status: Status::Ok, message: message.into() }
    }

    fn warn(message: impl Into<String>) -> Self {
        Self { status: Status::Warn, message: message.into() }
    }

    fn fail(message: impl Into<String>) -> Self {
        Self { status: Status::Fail, message: message.into() }
    }
}

/// The findings so far.
#[derive(Default)]
struct Report(Vec<(&'static str, Finding)>);

impl Report {
    /// Runs one check, for at most [`LIMIT`]. An error is a failed check.
    async fn check(&mut self, name: &'static str, check: impl Future<Output = anyhow::Result<Finding>>) {
        let finding = match tokio::time::timeout(LIMIT, check).await {
            Ok(Ok(finding)) => finding,
            Ok(Err(error)) => Finding::fail(format!("{error:#}.")),
            Err(_) => Finding::fail(format!("No result after {} seconds.", LIMIT.as_secs())),
        };
        self.0.push((name, finding));
    }

    fn print(&self, json: bool) -> std::io::Result<()> {
        if json {
            let row = |(name, finding): &(&str, Finding)| json!({ "check": name, "status": finding.status.as_str(), "message": finding.message });
            return output::rows(&self.0.iter().map(row).collect::<Vec<_>>(), true);
        }
        let line = |(name, finding): &(&str, Finding)| {
            format!("{:<4}  {name:<14}  {}\n", finding.status.as_str(), finding.message)
        };
        output::text(&self.0.iter().map(line).collect::<String>())
    }

    fn failed(&self) -> usize {
        self.0.iter().filter(|(_, finding)| finding.status == Status::Fail).count()
    }
}

/// Runs all checks.
///
/// # Errors
/// When one of them failed.
pub(super) fn run(config: Config, unknown_variables: &[String], json: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(run_checks(&config, unknown_variables));
    // A check that took too long may still hold a thread.
    runtime.shutdown_background();
    report.print(json)?;
    match report.failed() {
        0 => Ok(()),
        failed => bail!("{failed} of {} checks failed", report.0.len()),
    }
}

async fn run_checks(config: &Config, unknown_variables: &[String]) -> Report {
    let mut report = Report::default();
    report.check("settings", async { Ok(environment::settings(unknown_variables)) }).await;
    report.check("data folder", environment::data_folder(config)).await;
    report.check("files", environment::files(config)).await;
    let mut opened = None;
    report.check("database", database::database(config, &mut opened)).await;
    report.check("secret key", database::secret_key(config, opened.clone())).await;
    report.check("logs", database::logs(config, opened.clone())).await;
    report.check("channels", channels::channels(config, opened.clone())).await;
    report.check("clock", database::clock(opened)).await;
    report.check("redis", environment::redis(config)).await;
    report.check("outbound", environment::outbound(config)).await;
    report.check("embedded model", model::embedded(config)).await;
    report.check("model server", model::server(config)).await;
    report.check("traces", environment::traces(config)).await;
    report.check("sandbox", environment::sandbox(config)).await;
    report.check("listen address", environment::listen_address(config)).await;
    report.check("admin address", environment::admin_address(config)).await;
    report
}
