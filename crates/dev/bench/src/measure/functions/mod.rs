//! Functions and skills: calls over HTTP, the processes behind them, neighbours that loop for ever, matching and imports.

mod calls;
mod neighbours;
mod peers;
mod skills;
mod workers;

use super::{Bench, keys, postgres};
use crate::child::{Child, text};
use crate::http::Server;
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Ten lines.
const CODE: &str = r#"export default async function (ctx) {
  const { items, country } = ctx.input;
  let grams = 0;
  for (const item of items) {
    grams += item.grams * item.pieces;
  }
  const zone = { DE: 1, FR: 2, BR: 3 }[country] ?? 4;
  const cents = 390 + zone * 100 + Math.ceil(grams / 500) * 50;
  return { cents, currency: "EUR", days: zone * 2 };
}"#;

/// The body of a call, and what it returns in `cents`.
const CALL: &str =
    r#"{"input":{"items":[{"grams":250,"pieces":2},{"grams":900,"pieces":1}],"country":"BR"}}"#;
const CENTS: i64 = 840;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Functions and skills");
    let rate = calls::measure(bench, &mut section, "SQLite", &bench.sqlite("functions.db"))?;
    let strict = calls::measure_strict(bench, &mut section, &bench.sqlite("functions-strict.db"))?;
    section.against(
        "SQLite, a process a call: calls/s, 16 connections",
        super::whole(strict),
        "≥ 700",
        strict >= 700.0,
    );
    peers::measure(bench, &mut section, rate)?;
    neighbours::measure(bench, &mut section, &bench.sqlite("functions-neighbours.db"))?;
    skills::measure(bench, &mut section, &bench.sqlite("skills.db"))?;
    match postgres("svc_bench_functions")? {
        Some(url) => drop(calls::measure(bench, &mut section, "PostgreSQL", &url)?),
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(
        "A published function of ten lines without a network. Each call is authenticated, checked against its limits, run in a \
         worker with a fresh engine, and written to the history. The peers run the same code behind Node's HTTP server, without \
         keys, limits of requests or a history.",
    );
    Ok(section)
}

/// A service with its first workspace.
struct Shop {
    service: Child,
    server: Server,
}

impl Shop {
    fn open(arguments: &[&str]) -> Result<Self> {
        let service = Child::start(&[&["serve-svc"][..], arguments].concat())?;
        let token = keys(&service).into_iter().next().context("the service made no key")?;
        let server = Server { address: text(&service.hello, "address")?.to_owned(), token };
        Ok(Self { service, server })
    }
}

/// Publishes a function. Returns the path of its calls.
fn publish(server: &Server, name: &str, code: &str, timeout_ms: u32) -> Result<String> {
    let new =
        json!({ "name": name, "code": code, "effect": "read", "timeout_ms": timeout_ms, "publish": true });
    let made = server.ask("POST", "/api/v1/functions", Some(&new))?;
    let id = made.pointer("/data/id").and_then(Value::as_i64).context("no function")?;
    Ok(format!("/api/v1/functions/{id}/invoke"))
}

/// Calls the function once and checks its output.
fn check(server: &Server, path: &str) -> Result<()> {
    let answer = server.ask("POST", path, Some(&serde_json::from_str(CALL)?))?;
    let cents = answer.pointer("/data/output/cents").and_then(Value::as_i64);
    ensure!(cents == Some(CENTS), "the function answered {answer}");
    Ok(())
}
