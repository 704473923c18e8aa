//! Imports and exports of items: rows per second, and the memory of an export.

use super::real::{Real, model_at};
use super::{Bench, items, keys, postgres, spread, whole};
use crate::child::{Child, text};
use crate::http::Server;
use crate::machine::{median, memory, processor_seconds};
use crate::report::Section;
use anyhow::{Context, Result, bail, ensure};
use model::Timestamp;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The number of rows in one import, as many as fit into a request.
const ROWS: u64 = 100_000;

/// The most memory that an export may use, in MiB.
const MOST_MEMORY: f64 = 96.0;

/// The most additional memory for exporting ten times as many items, in MiB.
const FLAT: f64 = 8.0;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Imports and exports, items of 8 fields");
    let (rows, times) = if bench.plan.quick { (1_000, 10) } else { (ROWS, 10) };
    let sqlite = Shop::open(bench, bench.sqlite("data-io.db"))?;
    let rates = sqlite.imports(&mut section, "SQLite", rows)?;
    let met = median(&rates) >= 20_000.0;
    section.against("SQLite: import of CSV, rows/s", spread(&rates, whole), "≥ 20,000", met);
    sqlite.exports(&mut section, "SQLite", rows, times)?;
    match postgres("svc_bench_data_io")? {
        Some(url) => {
            let shop = Shop::open(bench, url)?;
            let rates = shop.imports(&mut section, "PostgreSQL", rows)?;
            section.state("PostgreSQL: import of CSV, rows/s", spread(&rates, whole));
            shop.exports(&mut section, "PostgreSQL", rows / 10, times)?;
        }
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(format!(
        "`svc serve` with its defaults. An import is a file of {} rows of about 130 bytes; its time is the one between \
         `started_at` and `finished_at`, looking the file through included. Each row is an item with an activity entry and \
         full-text terms. After each import the counts were held against the file, after each export the lines that came \
         against the items. Each export is read by a fresh process over the loopback, as fast as it comes; its memory is \
         the most that was resident (`VmHWM`).",
        whole(rows as f64)
    ));
    Ok(section)
}

/// A database with a workspace and a key, served by the real program.
struct Shop<'a> {
    bench: &'a Bench<'a>,
    database: String,
    key: String,
}

impl<'a> Shop<'a> {
    fn open(bench: &'a Bench<'a>, database: String) -> Result<Self> {
        let mut maker = Child::start(&["serve-svc", "--database", &database])?;
        let key = keys(&maker).into_iter().next().context("the service made no key")?;
        maker.ask("stop")?;
        Ok(Self { bench, database, key })
    }

    fn serve(&self) -> Result<(Real, Server)> {
        // Nothing calls the model here.
        let real = Real::start(self.bench, &self.database, &model_at("127.0.0.1:9"))?;
        real.wait_for("/api/v1/me", &self.key)?;
        let server = Server { address: real.address.clone(), token: self.key.clone() };
        Ok((real, server))
    }

    /// Imports the same rows in each round, each time into a new collection. Returns the rates.
    fn imports(&self, section: &mut Section, name: &str, rows: u64) -> Result<Vec<f64>> {
        let (real, server) = self.serve()?;
        let text = csv(1, rows);
        let mut plain = Vec::new();
        let before = processor_seconds(real.id())?;
        for _ in 0..self.bench.plan.rounds {
            plain.push(import(&server, &collection(&server)?, &text, rows)?);
        }
        let spent = processor_seconds(real.id())? - before;
        let per_row = spent * 1e6 / (rows as f64 * self.bench.plan.rounds as f64);
        section.state(
            format!("{name}: import of CSV, processor time of the service per row, µs"),
            format!("{per_row:.0}"),
        );
        let indexed = collection(&server)?;
        for field in ["price", "category", "updated_at"] {
            let body = json!({ "fields": [{ "field": field }] });
            server.ask("POST", &format!("{indexed}/indexes"), Some(&body))?;
        }
        items::until_indexed(&server, &indexed, 3)?;
        let rate = import(&server, &indexed, &text, rows)?;
        section.state(format!("{name}: import of CSV into three indexes, rows/s"), whole(rate));
        Ok(plain)
    }

    /// Exports collections of `rows` and of `times` as many items.
    fn exports(&self, section: &mut Section, name: &str, rows: u64, times: u64) -> Result<()> {
        let (small, large) = {
            let (_real, server) = self.serve()?;
            let (small, large) = (collection(&server)?, collection(&server)?);
            import(&server, &small, &csv(1, rows), rows)?;
            for part in 0..times {
                import(&server, &large, &csv(part * rows + 1, rows), rows)?;
            }
            (small, large)
        };
        for (format, lines_before) in [("csv", 1), ("jsonl", 0)] {
            let tenth = self.export(&small, format, rows + lines_before)?;
            let whole_of_it = self.export(&large, format, rows * times + lines_before)?;
            let items = whole((rows * times) as f64);
            section.state(
                format!("{name}: export of {items} items as {format}, items/s"),
                format!("{} ({:.0} MB)", whole(whole_of_it.rate), whole_of_it.megabytes),
            );
            let more = whole_of_it.memory - tenth.memory;
            section.against(
                format!("{name}: resident during the export of {items} items as {format}: at most, MiB"),
                format!("{:.1} ({:.1} for a tenth of them)", whole_of_it.memory, tenth.memory),
                &format!("≤ {MOST_MEMORY}, flat"),
                whole_of_it.memory <= MOST_MEMORY && more <= FLAT,
            );
        }
        Ok(())
    }

    /// Runs one export in a new process.
    fn export(&self, collection: &str, format: &str, lines: u64) -> Result<Exported> {
        let (real, server) = self.serve()?;
        let link = server.ask("GET", &format!("{collection}/items/export?format={format}"), None)?;
        let url = text(link.get("data").context("no data")?, "url")?;
        let path = url.find("/d/").and_then(|place| url.get(place..)).context("the link leads nowhere")?;
        let began = Instant::now();
        let (bytes, found) = server.read_through(path)?;
        let seconds = began.elapsed().as_secs_f64();
        ensure!(found == lines, "{path}: {lines} lines were expected, {found} came");
        Ok(Exported {
            rate: lines as f64 / seconds,
            megabytes: bytes as f64 / 1e6,
            memory: memory(real.id(), "VmHWM")?,
        })
    }
}

/// The result of an export.
struct Exported {
    /// Items per second.
    rate: f64,
    megabytes: f64,
    /// The peak of resident memory, in MiB.
    memory: f64,
}

/// Creates a collection of products and returns its path.
fn collection(server: &Server) -> Result<String> {
    let mut request = items::products();
    // Names are unique within a workspace.
    let listed = server.ask("GET", "/api/v1/collections", None)?;
    let there = listed.get("data").and_then(Value::as_array).map_or(0, Vec::len);
    if let Some(name) = request.get_mut("name") {
        *name = format!("Products {there}").into();
    }
    let made = server.ask("POST", "/api/v1/collections", Some(&request))?;
    let id = made.pointer("/data/id").and_then(Value::as_i64).context("no collection")?;
    Ok(format!("/api/v1/collections/{id}"))
}

/// Builds rows of products as CSV.
fn csv(first: u64, rows: u64) -> String {
    let mut text = String::new();
    for n in first..first + rows {
        let row = items::row(n);
        let Some(values) = row.as_object() else { continue };
        if text.is_empty() {
            let keys: Vec<&str> = values.keys().map(String::as_str).collect();
            let _ = writeln!(text, "{}", keys.join(","));
        }
        let cells: Vec<String> = values
            .values()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

/// Imports a file into a collection. Returns the rows per second according to the import's own times.
pub fn import(server: &Server, collection: &str, file: &str, rows: u64) -> Result<f64> {
    let made =
        server.ask("POST", &format!("{collection}/items/import"), Some(&json!({ "content": file })))?;
    let id = text(made.get("data").context("no data")?, "id")?;
    let deadline = Instant::now() + Duration::from_secs(600);
    loop {
        let answer = server.ask("GET", &format!("{collection}/imports/{id}"), None)?;
        let import = answer.get("data").context("no data")?;
        match text(import, "status")? {
            "queued" | "validating" | "running" if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(100));
            }
            "completed" => {
                let created = import.pointer("/counts/created").and_then(Value::as_u64);
                ensure!(created == Some(rows), "{rows} rows were imported, and {created:?} counted");
                let moment = |name| Timestamp::parse(text(import, name)?).context("no time");
                let millis = moment("finished_at")?.millis() - moment("started_at")?.millis();
                return Ok(rows as f64 * 1000.0 / millis.max(1) as f64);
            }
            _ => bail!("the import did not end well: {answer}"),
        }
    }
}
