//! The measurements.

mod broadcasts;
mod channels;
mod contacts;
mod conversations;
mod data_io;
mod deliveries;
mod files;
mod flows;
mod functions;
mod inbound;
mod items;
mod model;
mod neighbours;
mod peer;
mod pending;
mod queries;
mod real;
mod requests;
mod runs;
pub mod search;
mod svix;

use crate::child::{Child, text};
use crate::load::{self, Outcome};
use crate::report::{Report, Section};
use crate::{Plan, machine};
use anyhow::{Context, Result};
use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection};
use requests::{gate, me, sessions};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The parts that can be measured separately.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// `GET /me` against the floor.
    Me,
    /// Complete runs.
    Runs,
    /// Queries of the gate.
    Gate,
    /// Start and memory of the real binary.
    Real,
    /// The embedded model.
    Model,
    /// Items, compared with PocketBase.
    Items,
    /// Items at two sizes.
    Growth,
    /// Requests to inbound webhooks.
    Inbound,
    /// Deliveries of webhooks.
    Deliveries,
    /// Imports and exports of items.
    DataIo,
    /// Requests of a workspace while indexes of another one are built.
    Neighbours,
    /// Random queries of items, compared with PocketBase.
    Queries,
    /// Searches among a million items.
    Search,
    /// Messages of contacts, and their answers.
    Channels,
    /// Newest conversations of inboxes of two sizes.
    Conversations,
    /// Broadcasts.
    Broadcasts,
    /// Contacts, compared with PocketBase.
    Contacts,
    /// Uploads and downloads, compared with a bare handler.
    Files,
    /// Requests of people who have signed in, compared with keys, and searches of the log of requests.
    Sessions,
    /// Functions, compared with Node, and skills.
    Functions,
    /// Flows, compared with n8n, Node-RED and DBOS.
    Flows,
}

/// The plan, and the folder for temporary databases. The folder is next to the program, so that it is on a real disk.
pub struct Bench<'a> {
    pub plan: &'a Plan,
    pub folder: TempDir,
}

type Measure = fn(&Bench<'_>) -> Result<Section>;

/// Measures all parts of the plan.
pub fn all(plan: &Plan) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(target()?)?;
    let bench = Bench { plan, folder };
    let mut report = Report::new(circumstances(plan, bench.folder.path())?);
    let wanted = |part| plan.only.is_empty() || plan.only.contains(&part);
    let parts: [(Part, Measure); 21] = [
        (Part::Me, me::measure),
        (Part::Gate, gate::measure),
        (Part::Sessions, sessions::measure),
        (Part::Runs, runs::measure),
        (Part::Real, real::measure),
        (Part::Model, model::measure),
        (Part::Items, items::measure),
        (Part::Growth, items::measure_growth),
        (Part::Inbound, inbound::measure),
        (Part::Deliveries, deliveries::measure),
        (Part::DataIo, data_io::measure),
        (Part::Neighbours, neighbours::measure),
        (Part::Contacts, contacts::measure),
        (Part::Files, files::measure),
        (Part::Functions, functions::measure),
        (Part::Flows, flows::measure),
        (Part::Channels, channels::measure),
        (Part::Conversations, conversations::measure),
        (Part::Broadcasts, broadcasts::measure),
        (Part::Queries, queries::measure),
        (Part::Search, search::measure),
    ];
    for (part, measure) in parts {
        if wanted(part) {
            let section = measure(&bench)?;
            println!("{}", section.title());
            report.add(section);
        }
    }
    Ok(report)
}

/// Describes the circumstances of a run: date, version, machine and duration.
fn circumstances(plan: &Plan, folder: &Path) -> Result<String> {
    let date = std::env::var("BENCH_DATE").map_or_else(|_| String::new(), |date| format!(" on {date}"));
    Ok(format!(
        "Measured{date} with {} on {}. Load average before the run: {}. A write of 4 KiB is on the disk after {:.0} µs. \
         {} rounds of {} s.",
        server::VERSION,
        machine::describe(),
        machine::load_average(),
        machine::sync_micros(folder)?,
        plan.rounds,
        plan.seconds
    ))
}

/// Returns the folder of the build.
fn target() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    program.parent().map(Path::to_owned).context("the program lies in no folder")
}

impl Bench<'_> {
    /// Returns the URL of a SQLite file in the benchmark's folder.
    fn sqlite(&self, name: &str) -> String {
        format!("sqlite:{}", self.folder.path().join(name).display())
    }

    /// Builds a load of the usual length.
    fn load(&self, server: &Child, target: &str, body: &str, connections: usize) -> Result<load::Arguments> {
        Ok(load::Arguments {
            address: text(&server.hello, "address")?.to_owned(),
            process: server.id(),
            target: target.to_owned(),
            body: body.to_owned(),
            file_bytes: None,
            keys: keys(server),
            secret: None,
            connections,
            seconds: self.plan.seconds,
            spread: 1,
            contacts: 1,
            warm: 0.5,
            requests: None,
            rate: None,
        })
    }
}

/// Returns the keys that a service created.
fn keys(server: &Child) -> Vec<String> {
    let keys = server.hello.get("keys").and_then(serde_json::Value::as_array);
    keys.into_iter().flatten().filter_map(|key| key.as_str().map(str::to_owned)).collect()
}

/// Creates an empty database on the PostgreSQL of `scripts/with-services`. Returns `None` if there is none.
fn postgres(name: &str) -> Result<Option<String>> {
    let Ok(admin) = std::env::var("SVC_TEST_POSTGRES_URL") else { return Ok(None) };
    let (server, _) = admin.rsplit_once('/').context("SVC_TEST_POSTGRES_URL names no database")?;
    let mut connection = PgConnection::establish(&admin)?;
    connection.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
    connection.batch_execute(&format!("CREATE DATABASE {name}"))?;
    Ok(Some(format!("{server}/{name}")))
}

/// Adds the results of a load on a database; `what` names a request. Returns the median rate and the median p99.
fn state_load(section: &mut Section, database: &str, what: &str, outcomes: &[Outcome]) -> (f64, f64) {
    let of = |number: fn(&Outcome) -> f64| outcomes.iter().map(number).collect::<Vec<_>>();
    let (rates, p99) = (of(Outcome::rate), of(|outcome| outcome.p99));
    section.state(format!("{database}: {what}s/s"), spread(&rates, whole));
    section.state(
        format!("{database}: p50 / p99 / longest, ms"),
        format!(
            "{:.1} / {:.1} / {:.0}",
            machine::median(&of(|outcome| outcome.p50)),
            machine::median(&p99),
            machine::median(&of(|outcome| outcome.max))
        ),
    );
    section.state(
        format!("{database}: processor time of the service per {what}, µs"),
        format!("{:.0}", machine::median(&of(Outcome::server_micros))),
    );
    (machine::median(&rates), machine::median(&p99))
}

/// Formats the median with the minimum and the maximum.
fn spread(values: &[f64], show: impl Fn(f64) -> String) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} [{} … {}]", show(machine::median(values)), show(least), show(most))
}

/// Formats a number with separators of thousands.
fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
