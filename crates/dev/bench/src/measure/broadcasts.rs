//! Broadcasts: the speed of preparing recipients and of sending, and the latency of reading the counts meanwhile.

use super::channels::Stage;
use super::{Bench, contacts, postgres, whole};
use crate::child::{number, text};
use crate::http::Server;
use crate::machine::memory;
use crate::report::Section;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The number of contacts in one import. It is small, so that memory of the import does not count as memory of the
/// broadcast.
const ROWS: u64 = 10_000;
/// The number of contacts to send to.
const WRITTEN_TO: u64 = 20_000;
/// The number of connections that read the counts.
const READERS: usize = 4;
/// Poll interval for progress.
const LOOK: Duration = Duration::from_millis(50);

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Broadcasts");
    one(bench, &mut section, "SQLite", &bench.sqlite("broadcasts.db"), 1_500.0)?;
    match postgres("svc_bench_broadcasts")? {
        Some(database) => one(bench, &mut section, "PostgreSQL", &database, 1_000.0)?,
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(
        "The contacts are imported before, without being measured. A broadcast is prepared from `started_at` until the first \
         message of it is sent; each recipient has a value of its contact. Sending goes through the adapter to the simulated \
         network, without rate limits, until every message is known to be delivered: three statuses each, over callbacks. \
         The counts are read while the larger broadcast goes on.",
    );
    Ok(section)
}

fn one(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str, target: f64) -> Result<()> {
    let quick = bench.plan.quick;
    let (all, few) = if quick { (2_000, 500) } else { (bench.plan.recipients, WRITTEN_TO) };
    let mut stage = Stage::start(database, &["--no-answers"])?;
    let server = stage.server()?;
    for first in (0..all).step_by(usize::try_from(ROWS)?) {
        import(&server, first, ROWS.min(all - first), few)?;
    }
    // The service fetches the network's templates when it starts.
    wait("the template", LOOK, || {
        let listed = server.ask("GET", "/api/v1/channels/1/chatnet/templates", None)?;
        Ok(listed.pointer("/data/0/status").and_then(Value::as_str) == Some("approved"))
    })?;

    let sending = start(&server, "Few", json!({ "field": "$company", "op": "eq", "value": "Few" }))?;
    let began = Instant::now();
    wait("the broadcast", LOOK, || Ok(counts(&server, &sending)?.delivered == few))?;
    let rate = few as f64 / began.elapsed().as_secs_f64();
    let sent = stage.network.ask("sent")?;
    ensure!(number(&sent, "count")? == i64::try_from(few)?, "{few} recipients, but the network took {sent}");
    let seconds = (number(&sent, "last")? - number(&sent, "first")?) as f64 / 1000.0;
    section.state(format!("{name}: messages/s that the network takes"), whole(few as f64 / seconds));
    section.against(
        format!("{name}: messages/s, prepared, sent and with every status written"),
        whole(rate),
        &format!("≥ {}", whole(target)),
        rate >= target,
    );

    // Resident memory would be wrong here, because SQLite maps the pages of its file and the system can reclaim them.
    let resident = || memory(stage.service.id(), "RssAnon");
    let before = resident()?;
    let large = start(&server, "All", json!({ "field": "$source", "op": "eq", "value": "referral" }))?;
    let (began, mut peak) = (Instant::now(), before);
    wait("the preparation", LOOK, || {
        peak = peak.max(resident()?);
        Ok(status(&server, &large)? != "preparing")
    })?;
    let rate = all as f64 / began.elapsed().as_secs_f64();
    let what = format!("{name}: recipients/s prepared, of {}", whole(all as f64));
    section.against(what, whole(rate), "≥ 20,000", rate >= 20_000.0);
    let what = format!("{name}: memory of its own before / at most, MiB");
    section.against(what, format!("{before:.0} / {peak:.0}"), "< 128", peak < 128.0);
    let load = bench.load(&stage.service, &format!("GET {large}"), "", READERS)?.spawn()?;
    ensure!(load.ok() == load.total(), "the counts were refused: {load:?}");
    let what = format!("{name}: counts while it is sent, p50 / p99, ms");
    section.against(what, format!("{:.1} / {:.1}", load.p50, load.p99), "≤ 20", load.p99 <= 20.0);
    server.ask("POST", &format!("{large}/cancel"), Some(&json!({})))?;
    wait("the cancelling", LOOK, || Ok(status(&server, &large)? == "cancelled"))?;
    stage.service.ask("stop")?;
    Ok(())
}

/// Creates a broadcast and starts it. Returns its path.
fn start(server: &Server, name: &str, audience: Value) -> Result<String> {
    let made = server.ask(
        "POST",
        "/api/v1/broadcasts",
        Some(&json!({
            "name": name,
            "channel_id": 1,
            "template": {
                "name": "spring_sale", "language": "en",
                "params": { "1": { "value": "{{contact.$name}}", "fallback": "there" } },
            },
            "audience": { "filter_tree": audience },
        })),
    )?;
    let id = made.pointer("/data/id").and_then(Value::as_i64).context("no broadcast")?;
    let path = format!("/api/v1/broadcasts/{id}");
    server.ask("POST", &format!("{path}/send"), Some(&json!({})))?;
    Ok(path)
}

fn broadcast(server: &Server, path: &str) -> Result<Value> {
    let answer = server.ask("GET", path, None)?;
    let data = answer.get("data").context("no data")?;
    ensure!(text(data, "status")? != "paused", "it paused: {data}");
    Ok(data.clone())
}

fn status(server: &Server, path: &str) -> Result<String> {
    Ok(text(&broadcast(server, path)?, "status")?.to_owned())
}

struct Counts {
    delivered: u64,
}

fn counts(server: &Server, path: &str) -> Result<Counts> {
    let data = broadcast(server, path)?;
    let counts = data.get("counts").context("no counts")?;
    Ok(Counts { delivered: u64::try_from(number(counts, "delivered")?)? })
}

fn wait(what: &str, every: Duration, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(900);
    while !done()? {
        if Instant::now() > deadline {
            bail!("{what} did not come to an end");
        }
        std::thread::sleep(every);
    }
    Ok(())
}

/// Imports contacts with numbers from `first` on. The first `few` of all contacts have a company of their own.
fn import(server: &Server, first: u64, rows: u64, few: u64) -> Result<()> {
    let mut content = "$name,$phone,$source,$company\n".to_owned();
    for n in first..first + rows {
        let company = if n < few { "Few" } else { "Many" };
        let _ = writeln!(content, "Contact {n},+55119{:08},referral,{company}", 10_000_000 + n);
    }
    contacts::import(server, &content)
}
