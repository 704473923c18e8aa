//! The same flow in n8n and Node-RED, and steps of DBOS: `scripts/bench-flows-peer`.

use super::super::{Bench, state_load};
use super::Kind;
use super::webhook::{BODY, CONNECTIONS, rounds};
use crate::child::{Child, number, text};
use crate::report::Section;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Measures n8n. Returns its rate, or `None` if it does not start.
pub(super) fn n8n(bench: &Bench<'_>, section: &mut Section, name: &str, kind: Kind) -> Result<Option<f64>> {
    serve(bench, section, name, &["n8n", &database(bench, kind, "n8n")?])
}

/// Measures Node-RED. Returns its rate, or `None` if it does not start.
pub(super) fn node_red(bench: &Bench<'_>, section: &mut Section) -> Result<Option<f64>> {
    serve(bench, section, "Node-RED", &["node-red"])
}

/// Returns the steps per second of DBOS, or `None` if it does not run.
pub(super) fn dbos(bench: &Bench<'_>, kind: Kind) -> Result<Option<f64>> {
    let Some(peer) = start(bench, &["dbos", &database(bench, kind, "dbos")?]) else { return Ok(None) };
    let seconds = peer.hello.get("seconds").and_then(Value::as_f64).context("no seconds")?;
    Ok(Some(number(&peer.hello, "steps")? as f64 / seconds))
}

fn serve(bench: &Bench<'_>, section: &mut Section, name: &str, arguments: &[&str]) -> Result<Option<f64>> {
    let Some(peer) = start(bench, arguments) else {
        section.note(format!("{name} was not there: `scripts/bench-flows-peer install`."));
        return Ok(None);
    };
    let mut load = bench.load(&peer, text(&peer.hello, "target")?, BODY, CONNECTIONS)?;
    load.process = u32::try_from(number(&peer.hello, "process")?)?;
    // Its compiler needs longer than ours until the code is fast.
    load.warm = 3.0;
    let outcomes = rounds(bench, || load.spawn())?;
    drop(peer);
    let (rate, _) = state_load(section, &format!("{name}, webhook, 16 connections"), "request", &outcomes);
    Ok(Some(rate))
}

/// The peer's database: a file of its own on SQLite.
fn database(bench: &Bench<'_>, kind: Kind, peer: &str) -> Result<String> {
    match kind {
        Kind::Sqlite => Ok("sqlite".to_owned()),
        Kind::Postgres => kind.database(bench, &format!("flows-{peer}"))?.context("no database"),
    }
}

fn start(bench: &Bench<'_>, arguments: &[&str]) -> Option<Child> {
    let mut command = Command::new("scripts/bench-flows-peer");
    command.args(arguments).env("BENCH_FOLDER", bench.folder.path()).stderr(Stdio::null());
    Child::run(command, None).ok()
}
