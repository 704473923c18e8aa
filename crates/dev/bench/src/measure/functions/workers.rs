//! The processes of the sandbox.

use super::{Shop, publish};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use std::fs;

/// The most that an idle worker may have for itself, in MiB.
const MOST: f64 = 4.0;

/// Returns the processes below a process: the zygote, then its workers.
pub(super) fn of(process: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process can end meanwhile.
        let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        if parent == Some(process) {
            found.push(id);
        }
    }
    let below = found.iter().map(|id| of(*id)).collect::<Result<Vec<_>>>()?;
    found.extend(below.into_iter().flatten());
    Ok(found)
}

/// States the memory of an idle worker that no other process shares.
pub(super) fn state(section: &mut Section, shop: &Shop) -> Result<()> {
    let path = publish(&shop.server, "idle", super::CODE, 10_000)?;
    super::check(&shop.server, &path)?;
    let processes = of(shop.service.id())?;
    let workers = processes.get(1..).unwrap_or_default();
    ensure!(!workers.is_empty(), "no worker waits for its next call");
    let sizes = workers.iter().filter_map(|id| private(*id).ok()).collect::<Vec<_>>();
    let most = sizes.iter().copied().fold(0.0, f64::max);
    ensure!(!sizes.is_empty(), "the memory of workers cannot be read: run as their user or as root");
    section.against(
        "an idle worker: memory of its own, at most, MiB",
        format!("{most:.1} ({} workers)", sizes.len()),
        "≤ 4",
        most <= MOST,
    );
    section.state("processes of a service that has run no code", "0");
    Ok(())
}

/// Returns the memory that only this process has, in MiB.
fn private(process: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let kib = |name: &str| -> Result<f64> {
        let line = text.lines().find(|line| line.starts_with(name)).context("no such line")?;
        Ok(line.split_whitespace().nth(1).context("no value")?.parse()?)
    };
    Ok((kib("Private_Clean:")? + kib("Private_Dirty:")?) / 1024.0)
}
