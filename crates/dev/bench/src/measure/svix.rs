//! Svix's server, the peer for deliveries, with the same PostgreSQL and Redis, the same receiver, and messages of the
//! same size.

use super::postgres;
use crate::child::{Child, number, text};
use crate::http::Server;
use crate::load::{Arguments, Outcome};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

/// The number of its Redis database, which is emptied.
const REDIS_DATABASE: u8 = 9;
/// A message of about the size of an item's event.
const MESSAGE: &str = r#"{"eventType":"item.created","payload":{"type":"item.created","livemode":true,"data":{"collection_id":1,"item":{"id":123456,"object":"item","collection_id":1,"data":{"name":"A thing"},"version":1,"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}}}}"#;
/// The number of connections that send messages.
const CONNECTIONS: usize = 64;

/// The program and databases of Svix, and the token for its API.
pub struct Svix {
    program: PathBuf,
    database: String,
    redis: String,
    token: String,
}

impl Svix {
    /// Prepares the program of `SVIX_SERVER` on an empty database. Returns `None` if that is not set or there are no
    /// servers for it.
    pub fn prepare() -> Result<Option<Self>> {
        let program = std::env::var_os("SVIX_SERVER").map(PathBuf::from).filter(|path| path.is_file());
        let (Some(program), Ok(redis)) = (program, std::env::var("SVC_TEST_REDIS_URL")) else {
            return Ok(None);
        };
        let Some(database) = postgres("svc_bench_svix")? else { return Ok(None) };
        empty(&redis)?;
        let redis = format!("{}/{REDIS_DATABASE}", redis.trim_end_matches('/'));
        let mut svix = Self { program, database, redis, token: String::new() };
        let migrated = svix.command(0).arg("migrate").stdout(Stdio::null()).status()?;
        ensure!(migrated.success(), "Svix could not set up its database");
        let made = svix.command(0).args(["jwt", "generate"]).stdout(Stdio::piped()).output()?;
        let printed = String::from_utf8(made.stdout)?;
        svix.token = printed.split_whitespace().last().context("Svix made no token")?.to_owned();
        Ok(Some(svix))
    }

    fn command(&self, port: u16) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("SVIX_DB_DSN", &self.database)
            .env("SVIX_REDIS_DSN", &self.redis)
            .env("SVIX_QUEUE_TYPE", "redis")
            .env("SVIX_CACHE_TYPE", "memory")
            .env("SVIX_JWT_SECRET", "x1234567890abcdef1234567890abcdef")
            .env("SVIX_WHITELIST_SUBNETS", r#"["127.0.0.0/8"]"#)
            .env("SVIX_LISTEN_ADDRESS", format!("127.0.0.1:{port}"))
            .env("SVIX_LOG_LEVEL", "info")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts the server. `worker` says whether it delivers.
    fn start(&self, worker: bool) -> Result<Running> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = self.command(port).env("SVIX_WORKER_ENABLED", worker.to_string()).spawn()?;
        let server = Server { address: format!("127.0.0.1:{port}"), token: self.token.clone() };
        let running = Running { process, server };
        let deadline = Instant::now() + Duration::from_secs(60);
        while running.server.exchange("GET", "/api/v1/health/", "").is_err() {
            ensure!(Instant::now() < deadline, "Svix does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }
}

/// Measures deliveries per second to this many endpoints, for messages that waited until the worker started.
pub fn drain(svix: &Svix, messages: usize, endpoints: usize) -> Result<f64> {
    let mut receiver = Child::start(&["serve-receiver"])?;
    let taking = svix.start(false)?;
    let target = taking.subscribe(&receiver, endpoints)?;
    let sent = taking.load(&target, None, Some(u64::try_from(messages)?))?;
    ensure!(sent.statuses.keys().all(|status| *status == 202), "Svix answered {:?}", sent.statuses);
    drop(taking);
    let _delivering = svix.start(true)?;
    let total = i64::try_from(messages * endpoints)?;
    let deadline = Instant::now() + Duration::from_secs(300);
    while number(&receiver.ask("count")?, "count")? < total {
        ensure!(Instant::now() < deadline, "Svix did not deliver everything in five minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
    let came = receiver.ask("count")?;
    Ok(total as f64 * 1e6 / (number(&came, "last")? - number(&came, "first")?) as f64)
}

/// Measures the messages that it accepts per second, and its deliveries per second to one endpoint meanwhile.
pub fn flow(svix: &Svix, seconds: f64) -> Result<(f64, f64)> {
    let mut receiver = Child::start(&["serve-receiver"])?;
    let running = svix.start(true)?;
    let target = running.subscribe(&receiver, 1)?;
    let began = Instant::now();
    let sent = running.load(&target, Some(seconds), None)?;
    let came = number(&receiver.ask("count")?, "count")?;
    Ok((sent.rate(), came as f64 / began.elapsed().as_secs_f64()))
}

/// A running server. It is killed when dropped.
struct Running {
    process: Process,
    server: Server,
}

impl Running {
    /// Creates an application with this many endpoints. Returns the target for its messages.
    fn subscribe(&self, receiver: &Child, endpoints: usize) -> Result<String> {
        let made = self.server.ask("POST", "/api/v1/app/", Some(&json!({ "name": "Bench" })))?;
        let app = format!("/api/v1/app/{}", text(&made, "id")?);
        let address = text(&receiver.hello, "address")?;
        for place in 0..endpoints {
            let body = json!({ "url": format!("http://{address}/{place}"), "version": 1 });
            self.server.ask("POST", &format!("{app}/endpoint/"), Some(&body))?;
        }
        Ok(format!("POST {app}/msg/"))
    }

    fn load(&self, target: &str, seconds: Option<f64>, requests: Option<u64>) -> Result<Outcome> {
        let load = Arguments {
            address: self.server.address.clone(),
            process: self.process.id(),
            target: target.to_owned(),
            file_bytes: None,
            body: MESSAGE.to_owned(),
            keys: vec![self.server.token.clone()],
            connections: CONNECTIONS,
            seconds: seconds.unwrap_or(0.0),
            spread: 1,
            contacts: 1,
            secret: None,
            warm: 0.5,
            requests,
            rate: None,
        };
        load.spawn()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Empties the Redis database.
fn empty(redis: &str) -> Result<()> {
    let address = redis.trim_start_matches("redis://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).with_context(|| format!("no Redis at {address}"))?;
    write!(stream, "SELECT {REDIS_DATABASE}\r\nFLUSHDB\r\nQUIT\r\n")?;
    stream.read_to_end(&mut Vec::new())?;
    Ok(())
}
