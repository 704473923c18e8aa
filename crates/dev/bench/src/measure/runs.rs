//! Complete runs: `POST /runs` with a model that answers at once.

use super::{Bench, postgres, state_load, whole};
use crate::child::{Child, number, text};
use crate::load::Outcome;
use crate::report::Section;
use anyhow::{Result, ensure};
use serde_json::Value;

const BODY: &str = r#"{"input":"Say hello."}"#;
const CONNECTIONS: usize = 64;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("`POST /runs`, 64 connections, a model that answers at once");
    let stub = Child::start(&["serve-stub"])?;
    let stub_address = text(&stub.hello, "address")?.to_owned();
    let sqlite = bench.sqlite("runs.db");
    let over_http = ["--model-server", stub_address.as_str()];
    let (rate, p99) = one(bench, &mut section, "SQLite, model behind HTTP", &sqlite, &over_http)?;
    section.against("SQLite: runs/s", whole(rate), "≥ 1,500", rate >= 1500.0);
    section.against("SQLite: p99, ms", format!("{p99:.1}"), "< 50", p99 < 50.0);
    one(bench, &mut section, "SQLite, model in the process", &bench.sqlite("runs-trait.db"), &[])?;
    match postgres("bench")? {
        Some(url) => {
            one(bench, &mut section, "PostgreSQL, model behind HTTP", &url, &over_http)?;
            let many = [over_http[0], over_http[1], "--workspaces", "64"];
            if let Some(url) = postgres("svc_bench_many")? {
                one(bench, &mut section, "PostgreSQL, 64 workspaces", &url, &many)?;
            }
        }
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(
        "After each load the books were held against the answers: every run completed, as many steps, executions, debits, \
         settled holds and events as answers with 200, the ledger's invariants without a finding, and log rows written \
         plus dropped as many as requests. SQLite with `synchronous=FULL`, PostgreSQL with `fsync=on`.",
    );
    Ok(section)
}

/// Measures a database. Returns the rate and the p99.
fn one(
    bench: &Bench<'_>,
    section: &mut Section,
    name: &str,
    database: &str,
    more: &[&str],
) -> Result<(f64, f64)> {
    let mut arguments = vec!["serve-svc", "--database", database];
    arguments.extend(more);
    let mut service = Child::start(&arguments)?;
    let load = bench.load(&service, "POST /api/v1/runs", BODY, CONNECTIONS)?;
    let outcomes = (0..bench.plan.rounds).map(|_| load.spawn()).collect::<Result<Vec<Outcome>>>()?;
    check_books(&outcomes, &service.ask("stop")?)?;
    Ok(state_load(section, name, "run", &outcomes))
}

/// Checks that the database agrees with the responses.
fn check_books(outcomes: &[Outcome], books: &Value) -> Result<()> {
    let total: u64 = outcomes.iter().map(Outcome::total).sum();
    let ok: u64 = outcomes.iter().map(Outcome::ok).sum();
    ensure!(ok == total, "not every answer was 200: {outcomes:?}");
    for name in ["runs", "completed", "steps", "executions", "debits", "settled_holds", "events", "counted"] {
        let found = number(books, name)?;
        ensure!(u64::try_from(found)? == ok, "{ok} answers, but {name} says {found}");
    }
    let logged = number(books, "log_rows")? + number(books, "log_dropped")?;
    ensure!(u64::try_from(logged)? == total, "{total} requests, but {logged} were logged or dropped");
    let wrong = books.get("wrong").and_then(Value::as_array);
    ensure!(wrong.is_some_and(Vec::is_empty), "the ledger is wrong: {wrong:?}");
    Ok(())
}
