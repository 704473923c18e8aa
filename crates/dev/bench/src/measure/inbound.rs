//! Requests to inbound webhooks. Each is authenticated, deduplicated, mapped, and stored with its event before it is
//! answered.

use super::{Bench, keys, postgres, state_load, whole};
use crate::child::{Child, number, text};
use crate::http::Server;
use crate::load::Outcome;
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

const CONNECTIONS: usize = 64;
/// The number of different orders, so high that hardly any is drawn twice.
const ORDERS: u64 = 1_000_000_000_000;
const BODY: &str = r#"{"id":"ord_{n15}","type":"order.paid","order":{"total":129.5,"currency":"EUR","items":[{"sku":"A-1","quantity":2},{"sku":"B-7","quantity":1}]},"buyer":{"email":"buyer@shop.example","name":"A Buyer"}}"#;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Inbound webhooks, 64 connections");
    let (rate, p99) = one(bench, &mut section, "SQLite", &bench.sqlite("inbound.db"))?;
    section.against("SQLite: requests/s", whole(rate), "≥ 2,000", rate >= 2000.0);
    section.against("SQLite: p99, ms", format!("{p99:.1}"), "≤ 50", p99 <= 50.0);
    match postgres("svc_bench_inbound")? {
        Some(url) => drop(one(bench, &mut section, "PostgreSQL", &url)?),
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(
        "A body of 230 bytes with a bearer's secret, deduplicated by a path, mapped to two variables and a contact. After \
         each load the books were held against the answers: as many requests kept and events emitted as answers with 202, and \
         as many duplicates as answers with 200.",
    );
    Ok(section)
}

/// Measures a database. Returns the rate and the p99.
fn one(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str) -> Result<(f64, f64)> {
    let mut service = Child::start(&["serve-svc", "--database", database])?;
    let mut outcomes = Vec::new();
    for _ in 0..bench.plan.rounds {
        // Use another webhook in each round, because the load draws the same numbers again.
        let target = format!("POST {}", webhook(&service)?);
        let mut load = bench.load(&service, &target, BODY, CONNECTIONS)?;
        load.spread = ORDERS;
        outcomes.push(load.spawn()?);
    }
    check_books(&outcomes, &service.ask("stop")?)?;
    Ok(state_load(section, name, "request", &outcomes))
}

/// Creates a webhook whose secret is the key that the load sends. Returns the path of its URL.
fn webhook(service: &Child) -> Result<String> {
    let key = keys(service).into_iter().next().context("the service made no key")?;
    let new = json!({
        "name": "Orders",
        "verification": { "type": "bearer", "secrets": [key] },
        "dedupe": { "by": "json_path", "path": "$.id" },
        "rate_limit": { "per_minute": 1_000_000 },
        "mapping": {
            "event_type": "$.type",
            "vars": { "order": { "from": "$.id", "type": "string" }, "total": { "from": "$.order.total", "type": "number" } },
            "contact": { "match_on": "email", "create": true, "fields": { "email": "$.buyer.email", "name": "$.buyer.name" } },
        },
    });
    let server = Server { address: text(&service.hello, "address")?.to_owned(), token: key };
    let made = server.ask("POST", "/api/v1/inbound-webhooks", Some(&new))?;
    let url = made.get("data").context("no data")?;
    let url = text(url, "url")?;
    let path = url.find("/hooks/").and_then(|place| url.get(place..)).context("the URL is no webhook's")?;
    Ok(path.to_owned())
}

/// Checks that the database agrees with the responses.
fn check_books(outcomes: &[Outcome], books: &Value) -> Result<()> {
    let of = |status: u16| -> u64 {
        outcomes.iter().map(|outcome| outcome.statuses.get(&status).copied().unwrap_or(0)).sum()
    };
    let (taken, again) = (of(202), of(200));
    let total: u64 = outcomes.iter().map(Outcome::total).sum();
    ensure!(taken + again == total, "not every request was taken: {outcomes:?}");
    for (name, expected) in [("received", taken), ("received_again", again), ("received_events", taken)] {
        let found = number(books, name)?;
        ensure!(u64::try_from(found)? == expected, "{expected} answers, but {name} says {found}");
    }
    Ok(())
}
