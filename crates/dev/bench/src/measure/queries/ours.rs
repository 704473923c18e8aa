//! Our side: a service with the rows and the indexes, and its responses.

use super::family::Query;
use super::rows::{CHANGED_AT_ONCE, Field, Table};
use super::spelling;
use crate::child::{Child, text};
use crate::http::Server;
use crate::measure::data_io::import;
use crate::measure::items::until_indexed;
use crate::measure::keys;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The number of rows in one import.
const IMPORTED_AT_ONCE: u32 = 50_000;
/// The number of expensive queries after which the service creates an index, and some more.
const OFTEN: usize = 25;
/// The number of rounds with the same plans after which plans count as settled.
const STEADY: usize = 3;

/// The timeouts for plans to settle.
#[derive(Clone, Copy)]
pub struct Patience {
    /// The longest time to repeat one query.
    pub query: Duration,
    /// The pause between two rounds of all queries.
    pub pause: Duration,
    /// The longest time in total.
    pub whole: Duration,
}

/// A service with a collection of the rows.
pub struct Ours {
    pub service: Child,
    server: Server,
    collection: String,
}

/// The response to a query.
pub struct Answer {
    /// The rows, or `None` if the request failed.
    pub rows: Option<Vec<u32>>,
    /// The header `X-Svc-Query-Plan`, or the body of an error.
    pub plan: String,
}

impl Answer {
    /// Returns the plan without its cost.
    fn name(&self) -> &str {
        self.plan.split(';').next().unwrap_or_default()
    }

    /// Returns the plan, preceded by that of an earlier response if it differs.
    pub fn since(self, earlier: &Self) -> String {
        if self.name() == earlier.name() {
            self.plan
        } else {
            format!("{}, then {}", earlier.plan, self.plan)
        }
    }

    /// Returns the number of visited items.
    pub fn visited(&self) -> Option<f64> {
        let (_, number) = self.plan.split_once("visited=")?;
        number.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    }
}

impl Ours {
    /// Starts a service on an empty database, and imports the rows in their initial state.
    pub fn start(database: &str, table: &Table) -> Result<Self> {
        let service = Child::start(&["serve-svc", "--database", database])?;
        let token = keys(&service).into_iter().next().context("the service made no key")?;
        let server = Server { address: text(&service.hello, "address")?.to_owned(), token };
        let made = server.ask("POST", "/api/v1/collections", Some(&spelling::our_collection(table)))?;
        let id = made.pointer("/data/id").and_then(Value::as_i64).context("no collection")?;
        let ours = Self { service, server, collection: format!("/api/v1/collections/{id}") };
        for first in (0..table.len()).step_by(IMPORTED_AT_ONCE as usize) {
            let end = table.len().min(first + IMPORTED_AT_ONCE);
            import(
                &ours.server,
                &ours.collection,
                &spelling::csv(table, first, end),
                u64::from(end - first),
            )?;
        }
        Ok(ours)
    }

    /// Applies the later changes of rows.
    pub fn change(&self, table: &Table) -> Result<()> {
        let end = |sort: &str| -> Result<i64> {
            let listed = self.server.ask("GET", &self.path(&format!("limit=1&sort={sort}")), None)?;
            listed.pointer("/data/0/id").and_then(Value::as_i64).context("no items")
        };
        let (first, last) = (end("id")?, end("-id")?);
        ensure!(last - first + 1 == i64::from(table.len()), "the ids of the items have gaps");
        for places in table.changed.chunks(CHANGED_AT_ONCE) {
            let rows: Vec<Value> = places
                .iter()
                .map(|place| json!({ "id": first + i64::from(*place), "data": spelling::change(table, *place) }))
                .collect();
            let path = format!("{}/items/bulk-update", self.collection);
            self.server.ask("POST", &path, Some(&json!({ "rows": rows })))?;
        }
        Ok(())
    }

    /// Creates indexes on single fields and waits until they are ready.
    pub fn index(&self, fields: &[Field]) -> Result<()> {
        for field in fields {
            let body = json!({ "fields": [{ "field": spelling::our_name(*field) }] });
            self.server.ask("POST", &format!("{}/indexes", self.collection), Some(&body))?;
        }
        until_indexed(&self.server, &self.collection, fields.len())
    }

    /// Returns the path of a list with this query string.
    pub fn path(&self, query: &str) -> String {
        format!("{}/items?{query}", self.collection)
    }

    /// Returns the path of a query's page.
    pub fn page(&self, query: &Query<'_>) -> String {
        self.path(&spelling::our_query(query))
    }

    /// Sends a request.
    pub fn answer(&self, path: &str) -> Result<Answer> {
        let (head, body) = self.server.exchange("GET", path, "")?;
        if head.get(9..12) != Some("200") {
            return Ok(Answer { rows: None, plan: body });
        }
        let header = head.lines().filter_map(|line| line.split_once(": "));
        let mut header = header.filter(|(name, _)| name.eq_ignore_ascii_case("x-svc-query-plan"));
        let plan = header.next().map(|(_, plan)| plan.to_owned()).unwrap_or_default();
        Ok(Answer { rows: Some(spelling::rows(&body, "data", "/data/name")?), plan })
    }

    /// Repeats queries until the service has created the indexes for them and their plans no longer change. Returns
    /// whether that happened in time.
    pub fn settle(&self, paths: &[String], patience: Patience) -> Result<bool> {
        let began = Instant::now();
        for path in paths {
            let first = Instant::now();
            for _ in 0..OFTEN {
                self.answer(path)?;
                if first.elapsed() > patience.query {
                    break;
                }
            }
        }
        let (mut before, mut steady) = (Vec::new(), 0);
        while steady < STEADY {
            if began.elapsed() > patience.whole {
                return Ok(false);
            }
            std::thread::sleep(patience.pause);
            until_indexed(&self.server, &self.collection, 0)?;
            let answers = paths.iter().map(|path| self.answer(path)).collect::<Result<Vec<_>>>()?;
            let plans: Vec<String> = answers.iter().map(|answer| answer.name().to_owned()).collect();
            steady = if plans == before { steady + 1 } else { 0 };
            before = plans;
        }
        Ok(true)
    }
}
