//! Outgoing webhooks: deliveries per second, the delay from a change to its delivery, and the effect of many pending
//! deliveries.

use super::svix::{self, Svix};
use super::{Bench, keys, pending, postgres, spread, whole};
use crate::child::{Child, number, text};
use crate::http::Server;
use crate::load::Outcome;
use crate::machine::{median, processor_seconds};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The most rows of a bulk request.
const ROWS: usize = 1_000;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Deliveries to a receiver on this machine that answers at once");
    let databases = [("SQLite", Kind::Sqlite), ("PostgreSQL", Kind::Postgres)];
    for (name, kind) in databases {
        if kind.database(bench, "deliveries-probe")?.is_none() {
            section.note(format!("{name} was not there: run by `scripts/with-services`."));
            continue;
        }
        for endpoints in [1, 8] {
            drain(bench, &mut section, name, kind, endpoints)?;
        }
        flow(bench, &mut section, name, kind)?;
        latency(bench, &mut section, name, kind)?;
        pending::measure(bench, &mut section, name, kind)?;
    }
    section.note(
        "Deliveries in a second: events of `items/bulk-create` wait in the database until deliveries are let go; from then to \
         the last arrival they are placed in the log, fanned out, signed, sent and written down. Afterwards the books are held \
         against the arrivals. From commit to first byte: counted from the event's `created_at`, which is before the commit \
         and cut to a millisecond, so the true time is a little less.",
    );
    section.note(
        "Accepted and delivered at once: 64 connections make items, each request one item with its event, and what reaches the \
         receiver until the last of them is answered is counted. Svix's server has the same PostgreSQL, Redis, receiver and \
         loads, with one message for each event; its backlog is counted from the first arrival to the last, ours from the \
         command to deliver. Without `SVIX_SERVER`, the path of its program, its rows are left out.",
    );
    Ok(section)
}

/// The database to measure.
#[derive(Clone, Copy)]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// Returns the URL of a new database, or `None` if there is no server for it.
    pub fn database(self, bench: &Bench<'_>, name: &str) -> Result<Option<String>> {
        match self {
            Self::Sqlite => Ok(Some(bench.sqlite(&format!("{name}.db")))),
            Self::Postgres => postgres(&format!("svc_bench_{}", name.replace('-', "_"))),
        }
    }

    /// Returns the peer with an empty database of the same kind, or `None` if it is not available.
    fn svix(self) -> Result<Option<Svix>> {
        match self {
            Self::Sqlite => Ok(None),
            Self::Postgres => Svix::prepare(),
        }
    }
}

/// A service, a receiver, and a collection whose new items are delivered to the receiver.
pub struct Stage {
    pub service: Child,
    pub receiver: Child,
    pub server: Server,
    /// The path of the collection's items.
    pub items: String,
    /// The endpoints.
    pub endpoints: Vec<String>,
}

impl Stage {
    /// Starts both on a new database.
    pub fn new(database: &str, endpoints: usize, more: &[&str]) -> Result<Self> {
        let receiver = Child::start(&["serve-receiver"])?;
        let mut arguments = vec!["serve-svc", "--database", database];
        arguments.extend(more);
        let service = Child::start(&arguments)?;
        let key = keys(&service).into_iter().next().context("the service made no key")?;
        let server = Server { address: text(&service.hello, "address")?.to_owned(), token: key };
        let field = json!({ "field_key": "name", "label": "Name", "type": "text" });
        let body = json!({ "name": "Things", "fields": [field] });
        let made = server.ask("POST", "/api/v1/collections", Some(&body))?;
        let collection = made.pointer("/data/id").and_then(Value::as_i64).context("no collection")?;
        let address = text(&receiver.hello, "address")?.to_owned();
        let endpoints = (0..endpoints).map(|place| {
            let body =
                json!({ "url": format!("http://{address}/{place}"), "enabled_events": ["item.created"] });
            let made = server.ask("POST", "/api/v1/webhook-endpoints", Some(&body))?;
            Ok(text(made.get("data").context("no data")?, "id")?.to_owned())
        });
        let endpoints = endpoints.collect::<Result<_>>()?;
        Ok(Self {
            service,
            receiver,
            server,
            items: format!("/api/v1/collections/{collection}/items"),
            endpoints,
        })
    }

    /// Creates items, each with an event.
    pub fn make_items(&self, count: usize) -> Result<()> {
        let row = json!({ "data": { "name": "A thing" } });
        for first in (0..count).step_by(ROWS) {
            let rows = vec![row.clone(); ROWS.min(count - first)];
            self.server.ask(
                "POST",
                &format!("{}/bulk-create", self.items),
                Some(&json!({ "rows": rows })),
            )?;
        }
        Ok(())
    }

    /// Waits until `count` deliveries have arrived. Returns the receiver's report, and makes it forget them.
    pub fn take(&mut self, count: i64) -> Result<Value> {
        let deadline = Instant::now() + Duration::from_secs(300);
        loop {
            let reported = self.receiver.ask("count")?;
            let came = number(&reported, "count")?;
            if came >= count {
                return self.receiver.ask("take");
            }
            ensure!(Instant::now() < deadline, "of {count} deliveries {came} came in five minutes");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the service. Checks that it recorded `came` deliveries, and that none arrived twice.
    pub fn end(mut self, came: i64) -> Result<()> {
        let books = self.service.ask("stop")?;
        let (written, late) = (number(&books, "delivered")?, number(&self.receiver.ask("count")?, "count")?);
        ensure!(
            written == came && late == 0,
            "{came} deliveries came and {late} more, but {written} are written down"
        );
        Ok(())
    }
}

/// Measures how fast pending deliveries are sent.
fn drain(bench: &Bench<'_>, section: &mut Section, name: &str, kind: Kind, endpoints: usize) -> Result<()> {
    let events = if bench.plan.quick { 800 } else { 20_000 } / endpoints;
    let total = i64::try_from(events * endpoints)?;
    let (mut rates, mut micros, mut shared, mut peer) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..bench.plan.rounds {
        let database =
            kind.database(bench, &format!("deliveries-{endpoints}-{round}"))?.context("no database")?;
        let mut stage = Stage::new(&database, endpoints, &["--hold-deliveries"])?;
        stage.make_items(events)?;
        let transactions = number(&stage.service.ask("stats")?, "writes")?;
        let before = processor_seconds(stage.service.id())?;
        let began = number(&stage.service.ask("deliver")?, "began")?;
        let reported = stage.take(total)?;
        let used = processor_seconds(stage.service.id())? - before;
        let transactions = number(&stage.service.ask("stats")?, "writes")? - transactions;
        ensure!(number(&reported, "count")? == total, "{total} deliveries, but {reported}");
        stage.end(total)?;
        rates.push(total as f64 * 1e6 / (number(&reported, "last")? - began) as f64);
        micros.push(used * 1e6 / total as f64);
        shared.push(total as f64 / transactions as f64);
        if let Some(svix) = kind.svix()? {
            peer.push(svix::drain(&svix, events, endpoints)?);
        }
    }
    let to = if endpoints == 1 { "one endpoint".to_owned() } else { format!("{endpoints} endpoints") };
    section.state(
        format!("{name}, {} deliveries to {to}: deliveries/s", whole(total as f64)),
        spread(&rates, whole),
    );
    section.state(
        format!("{name}, to {to}: processor time of the service per delivery, µs"),
        format!("{:.0}", median(&micros)),
    );
    section.state(
        format!("{name}, to {to}: deliveries that share a transaction, on average"),
        format!("{:.0}", median(&shared)),
    );
    against_svix(section, &format!("{name}, to {to}: deliveries/s"), &rates, &peer);
    Ok(())
}

/// Measures how many changes are accepted while their deliveries are sent, and how many deliveries are sent
/// meanwhile.
fn flow(bench: &Bench<'_>, section: &mut Section, name: &str, kind: Kind) -> Result<()> {
    let mut rates: [Vec<f64>; 4] = Default::default();
    for round in 0..bench.plan.rounds {
        let database = kind.database(bench, &format!("deliveries-flow-{round}"))?.context("no database")?;
        let mut stage = Stage::new(&database, 1, &[])?;
        let body = r#"{"data":{"name":"A thing"}}"#;
        let load = bench.load(&stage.service, &format!("POST {}", stage.items), body, 64)?;
        let began = Instant::now();
        let outcome = load.spawn()?;
        let came = number(&stage.receiver.ask("count")?, "count")?;
        let delivered = came as f64 / began.elapsed().as_secs_f64();
        ensure!(outcome.done() == outcome.total(), "not every answer was 201: {:?}", outcome.statuses);
        let done = i64::try_from(outcome.done())?;
        stage.take(done)?;
        stage.end(done)?;
        let svix = kind.svix()?.map(|svix| svix::flow(&svix, bench.plan.seconds)).transpose()?;
        let own =
            [Some(outcome.rate()), Some(delivered), svix.map(|rates| rates.0), svix.map(|rates| rates.1)];
        for (rates, rate) in rates.iter_mut().zip(own) {
            rates.extend(rate);
        }
    }
    let [accepted, delivered, svix_accepted, svix_delivered] = rates;
    for (what, own, peer) in [("accepted", accepted, svix_accepted), ("delivered", delivered, svix_delivered)]
    {
        let what = format!("{name}, messages in and delivered at once: {what}/s");
        section.state(&what, spread(&own, whole));
        against_svix(section, &what, &own, &peer);
    }
    Ok(())
}

/// Adds the results of Svix for the same measurement, if there are any.
fn against_svix(section: &mut Section, what: &str, own: &[f64], peer: &[f64]) {
    if !peer.is_empty() {
        let ratio = median(own) / median(peer);
        section.state(format!("{what}, Svix"), spread(peer, whole));
        section.against(format!("{what}, ours ÷ Svix"), format!("{ratio:.2}"), "≥ 2", ratio >= 2.0);
    }
}

/// Measures the delay from a change to its delivery, with changes at a fixed rate.
fn latency(bench: &Bench<'_>, section: &mut Section, name: &str, kind: Kind) -> Result<()> {
    let rate = if bench.plan.quick { 50.0 } else { 500.0 };
    let database = kind.database(bench, "deliveries-latency")?.context("no database")?;
    let mut stage = Stage::new(&database, 1, &[])?;
    let mut load =
        bench.load(&stage.service, &format!("POST {}", stage.items), r#"{"data":{"name":"A thing"}}"#, 64)?;
    load.rate = Some(rate);
    let (mut outcomes, mut p50, mut p99, mut all) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..bench.plan.rounds {
        let outcome = load.spawn()?;
        let done = i64::try_from(outcome.done())?;
        ensure!(outcome.done() == outcome.total(), "not every answer was 201: {:?}", outcome.statuses);
        let reported = stage.take(done)?;
        ensure!(number(&reported, "count")? == done, "{done} items, but {reported}");
        p50.push(number(&reported, "p50")? as f64 / 1000.0);
        p99.push(number(&reported, "p99")? as f64 / 1000.0);
        all += done;
        outcomes.push(outcome);
    }
    stage.end(all)?;
    let rates: Vec<f64> = outcomes.iter().map(Outcome::rate).collect();
    section.state(format!("{name}: changes/s (asked for: {rate:.0})"), spread(&rates, whole));
    let show = |value: f64| format!("{value:.1}");
    section.against(
        format!("{name}: commit of a change → first byte at the receiver, p50, ms"),
        spread(&p50, show),
        "≤ 15",
        median(&p50) <= 15.0,
    );
    section.against(
        format!("{name}: commit of a change → first byte at the receiver, p99, ms"),
        spread(&p99, show),
        "≤ 100",
        median(&p99) <= 100.0,
    );
    Ok(())
}
