//! Random queries, compared with PocketBase with the same rows and the same indexes.

mod cost;
mod family;
mod ours;
mod ratios;
mod rows;
mod spelling;

use super::peer::{self, PocketBase};
use super::{Bench, whole};
use crate::load::{self, Outcome};
use crate::machine::median;
use crate::report::Section;
use anyhow::Result;
use family::{Family, Query};
use ours::{Answer, Ours, Patience};
use ratios::Ratios;
pub use rows::Draw;
use rows::{Field, Table};
use std::fmt::Write;
use std::time::{Duration, Instant};

const CONNECTIONS: [usize; 2] = [1, 32];
/// The seconds to measure a query on one side, and the seconds to warm up before.
const SECONDS: f64 = 1.0;
const WARM: f64 = 0.1;
/// The number of requests to measure instead of a time, for queries too slow for four times as many.
const FEW_REQUESTS: usize = 8;
/// The number of items that a query must visit to tell the cost of an item.
const MANY_VISITED: f64 = 1_000.0;
/// The number of items on PostgreSQL, where only the cost of an item is measured.
const MOST_ON_POSTGRES: u32 = 100_000;
/// The number of worst queries and of failures in the report.
const NAMED: usize = 3;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let plan = bench.plan;
    let mut section = Section::new("Queries drawn at random, against PocketBase");
    let usual = [if plan.quick { 5_000 } else { 100_000 }];
    let sizes = if plan.items.is_empty() { &usual[..] } else { &plan.items };
    for size in sizes {
        let table = Table::draw(plan.seed, *size);
        over(bench, &mut section, &table)?;
    }
    let least = sizes.iter().min().copied().unwrap_or_default();
    cost::state_postgres(bench, &mut section, &Table::draw(plan.seed, least.min(MOST_ON_POSTGRES)))?;
    section.note(format!(
        "{} queries of seed {}: 1 to 3 conditions that each keep 0.01 to 80 % of the items, over 8 fields (skewed, correlated, \
         clustered and unique values), in any order, the first 20. Each was measured alone for {} s on either side, in turns; \
         queries too slow for that by a fixed number of requests. Before, they were repeated until the service had made \
         the indexes that it makes by itself. PocketBase with its defaults, by a superuser's token, `skipTotal=1`, and the same \
         single-field indexes. Every page of both sides was held against the rows themselves.",
        plan.queries, plan.seed, seconds(bench)
    ));
    Ok(section)
}

fn seconds(bench: &Bench<'_>) -> f64 {
    if bench.plan.quick { 0.1 } else { SECONDS }
}

/// The indexed fields of a measurement.
struct Setting {
    name: String,
    fields: Vec<Field>,
}

fn settings(some: Vec<Field>) -> [Setting; 3] {
    let names: Vec<&str> = some.iter().map(|field| spelling::their_name(*field)).collect();
    [
        Setting { name: "no index".to_owned(), fields: Vec::new() },
        Setting { name: format!("indexes on {}", names.join(", ")), fields: some },
        Setting { name: "all indexed".to_owned(), fields: Field::ALL.to_vec() },
    ]
}

fn over(bench: &Bench<'_>, section: &mut Section, table: &Table) -> Result<()> {
    let family = Family::new(table, bench.plan.seed);
    let some = family.some_fields();
    let queries = (0..bench.plan.queries).map(|_| family.query()).collect::<Result<Vec<_>>>()?;
    drop(family);
    let items = whole(f64::from(table.len()));
    let folder = bench.folder.path().join(format!("queries-{}", table.len()));
    let peer = peer::program().map(|program| {
        let collection = spelling::their_collection(table);
        PocketBase::with_rows(&program, &folder, &collection, |rows| spelling::fill(rows, table))
    });
    let peer = peer.transpose()?;
    if peer.is_none() {
        section.note("PocketBase was not there: only what an item costs was measured.");
    }
    for (number, setting) in settings(some).iter().enumerate() {
        let database = bench.sqlite(&format!("queries-{}-{number}.db", table.len()));
        let name = format!("{items} items, {}", setting.name);
        let mut ours = Ours::start(&database, table)?;
        if setting.fields.is_empty() {
            cost::state(bench, section, &format!("SQLite, {items} items"), 1.0, &ours)?;
        }
        if let Some(peer) = &peer {
            ours.change(table)?;
            ours.index(&setting.fields)?;
            let fields: Vec<&str> = setting.fields.iter().map(|field| spelling::their_name(*field)).collect();
            peer.set_indexes("family", &fields)?;
            let turns = Turns { bench, table, queries: &queries, ours: &ours, peer };
            turns.measure(section, &name)?;
        }
        ours.service.ask("stop")?;
        drop(ours);
        // Three databases of a million items need not be on the disk at the same time.
        std::fs::remove_file(database.trim_start_matches("sqlite:"))?;
        if peer.is_none() {
            break;
        }
    }
    Ok(())
}

/// The queries, measured in turns on both sides with the same indexes.
struct Turns<'a> {
    bench: &'a Bench<'a>,
    table: &'a Table,
    queries: &'a [Query<'a>],
    ours: &'a Ours,
    peer: &'a PocketBase,
}

/// The result of a query on both sides.
struct Turn<'a> {
    query: &'a Query<'a>,
    /// Our plan, with the previous one if it changed meanwhile.
    plan: String,
    /// Successful responses per second.
    ours: f64,
    theirs: f64,
}

/// The findings other than speed.
#[derive(Default)]
struct Findings {
    our_errors: u64,
    their_errors: u64,
    differences: u64,
    /// The number of items on all correct pages.
    items: usize,
    /// Microseconds per visited item.
    micros: Vec<f64>,
    /// Descriptions of the first findings of each kind.
    notes: Vec<String>,
}

impl Turns<'_> {
    fn measure(&self, section: &mut Section, name: &str) -> Result<()> {
        let began = Instant::now();
        let paths: Vec<String> = self.queries.iter().map(|query| self.ours.page(query)).collect();
        if !self.ours.settle(&paths, self.patience())? {
            section.note(format!("{name}: the plans had not settled before they were measured."));
        }
        let mut turns = CONNECTIONS.map(|_| Vec::new());
        let mut found = Findings::default();
        for (query, path) in self.queries.iter().zip(&paths) {
            let answer = self.compare(&mut found, query, path)?;
            // The latency of one request tells how many can be measured.
            let mut latency = (
                self.timed(|| self.ours.answer(path).map(drop))?,
                self.timed(|| self.theirs(query).map(drop))?,
            );
            for (connections, turns) in CONNECTIONS.iter().zip(&mut turns) {
                let (ours, theirs) = self.loads(path, query, *connections)?;
                let (ours, theirs) = (self.run(ours, latency.0)?, self.run(theirs, latency.1)?);
                if *connections == 1 {
                    latency = (ours.p50 / 1000.0, theirs.p50 / 1000.0);
                    let visited = answer.visited().filter(|visited| *visited >= MANY_VISITED);
                    found.micros.extend(visited.map(|visited| ours.p50 * 1000.0 / visited));
                }
                found.count(query, &ours, &theirs);
                turns.push(Turn {
                    query,
                    plan: self.ours.answer(path)?.since(&answer),
                    ours: successes(&ours),
                    theirs: successes(&theirs),
                });
            }
        }
        for (connections, turns) in CONNECTIONS.iter().zip(turns) {
            let plural = if *connections == 1 { "" } else { "s" };
            state(section, &format!("{name}, {connections} connection{plural}"), turns);
        }
        found.state(section, name);
        println!("{name}: {} queries in {:.0} s", self.queries.len(), began.elapsed().as_secs_f64());
        Ok(())
    }

    fn patience(&self) -> Patience {
        if self.bench.plan.quick {
            let millis = Duration::from_millis;
            return Patience { query: millis(50), pause: millis(100), whole: millis(20_000) };
        }
        let seconds = Duration::from_secs;
        Patience { query: seconds(2), pause: seconds(1), whole: seconds(240) }
    }

    /// Compares the pages of both sides with the rows. Returns our response.
    fn compare(&self, found: &mut Findings, query: &Query<'_>, path: &str) -> Result<Answer> {
        let page = query.page(self.table);
        found.items += page.len();
        let answer = self.ours.answer(path)?;
        // Our order is total, so only one page is correct.
        if answer.rows.as_ref().is_some_and(|rows| *rows != page) {
            found.difference(query, "ours", answer.rows.as_deref(), &page);
        }
        let theirs = self.theirs(query)?;
        if theirs.as_ref().is_some_and(|rows| !query.is_page(self.table, &page, rows)) {
            found.difference(query, "PocketBase", theirs.as_deref(), &page);
        }
        Ok(answer)
    }

    /// Returns PocketBase's rows, or `None` if the request failed.
    fn theirs(&self, query: &Query<'_>) -> Result<Option<Vec<u32>>> {
        let (head, body) = self.peer.server.exchange("GET", &their_path(query), "")?;
        if head.get(9..12) != Some("200") {
            return Ok(None);
        }
        spelling::rows(&body, "items", "/name").map(Some)
    }

    fn timed(&self, request: impl FnOnce() -> Result<()>) -> Result<f64> {
        let began = Instant::now();
        request()?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn loads(
        &self,
        path: &str,
        query: &Query<'_>,
        connections: usize,
    ) -> Result<(load::Arguments, load::Arguments)> {
        let mut ours = self.bench.load(&self.ours.service, &format!("GET {path}"), "", connections)?;
        (ours.seconds, ours.warm) = (seconds(self.bench), WARM);
        let theirs = load::Arguments {
            address: self.peer.server.address.clone(),
            process: self.peer.id(),
            target: format!("GET {}", their_path(query)),
            keys: vec![self.peer.server.token.clone()],
            ..ours.clone()
        };
        Ok((ours, theirs))
    }

    /// Measures for the usual time. If too few responses would arrive in it, measures a fixed number of requests
    /// instead.
    fn run(&self, mut load: load::Arguments, latency: f64) -> Result<Outcome> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let expected = load.seconds * load.connections.min(cores) as f64 / latency.max(1e-6);
        let few = load.connections.max(FEW_REQUESTS);
        if expected < 4.0 * few as f64 {
            load.requests = Some(few as u64);
        }
        load.spawn()
    }
}

fn their_path(query: &Query<'_>) -> String {
    format!("/api/collections/family/records?{}", spelling::their_query(query))
}

/// Formats a query for the report.
fn describe(query: &Query<'_>) -> String {
    let shares: Vec<String> =
        query.conditions.iter().map(|condition| format!("{:.2} %", condition.share * 100.0)).collect();
    format!(
        "`{}` (keeping {}) by `{}`",
        spelling::their_filter(query),
        shares.join(", "),
        spelling::their_order(query)
    )
}

/// Returns the successful responses per second.
fn successes(outcome: &Outcome) -> f64 {
    outcome.rate() * outcome.ok() as f64 / outcome.total().max(1) as f64
}

impl Findings {
    fn count(&mut self, query: &Query<'_>, ours: &Outcome, theirs: &Outcome) {
        for (who, outcome, errors) in
            [("ours", ours, &mut self.our_errors), ("PocketBase", theirs, &mut self.their_errors)]
        {
            let failed = outcome.total() - outcome.ok();
            *errors += failed;
            if failed > 0 && self.notes.len() < NAMED {
                self.notes.push(format!("{who} answered {:?} to {}", outcome.statuses, describe(query)));
            }
        }
    }

    fn difference(&mut self, query: &Query<'_>, who: &str, rows: Option<&[u32]>, page: &[u32]) {
        self.differences += 1;
        if self.notes.len() < NAMED {
            let rows = rows.unwrap_or_default();
            self.notes.push(format!("{who} showed {rows:?} in place of {page:?} for {}", describe(query)));
        }
    }

    fn state(self, section: &mut Section, name: &str) {
        let zero = |section: &mut Section, what: &str, count: u64| {
            section.against(format!("{name}: {what}"), whole(count as f64), "0", count == 0);
        };
        zero(section, "errors, ours", self.our_errors);
        section.state(format!("{name}: errors, PocketBase"), whole(self.their_errors as f64));
        let what =
            format!("pages that are not what the rows say ({} items on all)", whole(self.items as f64));
        zero(section, &what, self.differences);
        if !self.micros.is_empty() {
            section.state(
                format!("{name}: time for an item looked at, median over {} queries, µs", self.micros.len()),
                format!("{:.2}", median(&self.micros)),
            );
        }
        for note in self.notes {
            section.note(format!("{name}: {note}."));
        }
    }
}

/// Adds the ratios and the worst queries to the report.
fn state(section: &mut Section, name: &str, mut turns: Vec<Turn<'_>>) {
    // A query that PocketBase fails has no ratio; it counts among PocketBase's errors.
    turns.retain(|turn| turn.theirs > 0.0);
    turns.sort_by(|one, other| (one.ours / one.theirs).total_cmp(&(other.ours / other.theirs)));
    let ratios = Ratios::new(turns.iter().map(|turn| turn.ours / turn.theirs).collect());
    for (what, ratio, target) in [
        ("median", ratios.at(0.5), 3.0),
        ("worst tenth", ratios.at(0.1), 1.0),
        ("least", ratios.least(), 0.5),
    ] {
        section.against(
            format!("{name}: ours ÷ PocketBase, {what}"),
            format!("{ratio:.2}"),
            &format!("≥ {target}"),
            ratio >= target,
        );
    }
    section.state(format!("{name}: ours ÷ PocketBase, most"), format!("{:.1}", ratios.most()));
    let mut worst = format!("{name}, the worst:\n");
    for turn in turns.iter().take(NAMED) {
        let _ = write!(
            worst,
            "\n- {:.2}: ours {:.1}/s, PocketBase {:.1}/s, {}; our plan `{}`",
            turn.ours / turn.theirs,
            turn.ours,
            turn.theirs,
            describe(turn.query),
            turn.plan
        );
    }
    section.note(worst);
}
