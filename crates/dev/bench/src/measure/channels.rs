//! Messages of contacts over the chat network: the rate at which callbacks are accepted, and the time until they are
//! applied and answered.

use super::{Bench, postgres, state_load, whole};
use crate::child::{Child, number, text};
use crate::http::Server;
use crate::load::Outcome;
use crate::machine::median;
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 64;
/// The number of contacts who write.
const CONTACTS: u64 = 10_000;
/// Messages of contacts per second, when answers are measured.
const TALK: f64 = 100.0;

/// The network, and a service with a channel on it.
pub struct Stage {
    pub network: Child,
    pub service: Child,
}

impl Stage {
    /// Starts both. `more` are further arguments of the service.
    pub fn start(database: &str, more: &[&str]) -> Result<Self> {
        let mut network = Child::start(&["serve-network"])?;
        let base_url = text(&network.hello, "base_url")?.to_owned();
        let arguments = ["serve-svc", "--database", database, "--network", &base_url];
        let service = Child::start(&[&arguments, more].concat())?;
        let address = text(&service.hello, "address")?.to_owned();
        network.ask(&format!("callback http://{address}/callbacks/1"))?;
        Ok(Self { network, service })
    }

    /// Returns the service's API.
    pub fn server(&self) -> Result<Server> {
        let token = super::keys(&self.service).into_iter().next().context("the service made no key")?;
        Ok(Server { address: text(&self.service.hello, "address")?.to_owned(), token })
    }

    /// Waits until every callback is applied.
    pub fn applied(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(600);
        while number(&self.service.ask("callbacks")?, "waiting")? > 0 {
            ensure!(Instant::now() < deadline, "callbacks are still waiting");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Messages of contacts over a channel");
    let (rate, p99) = callbacks(bench, &mut section, "SQLite", &bench.sqlite("callbacks.db"))?;
    section.against("SQLite: callbacks/s", whole(rate), "≥ 3,000", rate >= 3000.0);
    section.against("SQLite: p99 of a callback, ms", format!("{p99:.1}"), "≤ 50", p99 <= 50.0);
    answers(bench, &mut section, "SQLite", &bench.sqlite("answers.db"))?;
    match (postgres("svc_bench_callbacks")?, postgres("svc_bench_answers")?) {
        (Some(first), Some(second)) => {
            callbacks(bench, &mut section, "PostgreSQL", &first)?;
            answers(bench, &mut section, "PostgreSQL", &second)?;
        }
        _ => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(format!(
        "A callback is a signed text message of one of {} contacts, over {CONNECTIONS} connections; it is stored before it is \
         answered, and applied while others come. After each load it was checked that there are as many messages as \
         answers with 200. For answers, {TALK} contacts a second write to the simulated network, whose callbacks bring each \
         message to the service; a run of the agent answers with a model that answers at once, after no debounce, and the \
         time is that from the customer's message to the network's acceptance of the answer.",
        whole(CONTACTS as f64)
    ));
    Ok(section)
}

/// Builds the callback with which the network reports a text message.
fn body() -> String {
    let network = simulator::Settings::default();
    json!({
        "object": "whatsapp_business_account",
        "entry": [{ "id": network.business_id, "changes": [{ "field": "messages", "value": {
            "messaging_product": "whatsapp",
            "metadata": { "display_phone_number": network.display_number, "phone_number_id": network.number_id },
            "contacts": [{ "profile": { "name": "Ana" }, "wa_id": "55119{c8}" }],
            "messages": [{
                "from": "55119{c8}", "id": "wamid.{n15}", "timestamp": "{now}", "type": "text",
                "text": { "body": "Does it come in another color?" },
            }],
        } }] }],
    })
    .to_string()
}

/// Measures callbacks. Returns the rate and the p99.
fn callbacks(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str) -> Result<(f64, f64)> {
    let mut stage = Stage::start(database, &["--no-answers"])?;
    let mut outcomes = Vec::new();
    let mut applied = Vec::new();
    for round in 0..bench.plan.rounds {
        // Use other ids in each round, because the load draws the same numbers again.
        let body = body().replace("wamid.", &format!("wamid.{round}-"));
        let mut load = bench.load(&stage.service, "POST /callbacks/1", &body, CONNECTIONS)?;
        load.spread = 1_000_000_000_000;
        load.contacts = CONTACTS;
        load.secret = Some(simulator::Settings::default().app_secret);
        let began = Instant::now();
        let outcome = load.spawn()?;
        stage.applied()?;
        applied.push(outcome.ok() as f64 / began.elapsed().as_secs_f64());
        outcomes.push(outcome);
    }
    let answered: u64 = outcomes.iter().map(Outcome::ok).sum();
    ensure!(answered == outcomes.iter().map(Outcome::total).sum::<u64>(), "not every callback was taken");
    let books = stage.service.ask("stop")?;
    let kept = u64::try_from(number(&books, "inbound_messages")?)?;
    ensure!(kept == answered, "{answered} callbacks were taken, and {kept} messages are there");
    let stated = state_load(section, name, "callback", &outcomes);
    section.state(format!("{name}: taken and applied, messages/s"), whole(median(&applied)));
    Ok(stated)
}

/// Measures the time from a message to its answer.
fn answers(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str) -> Result<()> {
    let mut stage = Stage::start(database, &[])?;
    let talk = |stage: &mut Stage, seconds: f64| stage.network.ask(&format!("talk {TALK} {seconds}"));
    // Let every customer write once before, so that none of them is new.
    talk(&mut stage, 10.0)?;
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    for _ in 0..bench.plan.rounds {
        let told = talk(&mut stage, bench.plan.seconds)?;
        ensure!(
            number(&told, "asked")? == number(&told, "answered")?,
            "{name}: not every message was answered: {told}"
        );
        p50.push(number(&told, "p50")? as f64);
        p99.push(number(&told, "p99")? as f64);
    }
    let (p50, p99) = (median(&p50), median(&p99));
    section.against(
        format!("{name}: from a message to its answer, p50, ms"),
        whole(p50),
        "≤ 40",
        p50 <= 40.0,
    );
    section.against(format!("{name}: the same, p99, ms"), whole(p99), "≤ 150", p99 <= 150.0);
    stage.service.ask("stop")?;
    Ok(())
}
