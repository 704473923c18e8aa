//! Steps that act and commit.

use super::super::pending::{execute, numbers};
use super::super::{Bench, spread, whole};
use super::{Kind, Shop, peers};
use crate::child::{Child, number, text};
use crate::machine::{median, processor_seconds};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const STEPS: u64 = 10;

pub(super) fn measure(bench: &Bench<'_>, section: &mut Section, name: &str, kind: Kind) -> Result<()> {
    let database = kind.database(bench, "flows-steps")?.context("no database")?;
    let mut shop = Shop::open(&database)?;
    let flow = flow(&shop)?;
    let first = shop.run(flow, &json!({}), 20)?;
    ensure!(text(&first, "status")? == "completed", "the run ended so: {first}");
    let runs = if bench.plan.quick { 50 } else { 2_000 };
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    let mut ended = 1;
    for round in 0..bench.plan.rounds {
        execute(&database, &copies(text(&first, "id")?, round, runs))?;
        let cpu = processor_seconds(shop.service.id())?;
        let seconds = until_ended(&mut shop.service, ended, runs)?;
        ended += runs;
        let steps = (runs * STEPS) as f64;
        rates.push(steps / seconds);
        costs.push((processor_seconds(shop.service.id())? - cpu) * 1e6 / steps);
    }
    let books = shop.service.ask("stop")?;
    let items = u64::try_from(number(&books, "items")?)?;
    ensure!(items == ended * STEPS, "{ended} runs made {items} items");
    let least = if name == "SQLite" { 3000.0 } else { 1000.0 };
    let rate = median(&rates);
    section.against(
        format!("{name}: steps that act and commit, a second"),
        spread(&rates, whole),
        &format!("≥ {}", whole(least)),
        rate >= least,
    );
    section.state(
        format!("{name}: processor time of the service per such step, µs"),
        format!("{:.0}", median(&costs)),
    );
    match peers::dbos(bench, kind)? {
        Some(theirs) => {
            section.state(format!("DBOS on {name}: steps that act and commit, a second"), whole(theirs));
            let ratio = rate / theirs;
            section.against(format!("{name}, steps: ours ÷ DBOS"), format!("{ratio:.1}"), "> 1", ratio > 1.0);
        }
        None => section.note("DBOS was not there: `scripts/bench-flows-peer install`."),
    }
    Ok(())
}

/// A flow of ten nodes that each create an item.
fn flow(shop: &Shop) -> Result<i64> {
    let new = json!({ "name": "Entries", "fields": [{ "label": "Name", "type": "text" }] });
    let made = shop.server.ask("POST", "/api/v1/collections", Some(&new))?;
    let collection = made.pointer("/data/id").and_then(Value::as_i64).context("no collection")?;
    let names: Vec<String> = (1..=STEPS).map(|step| format!("write_{step}")).collect();
    let config = json!({ "collection_id": collection, "values": { "name": "Entry of a run" } });
    let nodes: Vec<Value> =
        names.iter().map(|name| json!({ "id": name, "type": "write_item", "config": config })).collect();
    let before = ["start"].into_iter().chain(names.iter().map(String::as_str));
    let edges: Vec<[&str; 3]> = before.zip(&names).map(|(from, to)| [from, "next", to.as_str()]).collect();
    shop.publish("Entries", &nodes, &edges, &json!([]))
}

/// Builds the SQL that adds copies of a run as it was before it began.
fn copies(run: &str, round: usize, count: u64) -> String {
    let same = "workspace_id, flow_id, version, livemode, mode, contact_id, automation_id, key_id, lineage_id, content, chain, \
        nesting, attempt, energy, created_at";
    let own = new_id(round);
    format!(
        "INSERT INTO flow_runs (id, root_run_id, status, step_count, epoch, wake_at, expires_at, {same}) {numbers}
        SELECT {own}, {own}, 'queued', 0, 0, created_at, '2099-01-01 00:00:00', {same} FROM flow_runs CROSS JOIN n
        WHERE id = '{run}';",
        numbers = numbers(count),
    )
}

/// The SQL of the id of a copy: the beginning of the id with a number of 14 digits.
pub(super) fn new_id(round: usize) -> String {
    format!(
        "substr(id, 1, length(id) - 14) || substr(CAST(100000000000000 + {round} * 10000000 + n AS TEXT), 2)"
    )
}

/// Waits until so many more runs have ended. Returns the seconds since the first of them.
fn until_ended(service: &mut Child, before: u64, more: u64) -> Result<f64> {
    let deadline = Instant::now() + Duration::from_secs(300);
    let mut began = None;
    loop {
        let ended = u64::try_from(number(&service.ask("flow_runs")?, "waiting")?)?;
        if ended >= before + more {
            return Ok(began.map_or(0.0, |began: Instant| began.elapsed().as_secs_f64()));
        }
        if began.is_none() && number(&service.ask("started_flow_runs")?, "waiting")? > i64::try_from(before)?
        {
            began = Some(Instant::now());
        }
        ensure!(Instant::now() < deadline, "{ended} of {more} runs ended in five minutes");
        std::thread::sleep(Duration::from_millis(if began.is_none() { 5 } else { 50 }));
    }
}
