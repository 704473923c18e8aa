//! Many runs that wait: how soon one that becomes due ends, and the memory of the service.

use super::super::pending::{execute, numbers};
use super::super::{Bench, whole};
use super::steps::new_id;
use super::{Kind, Shop};
use crate::child::text;
use crate::machine::{memory, quantile};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel::{PgConnection, SqliteConnection};
use serde_json::json;
use std::time::{Duration, Instant};

const LONG_AGO: &str = "2026-01-01 00:00:00";

pub(super) fn measure(bench: &Bench<'_>, section: &mut Section, name: &str, kind: Kind) -> Result<()> {
    let sizes: [u64; 2] = if bench.plan.quick { [1_000, 10_000] } else { [10_000, 1_000_000] };
    for waiting in sizes {
        let (times, resident) = one(bench, kind, waiting)?;
        let waiting = whole(waiting as f64);
        let millis = |part| f64::from(quantile(&times, part)) / 1000.0;
        let (p50, most) = (millis(0.5), millis(1.0));
        section.against(
            format!("{name}, {waiting} runs wait: from due to ended, p50 / longest, ms"),
            format!("{p50:.0} / {most:.0}"),
            "≤ 1,500",
            most <= 1500.0,
        );
        let what = format!("{name}, {waiting} runs wait: resident at most, MiB");
        section.against(what, format!("{resident:.1}"), "< 128", resident < 128.0);
    }
    Ok(())
}

/// Measures a number of waiting runs. Returns the times in microseconds, in order, and the memory in MiB.
fn one(bench: &Bench<'_>, kind: Kind, waiting: u64) -> Result<(Vec<u32>, f64)> {
    let database = kind.database(bench, &format!("flows-waiting-{waiting}"))?.context("no database")?;
    let mut shop = Shop::open(&database)?;
    let delay = json!({ "id": "later", "type": "delay", "config": { "days": 300 } });
    let flow = shop.publish("Later", &[delay], &[["start", "next", "later"]], &json!([]))?;
    let id = text(&shop.run(flow, &json!({}), 0)?, "id")?.to_owned();
    until(&database, &format!("SELECT COUNT(*) AS n FROM flow_waits WHERE run_id = '{id}'"), 20)?;
    execute(&database, &copies(&id, waiting))?;
    if matches!(kind, Kind::Sqlite) {
        // The service does this every hour, and waiting runs accumulate over months.
        execute(&database, "PRAGMA wal_checkpoint(TRUNCATE)")?;
    } else {
        execute(&database, "VACUUM ANALYZE flow_runs, flow_steps, flow_waits")?;
    }
    let same = id.get(..id.len().saturating_sub(14)).context("a short id")?;
    let probes = if bench.plan.quick { 5 } else { 30 };
    let mut times = Vec::new();
    for probe in 1..=probes {
        let run = format!("{same}{:014}", probe * 97);
        execute(
            &database,
            &format!(
                "UPDATE flow_runs SET wake_at = '{LONG_AGO}' WHERE id = '{run}';
                UPDATE flow_waits SET due_at = '{LONG_AGO}' WHERE run_id = '{run}'"
            ),
        )?;
        times.push(u32::try_from(until(&database, &ended(probe), 30)?.as_micros())?);
    }
    let resident = memory(shop.service.id(), "VmHWM")?;
    shop.service.ask("stop")?;
    times.sort_unstable();
    Ok((times, resident))
}

/// The query of the runs that have ended, if they are as many as the probes.
fn ended(probes: u64) -> String {
    format!("SELECT COUNT(*) / {probes} AS n FROM flow_runs WHERE ended_at IS NOT NULL")
}

/// Builds the SQL that adds copies of a run that waits, with its steps and its waits.
fn copies(run: &str, count: u64) -> String {
    let runs = "workspace_id, flow_id, version, livemode, mode, status, contact_id, automation_id, key_id, lineage_id, content, \
        state, chain, nesting, attempt, step_count, energy, epoch, wake_at, expires_at, created_at, started_at";
    let steps = "position, workspace_id, token, node_id, node_type, path, attempt, status, input, output, error, port, energy, \
        started_at, ended_at";
    let waits = "token, workspace_id, livemode, position, kind, topic, key, contact_id, details, arrived, since, due_at";
    let (own, numbers) = (new_id(0), numbers(count));
    let of_run = own.replace("id", "run_id");
    format!(
        "INSERT INTO flow_runs (id, root_run_id, {runs}) {numbers}
        SELECT {own}, {own}, {runs} FROM flow_runs CROSS JOIN n WHERE id = '{run}';
        INSERT INTO flow_steps (run_id, id, {steps}) {numbers}
        SELECT {of_run}, id, {steps} FROM flow_steps CROSS JOIN n WHERE run_id = '{run}';
        INSERT INTO flow_waits (run_id, {waits}) {numbers}
        SELECT {of_run}, {waits} FROM flow_waits CROSS JOIN n WHERE run_id = '{run}';"
    )
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Reads a number until it is not 0. Returns how long that took.
fn until(database: &str, sql: &str, seconds: u64) -> Result<Duration> {
    let began = Instant::now();
    let mut read: Box<dyn FnMut() -> QueryResult<Count> + '_> = match database.strip_prefix("sqlite:") {
        Some(path) => {
            let mut connection = SqliteConnection::establish(path)?;
            connection.batch_execute("PRAGMA busy_timeout = 60000")?;
            Box::new(move || diesel::sql_query(sql).get_result(&mut connection))
        }
        None => {
            let mut connection = PgConnection::establish(database)?;
            Box::new(move || diesel::sql_query(sql).get_result(&mut connection))
        }
    };
    while read()?.n == 0 {
        ensure!(began.elapsed() < Duration::from_secs(seconds), "not within {seconds} s: {sql}");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(began.elapsed())
}
