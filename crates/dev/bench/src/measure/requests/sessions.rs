//! Requests of people who have signed in: compared with the same requests by key, and searches of a long log of requests.

use crate::child::{Child, number};
use crate::load::{Arguments, Outcome};
use crate::machine::median;
use crate::measure::pending::{execute, read_text};
use crate::measure::{Bench, postgres, spread, whole};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use model::{Clock, RequestId, SeededRandom, SystemClock, Timestamp};
use serde_json::Value;
use std::fmt::Write;

/// The requests that a round sends by token. A member may send 600 a minute, so as many members send them.
const REQUESTS: u64 = 12_800;
/// The connections, each with a member of its own.
const CONNECTIONS: usize = 32;
/// The searches that a round sends.
const SEARCHES: u64 = 100;
const ME: &str = "GET /api/v1/me";
/// How far apart the rows of the log are: three million are two days.
const APART_MS: u64 = 60;
/// The rows of a statement that fills the log.
const ROWS_AT_ONCE: u64 = 5_000;
/// The searches, with their names.
const FILTERS: [(&str, &str); 9] = [
    ("no filter", ""),
    ("an operation that is frequent", "&operation=getMe"),
    ("an operation that never occurs", "&operation=deleteContact"),
    ("refused", "&status_class=refused"),
    ("failed, which none has", "&status_class=failed"),
    ("a code", "&code=rate_limited"),
    ("a code that never occurs", "&code=budget_exceeded"),
    ("a parameter that never occurs", "&param=nothing"),
    ("of the dashboard, which none is", "&source=dashboard"),
];

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Requests of people who have signed in");
    let rows = if bench.plan.quick { 100_000 } else { 3_000_000 };
    one(bench, &mut section, "SQLite", &bench.sqlite("sessions.db"), rows)?;
    if let Some(database) = postgres("svc_bench_sessions")? {
        one(bench, &mut section, "PostgreSQL", &database, rows)?;
    }
    section.note(format!(
        "By token, each of {CONNECTIONS} connections is a member of the team. A search looks at 20,000 rows at most; the log has {} rows \
         of one workspace, of which one in ten is refused. One connection.",
        whole(rows as f64)
    ));
    Ok(section)
}

fn one(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str, rows: u64) -> Result<()> {
    let members = CONNECTIONS * bench.plan.rounds + FILTERS.len() * bench.plan.rounds;
    let mut service =
        Child::start(&["serve-svc", "--quiet", "--database", database, "--members", &members.to_string()])?;
    compare(bench, section, name, &mut service)?;
    fill(database, rows)?;
    search(bench, section, name, &mut service)
}

/// Returns a token for each member.
fn tokens(service: &mut Child) -> Result<Vec<String>> {
    let answer = service.ask("tokens")?;
    let tokens = answer.get("tokens").and_then(Value::as_array).context("no tokens")?;
    Ok(tokens.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Sends requests by token and by key in turns.
fn compare(bench: &Bench<'_>, section: &mut Section, name: &str, service: &mut Child) -> Result<()> {
    let tokens = tokens(service)?;
    let (mut by_key, mut by_token, mut queries) = (Vec::new(), Vec::new(), Vec::new());
    for members in tokens.chunks(CONNECTIONS).take(bench.plan.rounds) {
        let by_keys = Arguments { requests: Some(REQUESTS), ..bench.load(service, ME, "", CONNECTIONS)? };
        let by_tokens = Arguments { keys: members.to_vec(), ..by_keys.clone() };
        // What a first request reads stays in the caches.
        Arguments { requests: Some(CONNECTIONS as u64), ..by_tokens.clone() }.spawn()?;
        by_key.push(by_keys.spawn()?);
        let before = number(&service.ask("stats")?, "reads")?;
        by_token.push(by_tokens.spawn()?);
        queries.push(number(&service.ask("stats")?, "reads")? - before);
    }
    for outcome in by_key.iter().chain(&by_token) {
        ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
    }
    let micros = |outcomes: &[Outcome]| outcomes.iter().map(Outcome::server_micros).collect::<Vec<_>>();
    let (keys, tokens) = (micros(&by_key), micros(&by_token));
    section.state(
        format!("{name}: processor time of `GET /me`, by key / by token, µs"),
        format!("{:.1} / {:.1}", median(&keys), median(&tokens)),
    );
    let ratios: Vec<f64> = keys.iter().zip(&tokens).map(|(key, token)| key / token).collect();
    let met = median(&ratios) >= 0.95;
    let what = format!("{name}: by key ÷ by token, processor time");
    section.against(what, spread(&ratios, |ratio| format!("{ratio:.2}")), "≥ 0.95", met);
    let most = queries.iter().copied().max().unwrap_or_default();
    let what = format!("{name}: reads of the database during {} requests by token", whole(REQUESTS as f64));
    section.state(what, most.to_string());
    Ok(())
}

/// Searches the log with each filter.
fn search(bench: &Bench<'_>, section: &mut Section, name: &str, service: &mut Child) -> Result<()> {
    let mut tokens = tokens(service)?.into_iter().rev();
    for (what, filter) in FILTERS {
        let target = format!("GET /api/v1/dashboard/requests?page_size=50{filter}");
        let mut p99 = Vec::new();
        for token in tokens.by_ref().take(bench.plan.rounds) {
            let load = bench.load(service, &target, "", 1)?;
            let outcome = Arguments { keys: vec![token], requests: Some(SEARCHES), ..load }.spawn()?;
            ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
            p99.push(outcome.p99);
        }
        let met = median(&p99) <= 50.0;
        let what = format!("{name}, search: {what}, p99, ms");
        section.against(what, spread(&p99, |millis| format!("{millis:.1}")), "≤ 50", met);
    }
    Ok(())
}

/// Fills the log of the first workspace up to now.
fn fill(database: &str, rows: u64) -> Result<()> {
    let (now, random) = (SystemClock.now(), SeededRandom::new(1));
    let key = read_text(database, "(SELECT MIN(id) FROM api_keys WHERE kind = 'secret')")?;
    let begin = now.millis() - i64::try_from(rows * APART_MS)?;
    for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        let mut sql = "INSERT INTO request_logs (id, created_at, workspace_id, key_id, operation, method, path, status, code, gate, \
            livemode, latency_us, energy, replayed) VALUES "
            .to_owned();
        for number in first..rows.min(first + ROWS_AT_ONCE) {
            let at = Timestamp::from_millis(begin + i64::try_from(number * APART_MS)?);
            let id = RequestId::new(at, &random);
            let time = at.rfc3339().replace('T', " ").replace('Z', "");
            let outcome = if number % 10 == 0 { "429, 'rate_limited', 'rate'" } else { "200, NULL, NULL" };
            let comma = if number == first { "" } else { ", " };
            write!(
                sql,
                "{comma}('{id}', '{time}', 1, '{key}', 'getMe', 'GET', '/me', {outcome}, TRUE, 800, 0, FALSE)"
            )?;
        }
        execute(database, &sql)?;
    }
    execute(database, "ANALYZE request_logs")
}
