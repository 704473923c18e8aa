//! `GET /me` through the whole service, compared with a bare handler that sends the same response.

use crate::child::{Child, text};
use crate::load::Outcome;
use crate::machine::median;
use crate::measure::{Bench, keys, spread, whole};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("`GET /me` against a bare actix-web handler");
    let database = bench.sqlite("me.db");
    let mut service = Child::start(&["serve-svc", "--database", &database])?;
    let (headers, body) = sample(&service)?;
    let floor = Child::start(&["serve-floor", "--headers", &json!(headers).to_string(), "--body", &body])?;
    let mut requests = 1;
    for connections in [32, 64] {
        let (mut floors, mut services) = (Vec::new(), Vec::new());
        for _ in 0..bench.plan.rounds {
            floors.push(bench.load(&floor, "GET /api/v1/me", "", connections)?.spawn()?);
            services.push(bench.load(&service, "GET /api/v1/me", "", connections)?.spawn()?);
        }
        for outcome in floors.iter().chain(&services) {
            ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
        }
        requests += services.iter().map(Outcome::total).sum::<u64>();
        report(&mut section, connections, &floors, &services);
    }
    drop(floor);
    requests += metrics(bench, &mut section, &service)?;
    let books = service.ask("stop")?;
    let (rows, dropped) =
        (crate::child::number(&books, "log_rows")?, crate::child::number(&books, "log_dropped")?);
    ensure!(
        u64::try_from(rows + dropped)? == requests,
        "{requests} requests, but {rows} log rows and {dropped} dropped"
    );
    ensure!(
        u64::try_from(crate::child::number(&books, "counted")?)? == requests,
        "the month's count is wrong: {books}"
    );
    section.note(format!(
        "Both answer the same {} bytes of body and {} headers. The service checks key, plan, scope, rate window and quota, and logs: \
         of {} requests every one was counted, {} log rows were written, {} dropped.",
        body.len(), headers.len(), whole(requests as f64), whole(rows as f64), whole(dropped as f64)
    ));
    Ok(section)
}

/// Measures the cost of counting requests for `/metrics`, in turns with a service that does not count. Returns the
/// number of requests that `service` received.
fn metrics(bench: &Bench<'_>, section: &mut Section, service: &Child) -> Result<u64> {
    let database = bench.sqlite("me-without-metrics.db");
    let bare = Child::start(&["serve-svc", "--database", &database, "--without-metrics"])?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..bench.plan.rounds {
        without.push(bench.load(&bare, "GET /api/v1/me", "", 32)?.spawn()?);
        with.push(bench.load(service, "GET /api/v1/me", "", 32)?.spawn()?);
    }
    for outcome in without.iter().chain(&with) {
        ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
    }
    let micros = |outcomes: &[Outcome]| outcomes.iter().map(Outcome::server_micros).collect::<Vec<_>>();
    let (without_micros, with_micros) = (micros(&without), micros(&with));
    section.state(
        "processor time per request, without / with metrics, 32 connections, µs",
        format!("{:.2} / {:.2}", median(&without_micros), median(&with_micros)),
    );
    let ratios: Vec<f64> =
        without_micros.iter().zip(&with_micros).map(|(without, with)| with / without).collect();
    section.against(
        "with / without metrics, processor time per request",
        spread(&ratios, |ratio| format!("{ratio:.3}")),
        "≤ 1.03",
        median(&ratios) <= 1.03,
    );
    Ok(with.iter().map(Outcome::total).sum())
}

fn report(section: &mut Section, connections: usize, floors: &[Outcome], services: &[Outcome]) {
    let of =
        |outcomes: &[Outcome], number: fn(&Outcome) -> f64| outcomes.iter().map(number).collect::<Vec<_>>();
    let rate = |outcomes: &[Outcome]| spread(&of(outcomes, Outcome::rate), whole);
    section.state(format!("floor, {connections} connections, requests/s"), rate(floors));
    section.state(format!("service, {connections} connections, requests/s"), rate(services));
    let ratios: Vec<f64> =
        floors.iter().zip(services).map(|(floor, service)| service.rate() / floor.rate()).collect();
    let met = median(&ratios) >= 0.5;
    section.against(
        format!("service / floor, {connections} connections"),
        spread(&ratios, |ratio| format!("{ratio:.2}")),
        "≥ 0.5",
        met,
    );
    let cpu = |outcomes: &[Outcome]| format!("{:.1}", median(&of(outcomes, Outcome::server_micros)));
    section.state(
        format!("processor time per request, floor / service, {connections} connections, µs"),
        format!("{} / {}", cpu(floors), cpu(services)),
    );
    let client = |outcomes: &[Outcome]| {
        median(&of(outcomes, |outcome| outcome.client_cpu * 1e6 / outcome.answers as f64))
    };
    section.state(
        "load generator, µs per request, against floor / service",
        format!("{:.1} / {:.1}", client(floors), client(services)),
    );
    let p99 = |outcomes: &[Outcome]| format!("{:.1}", median(&of(outcomes, |outcome| outcome.p99)));
    section.state(
        format!("p99, floor / service, {connections} connections, ms"),
        format!("{} / {}", p99(floors), p99(services)),
    );
}

type Answer = (Vec<(String, String)>, String);

/// Returns one response of the service: its body, and its headers without those that actix adds.
fn sample(service: &Child) -> Result<Answer> {
    let address = text(&service.hello, "address")?;
    let key = keys(service).into_iter().next().context("the service made no key")?;
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET /api/v1/me HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let own = ["date", "content-length", "connection"];
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    Ok((headers.filter(|(name, _)| !own.contains(&name.as_str())).collect(), body.to_owned()))
}
