//! Calls of a published function over HTTP.

use super::super::{spread, state_load, whole};
use super::{Bench, CALL, CODE, Shop, check, publish, workers};
use crate::child::number;
use crate::load::Outcome;
use crate::machine::median;
use crate::report::Section;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// New functions whose first call is measured.
const FIRST_CALLS: usize = 50;

/// Measures a database. Returns the rate with 16 connections.
pub(super) fn measure(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str) -> Result<f64> {
    let mut shop = Shop::open(&["--database", database])?;
    let before = workers::of(shop.service.id())?;
    ensure!(before.is_empty(), "a service that has run no code has {} processes", before.len());
    let path = publish(&shop.server, "shipping", CODE, 10_000)?;
    check(&shop.server, &path)?;
    let many = load(bench, &shop, &path, 16)?;
    let one = load(bench, &shop, &path, 1)?;
    let (rate, p99) = state_load(section, &format!("{name}, 16 connections"), "call", &many);
    state_load(section, &format!("{name}, 1 connection"), "call", &one);
    let p50 = |outcomes: &[Outcome]| median(&outcomes.iter().map(|outcome| outcome.p50).collect::<Vec<_>>());
    let (many_p50, one_p50) = (p50(&many), p50(&one));
    if name == "SQLite" {
        section.against("SQLite, 16 connections: calls/s", whole(rate), "≥ 2,000", rate >= 2000.0);
        section.against("SQLite, 16 connections: p50, ms", format!("{many_p50:.1}"), "≤ 8", many_p50 <= 8.0);
        section.against("SQLite, 16 connections: p99, ms", format!("{p99:.1}"), "≤ 40", p99 <= 40.0);
        section.against("SQLite, 1 connection: p50, ms", format!("{one_p50:.2}"), "≤ 2", one_p50 <= 2.0);
        first_calls(section, &shop)?;
        workers::state(section, &shop)?;
    } else {
        section.against(format!("{name}, 16 connections: calls/s"), whole(rate), "≥ 1,000", rate >= 1000.0);
    }
    history(section, name, &mut shop, many.iter().chain(&one).map(Outcome::total).sum())?;
    shop.service.ask("stop")?;
    Ok(rate)
}

/// Measures with a process of its own for each call. Returns the rate.
pub(super) fn measure_strict(bench: &Bench<'_>, section: &mut Section, database: &str) -> Result<f64> {
    let mut shop = Shop::open(&["--database", database, "--calls-per-worker", "1"])?;
    let path = publish(&shop.server, "shipping", CODE, 10_000)?;
    check(&shop.server, &path)?;
    let outcomes = load(bench, &shop, &path, 16)?;
    let (rate, _) = state_load(section, "SQLite, a process a call, 16 connections", "call", &outcomes);
    shop.service.ask("stop")?;
    Ok(rate)
}

fn load(bench: &Bench<'_>, shop: &Shop, path: &str, connections: usize) -> Result<Vec<Outcome>> {
    let load = bench.load(&shop.service, &format!("POST {path}"), CALL, connections)?;
    (0..bench.plan.rounds)
        .map(|_| {
            let outcome = load.spawn()?;
            ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
            Ok(outcome)
        })
        .collect()
}

/// The first call of a version: it has no worker yet.
fn first_calls(section: &mut Section, shop: &Shop) -> Result<()> {
    let mut times = Vec::new();
    for number in 0..FIRST_CALLS {
        let path = publish(&shop.server, &format!("first_{number}"), CODE, 10_000)?;
        let began = Instant::now();
        check(&shop.server, &path)?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    let p50 = median(&times);
    let shown = spread(&times, |time| format!("{time:.1}"));
    section.against("SQLite: first call of a version, ms", shown, "≤ 5", p50 <= 5.0);
    Ok(())
}

/// How many calls the history has. It is written behind the answers, and keeps a limited size.
fn history(section: &mut Section, name: &str, shop: &mut Shop, calls: u64) -> Result<()> {
    let began = Instant::now();
    let mut written = 0;
    while written < calls && began.elapsed() < Duration::from_secs(10) {
        written = u64::try_from(number(&shop.service.ask("invocations")?, "waiting")?)?;
        std::thread::sleep(Duration::from_millis(100));
    }
    section.state(
        format!("{name}: of the measured calls, in the history"),
        format!("{} of {}", whole(written.min(calls) as f64), whole(calls as f64)),
    );
    Ok(())
}
