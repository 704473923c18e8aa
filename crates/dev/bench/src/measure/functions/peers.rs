//! The same function behind Node: a fresh process a call, and isolated-vm in one process.

use super::super::whole;
use super::{Bench, CALL, CODE, check};
use crate::child::{Child, text};
use crate::http::Server;
use crate::load::Outcome;
use crate::machine::median;
use crate::report::Section;
use anyhow::{Result, ensure};
use serde_json::json;
use std::process::{Command, Stdio};

/// Measures the peers that are there; `rate` is that of the service.
pub(super) fn measure(bench: &Bench<'_>, section: &mut Section, rate: f64) -> Result<()> {
    let Some(fresh) = peer(bench, "vm")? else {
        section.note("Node was not there, or has no isolated-vm: run by `scripts/bench`.");
        return Ok(());
    };
    section.state("Node's `vm` in a fresh process a call: calls/s", whole(fresh));
    let times = rate / fresh;
    section.against("service ÷ fresh Node processes", format!("{times:.0}"), "≥ 10", times >= 10.0);
    match peer(bench, "isolate")? {
        Some(isolated) => section.state("`isolated-vm` inside one process: calls/s", whole(isolated)),
        None => section.note("`isolated-vm` was not there: run by `scripts/bench`."),
    }
    Ok(())
}

/// Returns the rate of a peer with 16 connections, or `None` if it does not start.
fn peer(bench: &Bench<'_>, mode: &str) -> Result<Option<f64>> {
    let node = std::env::var("BENCH_NODE").unwrap_or_else(|_| "node".to_owned());
    let mut command = Command::new(node);
    command.args(["scripts/bench-functions-peer", mode]).stderr(Stdio::null());
    let Ok(peer) = Child::run(command, Some(&json!(CODE))) else { return Ok(None) };
    let server = Server { address: text(&peer.hello, "address")?.to_owned(), token: String::new() };
    check(&server, "/")?;
    let load = bench.load(&peer, "POST /", CALL, 16)?;
    let mut rates = Vec::new();
    for _ in 0..bench.plan.rounds {
        let outcome = load.spawn()?;
        ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
        rates.push(Outcome::rate(&outcome));
    }
    Ok(Some(median(&rates)))
}
