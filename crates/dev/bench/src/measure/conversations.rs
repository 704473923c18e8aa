//! The newest conversations, in inboxes of two sizes.

use super::{Bench, postgres, whole};
use crate::child::Child;
use crate::machine::median;
use crate::measure::pending::{execute, numbers};
use crate::report::Section;
use anyhow::Result;

/// The measured requests, with their names.
const PAGES: [(&str, &str); 3] = [
    ("newest 20", "GET /api/v1/conversations?limit=20"),
    ("newest 20 that are open", "GET /api/v1/conversations?limit=20&status=open"),
    ("newest 20 of a person, who has 1 %", "GET /api/v1/conversations?limit=20&handler=human"),
];
const CONNECTIONS: usize = 8;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Newest conversations of an inbox");
    let sizes: [u64; 2] = if bench.plan.quick { [1_000, 10_000] } else { [10_000, 1_000_000] };
    one(bench, &mut section, "SQLite", sizes, |size| Ok(Some(bench.sqlite(&format!("inbox-{size}.db")))))?;
    one(bench, &mut section, "PostgreSQL", sizes, |size| postgres(&format!("svc_bench_inbox_{size}")))?;
    section.note(format!(
        "Every conversation has one message and a contact of its own; one in three is closed. {CONNECTIONS} connections."
    ));
    Ok(section)
}

fn one(
    bench: &Bench<'_>,
    section: &mut Section,
    name: &str,
    sizes: [u64; 2],
    database: impl Fn(u64) -> Result<Option<String>>,
) -> Result<()> {
    let mut services = Vec::new();
    for size in sizes {
        let Some(database) = database(size)? else { return Ok(()) };
        let service =
            Child::start(&["serve-svc", "--database", &database, "--network", "http://127.0.0.1:9/v23.0"])?;
        execute(&database, &fill(size))?;
        services.push(service);
    }
    for (what, target) in PAGES {
        let mut p99 = [Vec::new(), Vec::new()];
        for _ in 0..bench.plan.rounds {
            for (service, p99) in services.iter().zip(&mut p99) {
                p99.push(bench.load(service, target, "", CONNECTIONS)?.spawn()?.p99);
            }
        }
        let [small, large] = p99.map(|rounds| median(&rounds));
        let [fewer, more] = sizes.map(|size| whole(size as f64));
        section.state(
            format!("{name}, {what}: p99 of {fewer} / of {more}, ms"),
            format!("{small:.2} / {large:.2}"),
        );
        let ratio = large / small;
        section.against(
            format!("{name}, {what}: the second ÷ the first"),
            format!("{ratio:.2}"),
            "≤ 2",
            ratio <= 2.0,
        );
    }
    Ok(())
}

/// Builds the SQL that inserts conversations of the first channel, each with one message.
fn fill(size: u64) -> String {
    let (at, numbers) = ("'2026-01-01 00:00:00'", numbers(size));
    format!(
        "INSERT INTO conversations (workspace_id, channel_id, contact_id, status, unread_count, last_message_id, \
            last_message_at, last_inbound_at, reply_upto, version, created_at, updated_at) {numbers}
        SELECT 1, 1, 1000000 + n, CASE n % 3 WHEN 0 THEN 'closed' ELSE 'open' END, 1, n, {at}, {at}, 0, 1, {at}, {at} FROM n;
        INSERT INTO messages (workspace_id, conversation_id, channel_id, contact_id, direction, sender_type, sender_id, \
            message_type, content, status_rank, attempt, created_at, updated_at)
        SELECT 1, id, 1, contact_id, 'inbound', 'contact', CAST(contact_id AS TEXT), 'text', 'Hello', 0, 1, {at}, {at} \
            FROM conversations ORDER BY id;
        ANALYZE conversations; ANALYZE messages;"
    )
}
