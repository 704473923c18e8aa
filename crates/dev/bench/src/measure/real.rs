//! The real program, `svc serve`: the time until it answers, and its memory.

use super::{Bench, keys, spread, target, whole};
use crate::child::{Child, text};
use crate::load;
use crate::machine::{median, memory};
use crate::report::Section;
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

const STARTS: usize = 10;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Start and memory of `svc serve`");
    let stub = Child::start(&["serve-stub"])?;
    let stub_address = text(&stub.hello, "address")?.to_owned();
    let database = bench.sqlite("real.db");
    // Create an existing database with some thousand runs, by the service within this program.
    let mut maker = Child::start(&["serve-svc", "--database", &database])?;
    let key = keys(&maker).into_iter().next().context("the service made no key")?;
    let mut runs = bench.load(&maker, "POST /api/v1/runs", RUN, 64)?;
    runs.requests = Some(if bench.plan.quick { 500 } else { 5_000 });
    runs.spawn()?;
    maker.ask("stop")?;
    drop(maker);

    let openai = model_at(&stub_address);
    start_times(bench, &mut section, &database, &openai, &key)?;
    memory_under_load(bench, &mut section, &database, &openai, &key)?;
    memory_with_model(bench, &mut section, &database, &key)?;
    Ok(section)
}

type Settings = [(&'static str, String)];

fn start_times(
    bench: &Bench<'_>,
    section: &mut Section,
    database: &str,
    openai: &Settings,
    key: &str,
) -> Result<()> {
    let (mut healthy, mut answering) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let service = Real::start(bench, database, openai)?;
        service.wait_for("/health", key)?;
        healthy.push(service.began.elapsed().as_secs_f64() * 1000.0);
        service.wait_for("/api/v1/me", key)?;
        answering.push(service.began.elapsed().as_secs_f64() * 1000.0);
    }
    section.against(
        "from exec to the first answer of `/health`, ms",
        spread(&healthy, whole),
        "< 200",
        median(&healthy) < 200.0,
    );
    section.against(
        "from exec to the first answer of `GET /me`, ms",
        spread(&answering, whole),
        "< 200",
        median(&answering) < 200.0,
    );
    Ok(())
}

fn memory_under_load(
    bench: &Bench<'_>,
    section: &mut Section,
    database: &str,
    openai: &Settings,
    key: &str,
) -> Result<()> {
    let service = Real::start(bench, database, openai)?;
    service.wait_for("/api/v1/me", key)?;
    section.state("resident when started, MiB", format!("{:.1}", memory(service.id(), "VmRSS")?));
    for (name, target, body) in [("GET /me", "GET /api/v1/me", ""), ("POST /runs", "POST /api/v1/runs", RUN)]
    {
        let outcome = service.load(bench, key, target, body)?.spawn()?;
        ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
        let (now, most) = (memory(service.id(), "VmRSS")?, memory(service.id(), "VmHWM")?);
        let (own, file) = (memory(service.id(), "RssAnon")?, memory(service.id(), "RssFile")?);
        section.against(
            format!("resident under `{name}`, 64 connections: at most, MiB"),
            format!("{most:.1} (then {now:.1}: {own:.1} of its own, {file:.1} of mapped files)"),
            "< 64",
            most < 64.0,
        );
    }
    Ok(())
}

fn memory_with_model(bench: &Bench<'_>, section: &mut Section, database: &str, key: &str) -> Result<()> {
    if !bench.plan.model.is_file() {
        section.note(format!(
            "{} is not there: memory with the model was not measured.",
            bench.plan.model.display()
        ));
        return Ok(());
    }
    let size = std::fs::metadata(&bench.plan.model)?.len() as f64 / f64::from(1 << 20);
    let service =
        Real::start(bench, database, &[("SVC_MODEL_FILE", bench.plan.model.display().to_string())])?;
    service.wait_for("/api/v1/me", key)?;
    section.state(
        "with the embedded model: from exec to the first answer, ms",
        whole(service.began.elapsed().as_secs_f64() * 1000.0),
    );
    let mut answers = service.load(bench, key, "POST /api/v1/runs", RUN)?;
    (answers.connections, answers.requests) = (4, Some(8));
    let outcome = answers.spawn()?;
    ensure!(outcome.ok() == outcome.total(), "not every answer was 200: {:?}", outcome.statuses);
    service.load(bench, key, "GET /api/v1/me", "")?.spawn()?;
    let most = memory(service.id(), "VmHWM")?;
    section.against(
        "with the embedded model (8 runs, 4 at a time, then `GET /me`): at most, MiB",
        format!("{most:.0}"),
        &format!("< {:.0} (the file's {size:.0} + 200)", size + 200.0),
        most < size + 200.0,
    );
    Ok(())
}

const RUN: &str = r#"{"input":"Say hello."}"#;

/// Returns settings with a model server at this address for all tiers.
pub(super) fn model_at(address: &str) -> [(&'static str, String); 4] {
    [
        ("SVC_MODEL_FAST", "openai:stub".to_owned()),
        ("SVC_MODEL_BALANCED", "openai:stub".to_owned()),
        ("SVC_MODEL_ADVANCED", "openai:stub".to_owned()),
        ("SVC_OPENAI_BASE_URL", format!("http://{address}/v1")),
    ]
}

/// A running `svc serve`.
pub(super) struct Real {
    process: Process,
    /// The address on which it listens.
    pub(super) address: String,
    began: Instant,
}

impl Real {
    pub(super) fn start(bench: &Bench<'_>, database: &str, settings: &[(&str, String)]) -> Result<Self> {
        // Another program is unlikely to take the port in between.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let program = target()?.join("svc");
        let mut command = Command::new(&program);
        command
            .arg("serve")
            .env("SVC_DATABASE_URL", database)
            .env("SVC_DATA_DIR", bench.folder.path())
            // 32 zero bytes. With PostgreSQL, the service does not generate a key.
            .env("SVC_SECRET_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
            .env("SVC_LISTEN", &address)
            .env("SVC_LOG", "warn")
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let began = Instant::now();
        let process = command.spawn().with_context(|| format!("starting {}", program.display()))?;
        Ok(Self { process, address, began })
    }

    /// Returns the process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Repeats a request until the response is 200.
    pub(super) fn wait_for(&self, path: &str, key: &str) -> Result<()> {
        while self.began.elapsed() < Duration::from_secs(60) {
            if self.ask(path, key).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        bail!("{path} was not answered within a minute")
    }

    fn ask(&self, path: &str, key: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let address = &self.address;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn load(&self, bench: &Bench<'_>, key: &str, target: &str, body: &str) -> Result<load::Arguments> {
        Ok(load::Arguments {
            address: self.address.clone(),
            process: self.id(),
            target: target.to_owned(),
            file_bytes: None,
            body: body.to_owned(),
            keys: vec![key.to_owned()],
            connections: 64,
            seconds: bench.plan.seconds,
            spread: 1,
            contacts: 1,
            secret: None,
            warm: 0.5,
            requests: None,
            rate: None,
        })
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
