//! `svc doctor`: checks a configuration and everything that the service depends on. It changes nothing.

mod channels;
mod database;
mod environment;
mod model;

use super::{Cli, output, unknown_variables};
use crate::{Config, VERSION};
use anyhow::bail;
use clap::CommandFactory as _;
use operation::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::join;
use workbench::{HealthState as Status, InstallationCheck, InstallationChecks};

/// How long a check may take.
const LIMIT: Duration = Duration::from_secs(10);

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

/// Runs one check, for at most [`LIMIT`]. An error is a failed check.
async fn one(name: &'static str, check: impl Future<Output = anyhow::Result<Finding>>) -> InstallationCheck {
    let Finding { status, message } = match tokio::time::timeout(LIMIT, check).await {
        Ok(Ok(finding)) => finding,
        Ok(Err(error)) => Finding::fail(format!("{error:#}.")),
        Err(_) => Finding::fail(format!("No result after {} seconds.", LIMIT.as_secs())),
    };
    InstallationCheck { name, status, message }
}

/// The checks of the installation that serves.
pub(super) struct Doctor(Arc<Config>);

impl Doctor {
    /// Makes the checks from the settings of the installation.
    pub(super) fn of(config: Arc<Config>) -> Arc<dyn InstallationChecks> {
        Arc::new(Self(config))
    }
}

impl InstallationChecks for Doctor {
    fn run(&self) -> BoxFuture<Vec<InstallationCheck>> {
        let config = self.0.clone();
        Box::pin(async move { run_checks(&config).await })
    }
}

/// Runs all checks.
///
/// # Errors
/// When one of them failed.
pub(super) fn run(config: &Config, json: bool) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checks = runtime.block_on(run_checks(config));
    // A check that took too long may still hold a thread.
    runtime.shutdown_background();
    print(&checks, json)?;
    match checks.iter().filter(|check| check.status == Status::Fail).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} checks failed", checks.len()),
    }
}

fn print(checks: &[InstallationCheck], json: bool) -> std::io::Result<()> {
    if json {
        let row = |check: &InstallationCheck| json!({ "check": check.name, "status": check.status.as_str(), "message": check.message });
        return output::rows(&checks.iter().map(row).collect::<Vec<_>>(), true);
    }
    let line = |check: &InstallationCheck| {
        format!("{:<4}  {:<14}  {}\n", check.status.as_str(), check.name, check.message)
    };
    output::text(&checks.iter().map(line).collect::<String>())
}

/// The database is opened first, because other checks ask it; the others run at once.
async fn run_checks(config: &Config) -> Vec<InstallationCheck> {
    let mut opened = None;
    let database = one("database", database::database(config, &mut opened)).await;
    let (settings, data_folder, files, secret_key, logs, channels, clock) = join!(
        one("settings", async { Ok(environment::settings(&unknown_variables(&Cli::command()))) }),
        one("data folder", environment::data_folder(config)),
        one("files", environment::files(config)),
        one("secret key", database::secret_key(config, opened.clone())),
        one("logs", database::logs(config, opened.clone())),
        one("channels", channels::channels(config, opened.clone())),
        one("clock", database::clock(opened.clone())),
    );
    let (redis, outbound, embedded, server, traces, sandbox, listen, admin) = join!(
        one("redis", environment::redis(config)),
        one("outbound", environment::outbound(config)),
        one("embedded model", model::embedded(config)),
        one("model server", model::server(config)),
        one("traces", environment::traces(config)),
        one("sandbox", environment::sandbox(config)),
        one("listen address", environment::listen_address(config)),
        one("admin address", environment::admin_address(config)),
    );
    let version =
        InstallationCheck { name: "version", status: Status::Ok, message: format!("svc {VERSION}.") };
    vec![
        version,
        settings,
        data_folder,
        files,
        database,
        secret_key,
        logs,
        channels,
        clock,
        redis,
        outbound,
        embedded,
        server,
        traces,
        sandbox,
        listen,
        admin,
    ]
}
