//! Queries of the gate to the database. With warm caches there must be none.

use crate::child::{Child, number};
use crate::measure::{Bench, whole};
use crate::report::Section;
use anyhow::{Result, ensure};

const REQUESTS: u64 = 20_000;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Queries of the gate");
    let database = bench.sqlite("gate.db");
    let mut service = Child::start(&["serve-svc", "--database", &database, "--quiet"])?;
    let mut load = bench.load(&service, "GET /api/v1/me", "", 8)?;
    load.requests = Some(8);
    load.spawn()?;
    // The caches keep what the first requests loaded for ten seconds, and this load takes less than one.
    let before = service.ask("stats")?;
    load.requests = Some(REQUESTS);
    let outcome = load.spawn()?;
    std::thread::sleep(std::time::Duration::from_millis(600));
    let after = service.ask("stats")?;
    ensure!(outcome.ok() == REQUESTS, "not every answer was 200: {:?}", outcome.statuses);
    let grown = |name: &str| Ok::<i64, anyhow::Error>(number(&after, name)? - number(&before, name)?);
    let (reads, writes, log) = (grown("reads")?, grown("writes")?, grown("log_writes")?);
    section.against(
        format!("reads during {} `GET /me`", whole(REQUESTS as f64)),
        reads.to_string(),
        "0",
        reads == 0,
    );
    section.against("transactions beside those of the log", (writes - log).to_string(), "0", writes == log);
    section.state("transactions of the log and the month's counts, for all of them", log.to_string());
    Ok(section)
}
