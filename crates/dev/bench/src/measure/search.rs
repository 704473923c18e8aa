//! Search for two words of any frequency among a million items.

use super::items::WORDS;
use super::queries::Draw;
use super::{Bench, keys, postgres, spread, whole};
use crate::child::{Child, text};
use crate::http::Server;
use crate::load::Outcome;
use crate::machine::{median, memory};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The number of words in the texts.
pub const VOCABULARY: u64 = 970;
/// The number of words of an item.
const WORDS_OF_ITEM: usize = 8;
const CONNECTIONS: usize = 32;

/// The endings that multiply the number of words.
const ENDINGS: [&str; 10] = ["", "ly", "er", "est", "ish", "ful", "less", "ness", "ing", "ed"];

/// Returns the word of a rank, from 0. The lower the rank, the more frequent is the word.
pub fn word(rank: u64) -> String {
    fn of(list: &[&'static str], place: u64) -> &'static str {
        usize::try_from(place).ok().and_then(|place| list.get(place)).copied().unwrap_or_default()
    }
    let (rank, words) = (rank % VOCABULARY, WORDS.len() as u64);
    format!("{}{}", of(&WORDS, rank % words), of(&ENDINGS, rank / words))
}

/// Words that are distributed by Zipf's law: the word of rank n occurs 1 ÷ n times as often as the first.
struct Zipf {
    draw: Draw,
    /// The cumulative frequency of each word and those before it.
    until: Vec<f64>,
}

impl Zipf {
    fn new() -> Self {
        let sum = |sum: &mut f64, rank: u64| {
            *sum += 1.0 / (rank + 1) as f64;
            Some(*sum)
        };
        Self { draw: Draw::new(5), until: (0..VOCABULARY).scan(0.0, sum).collect() }
    }

    fn text(&self) -> String {
        let words: Vec<String> = (0..WORDS_OF_ITEM).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn word(&self) -> String {
        let drawn = self.draw.part() * self.until.last().copied().unwrap_or_default();
        word(self.until.partition_point(|until| *until <= drawn) as u64)
    }
}

/// Measures searches for two words among items with a text each.
pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let rows: u64 = if bench.plan.quick { 6_000 } else { 1_000_000 };
    let mut section = Section::new("Search for two words of any frequency, 1,000,000 items, 32 connections");
    on(bench, &mut section, "SQLite", &bench.sqlite("search.db"), rows)?;
    match postgres("svc_bench_search")? {
        Some(database) => on(bench, &mut section, "PostgreSQL", &database, rows)?,
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(
        "Texts of eight words, drawn from 970 by Zipf's law: the first stands in seven of ten items, the last in one of a \
         thousand. Each request asks for two words, of which all are as likely.",
    );
    Ok(section)
}

fn on(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str, rows: u64) -> Result<()> {
    let mut service = Child::start(&["serve-svc", "--database", database])?;
    let token = keys(&service).into_iter().next().context("the service made no key")?;
    let server = Server { address: text(&service.hello, "address")?.to_owned(), token };
    let collection = seed(&server, rows)?;
    let target = format!("GET {collection}/items/search?q={{w}}+{{v}}&limit=20");
    let load = bench.load(&service, &target, "", CONNECTIONS)?;
    load.spawn()?;
    let outcomes = (0..bench.plan.rounds).map(|_| load.spawn()).collect::<Result<Vec<Outcome>>>()?;
    ensure!(outcomes.iter().all(|outcome| outcome.ok() == outcome.total()), "a search failed: {outcomes:?}");
    let of = |number: fn(&Outcome) -> f64| outcomes.iter().map(number).collect::<Vec<_>>();
    section.state(format!("{name}: searches/s"), spread(&of(Outcome::rate), whole));
    let (p50, p99) = (median(&of(|outcome| outcome.p50)), median(&of(|outcome| outcome.p99)));
    section.state(
        format!("{name}: p50, ms; processor time of the service, µs"),
        format!("{p50:.1}; {:.0}", median(&of(Outcome::server_micros))),
    );
    section.against(format!("{name}: p99, ms"), format!("{p99:.1}"), "≤ 25", p99 <= 25.0);
    let resident = memory(service.id(), "RssAnon")?;
    let memory = format!("{name}: memory of the service's own after it all, MiB");
    section.against(memory, whole(resident), "≤ 96", resident <= 96.0);
    service.ask("stop")?;
    Ok(())
}

/// Creates the collection and its items. Returns its path.
fn seed(server: &Server, rows: u64) -> Result<String> {
    let fields = [("name", "text"), ("price", "number"), ("description", "long_text")];
    let field = |(key, kind): (&str, &str)| json!({ "field_key": key, "label": key, "type": kind });
    let new = json!({ "name": "Texts", "fields": fields.map(field) });
    let made = server.ask("POST", "/api/v1/collections", Some(&new))?;
    let id = made.pointer("/data/id").and_then(Value::as_i64).context("no collection")?;
    let collection = format!("/api/v1/collections/{id}");
    let zipf = Zipf::new();
    for first in (1..=rows).step_by(1_000) {
        let item = |number: u64| {
            let description = zipf.text();
            json!({ "data": { "name": format!("Product {number}"), "price": number % 1_000, "description": description } })
        };
        let chunk: Vec<Value> = (first..(first + 1_000).min(rows + 1)).map(item).collect();
        server.ask("POST", &format!("{collection}/items/bulk-create"), Some(&json!({ "rows": chunk })))?;
    }
    Ok(collection)
}
