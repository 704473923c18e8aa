//! The effect of building indexes for one workspace on the requests of another.

use super::{Bench, keys, postgres, spread};
use crate::child::{Child, text};
use crate::http::Server;
use crate::load::Outcome;
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 16;
const COLLECTIONS: usize = 3;
/// The number of integer fields of each collection, with an index on each.
const FIELDS: usize = 8;
/// The timeout for an index to become ready.
const PATIENCE: Duration = Duration::from_secs(300);

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section =
        Section::new("24 indexes on three collections, beside another workspace with 16 connections");
    one(bench, &mut section, "SQLite", &bench.sqlite("neighbours.db"))?;
    match postgres("svc_bench_neighbours")? {
        Some(url) => one(bench, &mut section, "PostgreSQL", &url)?,
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(
        "Eight connections to the database, the default. The indexes are asked for one after another and built by jobs; \
         the load goes on meanwhile, and each of its rounds follows one alone. The load, the service and \
         PostgreSQL share the processors with the building.",
    );
    Ok(section)
}

fn one(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str) -> Result<()> {
    let mut service = Child::start(&["serve-svc", "--database", database, "--workspaces", "2"])?;
    let [builder, neighbour] = keys(&service).try_into().ok().context("the service made two keys")?;
    let server = |token: &str| -> Result<Server> {
        Ok(Server { address: text(&service.hello, "address")?.to_owned(), token: token.to_owned() })
    };
    let (builder, own) = (server(&builder)?, server(&neighbour)?);
    let rows = if bench.plan.quick { 1_000 } else { 20_000 };
    let collections =
        (0..COLLECTIONS).map(|number| seed(&builder, number, rows)).collect::<Result<Vec<_>>>()?;
    let items = format!("{}/items", seed(&own, 0, 1_000)?);
    for (what, target, body) in [
        ("lists of 20 items", format!("GET {items}?limit=20"), String::new()),
        ("new items", format!("POST {items}"), json!({ "data": row(7) }).to_string()),
    ] {
        let mut load = bench.load(&service, &target, &body, CONNECTIONS)?;
        load.keys = vec![neighbour.clone()];
        let (mut alone, mut beside, mut built) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bench.plan.rounds {
            alone.push(checked(load.spawn()?)?);
            let (outcome, took) = std::thread::scope(|scope| -> Result<_> {
                let loading = scope.spawn(|| load.spawn());
                let took = build(&builder, &collections)?;
                let outcome = loading.join().ok().context("the load panicked")??;
                Ok((outcome, took))
            })?;
            beside.push(checked(outcome)?);
            built.push(took.as_secs_f64());
            drop_indexes(&builder, &collections)?;
        }
        state(section, &format!("{name}: {what}"), &alone, &beside);
        section.state(
            format!("{name}: {what}: until all 24 indexes were ready, s"),
            spread(&built, |seconds| format!("{seconds:.1}")),
        );
    }
    service.ask("stop")?;
    Ok(())
}

fn state(section: &mut Section, what: &str, alone: &[Outcome], beside: &[Outcome]) {
    let p99 = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.p99).collect::<Vec<_>>();
    let (alone, beside) = (p99(alone), p99(beside));
    let show = |value: f64| format!("{value:.1}");
    section.state(format!("{what}: p99 alone, ms"), spread(&alone, show));
    section.state(format!("{what}: p99 beside, ms"), spread(&beside, show));
    let ratios: Vec<f64> = alone.iter().zip(&beside).map(|(alone, beside)| beside / alone).collect();
    let met = crate::machine::median(&ratios) <= 3.0;
    section.against(format!("{what}: p99 beside ÷ alone"), spread(&ratios, show), "≤ 3", met);
}

fn checked(outcome: Outcome) -> Result<Outcome> {
    ensure!(outcome.done() == outcome.total(), "not every answer was a success: {:?}", outcome.statuses);
    Ok(outcome)
}

fn row(number: usize) -> Value {
    (0..FIELDS).map(|field| (format!("f{field}"), json!(number * (field + 1) % 1_000))).collect()
}

/// Creates a collection with items and returns its path.
fn seed(server: &Server, number: usize, rows: usize) -> Result<String> {
    let field = |place: usize| json!({ "field_key": format!("f{place}"), "label": format!("F{place}"), "type": "integer" });
    let fields: Vec<Value> = (0..FIELDS).map(field).collect();
    let new = json!({ "name": format!("Numbers {number}"), "fields": fields });
    let made = server.ask("POST", "/api/v1/collections", Some(&new))?;
    let id = made.pointer("/data/id").context("no id")?;
    let path = format!("/api/v1/collections/{id}");
    for start in (0..rows).step_by(1_000) {
        let end = rows.min(start + 1_000);
        let items: Vec<Value> = (start..end).map(|number| json!({ "data": row(number) })).collect();
        server.ask("POST", &format!("{path}/items/bulk-create"), Some(&json!({ "rows": items })))?;
    }
    Ok(path)
}

/// Creates all indexes and waits until they are ready. Returns the time that it took.
fn build(server: &Server, collections: &[String]) -> Result<Duration> {
    let began = Instant::now();
    for path in collections {
        for field in 0..FIELDS {
            let new = json!({ "fields": [{ "field": format!("f{field}") }] });
            server.ask("POST", &format!("{path}/indexes"), Some(&new))?;
        }
    }
    while collections.iter().map(|path| pending(server, path)).sum::<Result<usize>>()? > 0 {
        ensure!(began.elapsed() < PATIENCE, "the indexes are not ready after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(began.elapsed())
}

fn indexes(server: &Server, path: &str) -> Result<Vec<Value>> {
    let mut listed = server.ask("GET", &format!("{path}/indexes"), None)?;
    let listed = listed.get_mut("data").and_then(Value::as_array_mut).context("no data")?;
    Ok(std::mem::take(listed))
}

/// Returns the number of indexes that are not ready.
fn pending(server: &Server, path: &str) -> Result<usize> {
    Ok(indexes(server, path)?.iter().filter(|index| index.get("status") != Some(&json!("ready"))).count())
}

fn drop_indexes(server: &Server, collections: &[String]) -> Result<()> {
    for path in collections {
        for index in indexes(server, path)? {
            let id = index.get("id").context("no id")?;
            server.ask("DELETE", &format!("{path}/indexes/{id}"), None)?;
        }
    }
    Ok(())
}
