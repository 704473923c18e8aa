//! Checks of what is around the service: folders, the disk, Redis, addresses.

use super::Finding;
use crate::Config;
use crate::file_storage::Place;
use crate::operator_error::cause;
use crate::serve::listen;
use crate::traces::Collector;
use crate::values::SandboxMode;
use anyhow::Context;
use egress::{Connector, Limits, Policy, Request};
use model::SystemRandom;
use rustix::fs::{Access, access, statvfs};
use sandbox::Sandbox;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// With less free disk than this, the operator should know; with a tenth of it, writes are about to fail.
const FREE_MIB: u64 = 1024;

/// Is each variable that looks like a setting one?
pub(super) fn settings(unknown_variables: &[String]) -> Finding {
    match unknown_variables {
        [] => Finding::ok("All variables that begin with SVC_ are settings."),
        unknown => Finding::warn(unknown.join(" ")),
    }
}

/// Can the service write there, and has the disk room?
pub(super) async fn data_folder(config: &Config) -> anyhow::Result<Finding> {
    let folder = std::path::absolute(&config.data_dir)?;
    anyhow::ensure!(folder.is_dir() || !folder.exists(), "{} is not a folder", folder.display());
    let existing = existing(&folder);
    access(&existing, Access::WRITE_OK | Access::EXEC_OK).with_context(|| {
        format!("{} is not writable for this user: change its owner or SVC_DATA_DIR", existing.display())
    })?;
    let disk =
        statvfs(&existing).with_context(|| format!("asking for the free disk of {}", existing.display()))?;
    let free_mib = disk.f_bavail.saturating_mul(disk.f_frsize) >> 20;
    let place = if folder.exists() {
        format!("{} is writable", folder.display())
    } else {
        format!("{} does not exist; `svc serve` creates it", folder.display())
    };
    let message = format!("{place}. Free disk: {free_mib} MiB.");
    Ok(match free_mib {
        0..=102 => Finding::fail(format!("{message} Free some.")),
        free if free < FREE_MIB => Finding::warn(format!("{message} Free some soon.")),
        _ => Finding::ok(message),
    })
}

/// The folder itself, or the nearest above it that exists.
fn existing(folder: &Path) -> PathBuf {
    folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/")).to_owned()
}

/// Can files be stored and read?
pub(super) async fn files(config: &Config) -> anyhow::Result<Finding> {
    let rules = config.allow_outbound.iter().map(String::as_str);
    let place = Place::read(config, &Connector::new(Policy::allowing(rules)?)?)?;
    let name = match &place {
        Place::Folder(folder) if !folder.exists() => {
            return Ok(Finding::ok(format!(
                "{} does not exist yet; `svc serve` creates it.",
                folder.display()
            )));
        }
        Place::Folder(folder) => folder.display().to_string(),
        Place::S3(settings, _) => format!("the bucket {}", settings.bucket),
    };
    files::probe(&place.open()?, &SystemRandom::default())
        .await
        .map_err(cause)
        .with_context(|| format!("Files cannot be stored in {name}"))?;
    Ok(Finding::ok(format!("A file was written to {name}, read and deleted.")))
}

/// Does it answer, where it is set?
pub(super) async fn redis(config: &Config) -> anyhow::Result<Finding> {
    let Some(url) = &config.redis_url else {
        return Ok(Finding::ok(
            "Not set. One replica needs none; several count rate limits separately without it.",
        ));
    };
    Ok(match auth::ping_redis(url).await {
        Ok(()) => Finding::ok("It answers."),
        Err(error) => Finding::fail(format!(
            "It does not answer ({error}): check SVC_REDIS_URL. Until then each replica counts rate limits separately."
        )),
    })
}

/// Does the collector take spans, where there is one?
pub(super) async fn traces(config: &Config) -> anyhow::Result<Finding> {
    let Some(collector) = Collector::read(config)? else {
        return Ok(Finding::ok("Not exported: OTEL_EXPORTER_OTLP_ENDPOINT is not set."));
    };
    Ok(match collector.probe().await {
        Ok(()) => Finding::ok("The collector accepts them."),
        // The service works all the same.
        Err(error) => Finding::warn(format!(
            "The collector does not accept them ({error}): check OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS."
        )),
    })
}

/// Does code of functions and skills run, and with all protection?
pub(super) async fn sandbox(config: &Config) -> anyhow::Result<Finding> {
    if config.sandbox == SandboxMode::Off {
        return Ok(Finding::ok("Code of functions and skills is refused: SVC_SANDBOX is off."));
    }
    let protection = Sandbox::new(crate::settings::sandbox(config)).protection().await?;
    let message = format!("Code of functions and skills is held by limits, {protection}.");
    Ok(match config.sandbox {
        _ if protection.is_complete() => Finding::ok(message),
        SandboxMode::Required => Finding::fail(format!(
            "{message} SVC_SANDBOX is required, so code is refused: use a kernel with landlock and seccomp."
        )),
        _ => Finding::warn(format!(
            "{message} Use a kernel with landlock and seccomp, or set SVC_SANDBOX to off if no function is used."
        )),
    })
}

/// Can the rules for outbound HTTP be read?
pub(super) async fn outbound(config: &Config) -> anyhow::Result<Finding> {
    Policy::allowing(config.allow_outbound.iter().map(String::as_str)).context("SVC_ALLOW_OUTBOUND")?;
    Ok(match config.allow_outbound.len() {
        0 => Finding::ok("Only public addresses can be reached."),
        rules => Finding::ok(format!(
            "Public addresses and those of SVC_ALLOW_OUTBOUND (rules: {rules}) can be reached, by all tenants."
        )),
    })
}

/// Is the API's address free, or in use by this service?
pub(super) async fn listen_address(config: &Config) -> anyhow::Result<Finding> {
    address(&config.listen, "SVC_LISTEN").await
}

/// Is the address of metrics free, or in use by this service?
pub(super) async fn admin_address(config: &Config) -> anyhow::Result<Finding> {
    match &config.admin_listen {
        Some(listen) => address(listen, "SVC_ADMIN_LISTEN").await,
        None => Ok(Finding::ok("Not set, so metrics are not served.")),
    }
}

async fn address(address: &str, setting: &str) -> anyhow::Result<Finding> {
    Ok(match listen(address) {
        Ok(_) => Finding::ok(format!("{address} is free.")),
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_service(address).await? => {
            Finding::ok(format!("{address} is in use by a running svc."))
        }
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Finding::fail(format!("{address} is in use by another program. Stop it or change {setting}."))
        }
        Err(error) => Finding::fail(format!("{address} cannot be used ({error}). Change {setting}.")),
    })
}

/// Whether a service like this one answers at an address that is in use.
async fn is_service(address: &str) -> anyhow::Result<bool> {
    let mut target = address.to_socket_addrs()?.next().context("it names no address")?;
    if target.ip().is_unspecified() {
        target.set_ip(if target.is_ipv4() {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            IpAddr::V6(Ipv6Addr::LOCALHOST)
        });
    }
    let connector = Connector::new(Policy::allowing([target.to_string().as_str()])?)?;
    let limits = Limits { total: Duration::from_secs(3), ..Limits::default() };
    let request = Request::get(format!("http://{target}/health")).limits(limits);
    Ok(match connector.send(request).await {
        Ok(response) => {
            let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
            response.status == 200 && body.get("status").is_some_and(|status| status == "ok")
        }
        Err(_) => false,
    })
}
