//! Deliveries while many others are pending: the time to claim and send a due delivery, and the memory of the
//! service.

use super::deliveries::{Kind, Stage};
use super::{Bench, whole};
use crate::child::number;
use crate::machine::{memory, quantile};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::sql_types::Text;
use diesel::{Connection, PgConnection, RunQueryDsl, SqliteConnection};

/// The number of endpoints of each kind with pending deliveries, in addition to the measured one.
const EACH: u64 = 250;
/// The events of those endpoints, none of which occurs here.
const OTHER_EVENTS: &str = r#"["contact.created"]"#;
const FAR: &str = "2099-01-01 00:00:00";
const LONG_AGO: &str = "2026-01-01 00:00:00";

/// Measures at two sizes.
pub fn measure(bench: &Bench<'_>, section: &mut Section, name: &str, kind: Kind) -> Result<()> {
    let sizes: [u64; 2] = if bench.plan.quick { [1_000, 10_000] } else { [10_000, 1_000_000] };
    let mut p99 = Vec::new();
    for pending in sizes {
        let measured = one(bench, kind, pending)?;
        let pending = whole(pending as f64);
        section.state(
            format!(
                "{name}, {pending} pending: from looking for what is due to its first byte, p50 / p99, ms"
            ),
            format!("{:.2} / {:.2}", measured.p50, measured.p99),
        );
        let what = format!("{name}, {pending} pending: resident at most while it delivers, MiB");
        section.against(what, format!("{:.1}", measured.resident), "< 128", measured.resident < 128.0);
        p99.push(measured.p99);
    }
    if let [small, large] = p99[..] {
        let ratio = large / small;
        let what = format!("{name}: p99 with the more pending ÷ with the fewer");
        section.against(what, format!("{ratio:.2}"), "≤ 2", ratio <= 2.0);
    }
    Ok(())
}

struct Measured {
    p50: f64,
    p99: f64,
    resident: f64,
}

fn one(bench: &Bench<'_>, kind: Kind, pending: u64) -> Result<Measured> {
    let probes = if bench.plan.quick { 50 } else { 400 };
    let database = kind.database(bench, &format!("pending-{pending}"))?.context("no database")?;
    let mut stage = Stage::new(&database, 1, &["--hold-deliveries"])?;
    // Send one delivery, which is the template for all others.
    stage.make_items(1)?;
    stage.service.ask("claim")?;
    stage.take(1)?;
    let endpoint = stage.endpoints.first().context("no endpoint")?.clone();
    execute(&database, &fill(&endpoint, pending, probes))?;
    if matches!(kind, Kind::Sqlite) {
        // The service does this every hour, and pending deliveries accumulate over days.
        execute(&database, "PRAGMA wal_checkpoint(TRUNCATE)")?;
    }
    let mut micros = Vec::new();
    for probe in 1..=probes {
        execute(&database, &make_due(&endpoint, probe))?;
        let reported = stage.service.ask("claim")?;
        ensure!(number(&reported, "attempts")? == 1, "one delivery was due, but {reported}");
        micros.push(u32::try_from(number(&stage.take(1)?, "last")? - number(&reported, "began")?)?);
    }
    micros.sort_unstable();
    // Then measure with normal operation.
    let more = if bench.plan.quick { 200 } else { 5_000 };
    stage.service.ask("deliver")?;
    stage.make_items(more)?;
    stage.take(i64::try_from(more)?)?;
    let resident = memory(stage.service.id(), "VmHWM")?;
    stage.end(i64::try_from(more)? + i64::from(probes) + 1)?;
    let millis = |part| f64::from(quantile(&micros, part)) / 1000.0;
    Ok(Measured { p50: millis(0.5), p99: millis(0.99), resident })
}

/// Builds the SQL that adds `pending` deliveries. A quarter each waits for a retry, for the end of a pause, and for
/// an earlier delivery of its lane; the last quarter are retries of the measured endpoint. Among the latter are the
/// probes that the measurement makes due.
fn fill(endpoint: &str, pending: u64, probes: u32) -> String {
    let quarter = pending / 4;
    let others = |kind: &str| format!("'we_{kind}' || (n % {EACH} + 1)");
    let (own, far, long_ago) = (format!("'{endpoint}'"), format!("'{FAR}'"), format!("'{LONG_AGO}'"));
    [
        add_endpoints(endpoint, "retry", "NULL"),
        add_endpoints(endpoint, "pause", &far),
        add_endpoints(endpoint, "lane", "NULL"),
        add_deliveries(quarter, "retry", &others("retry"), "NULL", &far),
        add_deliveries(quarter, "pause", &others("pause"), "NULL", &long_ago),
        add_deliveries(quarter, "lane", &others("lane"), "'item:' || n % 1000", "NULL"),
        add_deliveries(quarter / 2, "older", &own, "NULL", &far),
        add_deliveries(u64::from(probes), "probe", &own, "NULL", &far),
        add_deliveries(quarter / 2, "newer", &own, "NULL", &far),
    ]
    .concat()
}

/// Builds a common table expression `n` with the numbers from 1 to `count`.
pub fn numbers(count: u64) -> String {
    format!("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})")
}

/// Builds the SQL that adds copies of the measured endpoint with waiting queues, paused if `paused_until` is set.
fn add_endpoints(endpoint: &str, kind: &str, paused_until: &str) -> String {
    let same = "workspace_id, url, description, status, filter, payload, ordering, headers, signature_scheme, secret, \
        key_id, version, metadata, created_at, updated_at";
    let numbers = numbers(EACH);
    format!(
        "INSERT INTO webhook_endpoints (id, enabled_events, {same}) {numbers}
        SELECT 'we_{kind}' || n, '{OTHER_EVENTS}', {same} FROM webhook_endpoints CROSS JOIN n WHERE id = '{endpoint}';
        INSERT INTO webhook_queues (endpoint_id, workspace_id, due_at, epoch, failures, breaker_step, breaker_until, skip_through, tests)
        {numbers} SELECT 'we_{kind}' || n, workspace_id, '{FAR}', 1, 5, 1, {paused_until}, 0, 0
        FROM webhook_queues CROSS JOIN n WHERE endpoint_id = '{endpoint}';"
    )
}

/// Builds the SQL that adds copies of the delivery that was sent.
fn add_deliveries(count: u64, kind: &str, endpoint: &str, lane: &str, due: &str) -> String {
    let numbers = numbers(count);
    format!(
        "INSERT INTO webhook_deliveries (id, workspace_id, endpoint_id, event_id, form, event_type, livemode, origin, status, \
            lane, due_at, attempts, created_at) {numbers}
        SELECT 'whd_{kind}' || n, workspace_id, {endpoint}, event_id, form, event_type, livemode, origin, 'pending', \
            {lane}, {due}, 1, created_at
        FROM (SELECT * FROM webhook_deliveries WHERE status = 'succeeded' LIMIT 1) AS pattern CROSS JOIN n;"
    )
}

fn make_due(endpoint: &str, probe: u32) -> String {
    format!(
        "UPDATE webhook_deliveries SET due_at = '{LONG_AGO}' WHERE id = 'whd_probe{probe}';
        UPDATE webhook_queues SET due_at = '{LONG_AGO}' WHERE endpoint_id = '{endpoint}';"
    )
}

/// Runs statements on the database directly, while the service runs.
pub fn execute(database: &str, sql: &str) -> Result<()> {
    match database.strip_prefix("sqlite:") {
        Some(path) => {
            let mut connection = SqliteConnection::establish(path)?;
            connection.batch_execute("PRAGMA busy_timeout = 60000; PRAGMA synchronous = FULL")?;
            Ok(connection.batch_execute(sql)?)
        }
        None => Ok(PgConnection::establish(database)?.batch_execute(sql)?),
    }
}

/// Reads a text from the database directly.
pub fn read_text(database: &str, expression: &str) -> Result<String> {
    let read = diesel::select(sql::<Text>(expression));
    Ok(match database.strip_prefix("sqlite:") {
        Some(path) => read.get_result(&mut SqliteConnection::establish(path)?)?,
        None => read.get_result(&mut PgConnection::establish(database)?)?,
    })
}
