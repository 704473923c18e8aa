//! The cost of an item that a query visits without an index.

use super::ours::Ours;
use super::rows::Table;
use crate::measure::{Bench, postgres, whole};
use crate::report::Section;
use anyhow::Result;
use serde_json::json;
use std::time::Duration;
use url::form_urlencoded::Serializer;

/// The number of measured requests. Together with those before, they are too few for the service to create an index.
const REQUESTS: u64 = 10;
/// The number of requests before, with pauses in which the service can build its structures.
const BEFORE: usize = 4;

/// Measures on a service without an index.
pub fn state(bench: &Bench<'_>, section: &mut Section, name: &str, most: f64, ours: &Ours) -> Result<()> {
    // No name and no city contains this text, and hardly any score is so low, so the query visits all rows.
    for (what, field, op, value) in [
        ("a text", "name", "ilike", json!("%zzq%")),
        ("a text of few", "city", "ilike", json!("%zzq%")),
        ("a number", "score", "lt", json!(3)),
    ] {
        let tree = json!({ "field": field, "op": op, "value": value }).to_string();
        let query = Serializer::new(String::new())
            .append_pair("limit", "20")
            .append_pair("filter_tree", &tree)
            .finish();
        let path = ours.path(&query);
        for _ in 0..BEFORE {
            ours.answer(&path)?;
            std::thread::sleep(Duration::from_millis(if bench.plan.quick { 100 } else { 2_000 }));
        }
        let answer = ours.answer(&path)?;
        let Some(visited) = answer.visited().filter(|visited| *visited > 0.0) else {
            section.state(
                format!("{name}: an item looked at for {what}"),
                format!("none was: `{}`", answer.plan),
            );
            continue;
        };
        let mut load = bench.load(&ours.service, &format!("GET {path}"), "", 1)?;
        load.requests = Some(REQUESTS);
        let outcome = load.spawn()?;
        let latency = outcome.p50 * 1000.0 / visited;
        section.against(
            format!("{name}: an item looked at for {what}, µs (processor time of the service; plan)"),
            format!("{latency:.2} ({:.2}; `{}`)", outcome.server_micros() / visited, answer.plan),
            &format!("≤ {most}"),
            latency <= most,
        );
    }
    Ok(())
}

/// Measures on PostgreSQL.
pub fn state_postgres(bench: &Bench<'_>, section: &mut Section, table: &Table) -> Result<()> {
    match postgres("svc_bench_queries")? {
        Some(url) => {
            let mut ours = Ours::start(&url, table)?;
            let name = format!("PostgreSQL, {} items", whole(f64::from(table.len())));
            state(bench, section, &name, 3.0, &ours)?;
            ours.service.ask("stop")?;
            Ok(())
        }
        None => {
            section.note("PostgreSQL was not there: run by `scripts/with-services`.");
            Ok(())
        }
    }
}
