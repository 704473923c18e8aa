//! The load generator. Each connection sends the next request when the previous one is answered, or at a fixed rate.
//! It uses one thread and no HTTP library, to cost little compared to the server that it measures.

use crate::machine;
use crate::measure::search;
use anyhow::{Context, Result, bail};
use ring::hmac;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::process::Command;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(clap::Args, Clone)]
pub struct Arguments {
    /// The address of the server.
    #[arg(long)]
    pub address: String,
    /// The process id of the server.
    #[arg(long)]
    pub process: u32,
    /// Method and path, such as `GET /api/v1/me`. Placeholders here and in the body are replaced for each request:
    /// `{n}` is a random number from 1 to `spread`, `{n15}` the same in 15 digits, `{m}` another one up to a million,
    /// `{c8}` one of `contacts` in eight digits, `{u8}` eight digits that no other request has, `{now}` the seconds
    /// since 1970, and `{w}` and `{v}` two words of the searched texts.
    #[arg(long)]
    pub target: String,
    /// The body, if the requests have one.
    #[arg(long, default_value = "")]
    pub body: String,
    /// Send a form with a file of this many bytes instead of a body. Each file is different.
    #[arg(long)]
    pub file_bytes: Option<usize>,
    /// The greatest random number.
    #[arg(long, default_value_t = 1)]
    pub spread: u64,
    /// The number of contacts to choose from.
    #[arg(long, default_value_t = 1)]
    pub contacts: u64,
    /// API keys, distributed over the connections.
    #[arg(long, value_delimiter = ',')]
    pub keys: Vec<String>,
    /// The secret with which the chat network signs bodies.
    #[arg(long)]
    pub secret: Option<String>,
    /// The number of connections.
    #[arg(long)]
    pub connections: usize,
    /// The measured time in seconds, after `warm` seconds that are not measured.
    #[arg(long, default_value_t = 0.0)]
    pub seconds: f64,
    #[arg(long, default_value_t = 0.5)]
    pub warm: f64,
    /// Send this many requests instead of measuring a time. All of them are measured.
    #[arg(long)]
    pub requests: Option<u64>,
    /// Requests per second over all connections. Each is sent at its time, whether or not requests of other
    /// connections are answered, and latency counts from that time. Without a rate, a connection sends when its last
    /// request is answered.
    #[arg(long)]
    pub rate: Option<f64>,
}

/// The result of a load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Responses in the measured time.
    pub answers: u64,
    /// The measured time in seconds.
    pub seconds: f64,
    /// All responses by status, including those outside of the measured time.
    pub statuses: BTreeMap<u16, u64>,
    /// The latency in milliseconds.
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
    /// The processor time of the measured time, in seconds.
    pub server_cpu: f64,
    pub client_cpu: f64,
}

impl Outcome {
    /// Returns the requests per second.
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.seconds
    }

    /// Returns the processor time of the server per request, in microseconds.
    pub fn server_micros(&self) -> f64 {
        self.server_cpu * 1e6 / self.answers as f64
    }

    /// Returns the number of all answered requests.
    pub fn total(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Returns the number of responses with the status 200.
    pub fn ok(&self) -> u64 {
        self.statuses.get(&200).copied().unwrap_or(0)
    }

    /// Returns the number of responses with the status 200 or 201.
    pub fn done(&self) -> u64 {
        self.ok() + self.statuses.get(&201).copied().unwrap_or(0)
    }
}

impl Arguments {
    /// Runs the load in a child process.
    pub fn spawn(&self) -> Result<Outcome> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["load", "--address", &self.address, "--target", &self.target, "--body", &self.body])
            .args(["--keys", &self.keys.join(","), "--process", &self.process.to_string()])
            .args(["--connections", &self.connections.to_string(), "--seconds", &self.seconds.to_string()])
            .args(["--warm", &self.warm.to_string(), "--spread", &self.spread.to_string()])
            .args(["--contacts", &self.contacts.to_string()]);
        if let Some(requests) = self.requests {
            command.args(["--requests", &requests.to_string()]);
        }
        if let Some(secret) = &self.secret {
            command.args(["--secret", secret]);
        }
        if let Some(bytes) = self.file_bytes {
            command.args(["--file-bytes", &bytes.to_string()]);
        }
        if let Some(rate) = self.rate {
            command.args(["--rate", &rate.to_string()]);
        }
        let output = command.stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("the load generator failed: {}", output.status);
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Builds the request of a connection. `drawn` and `other` are random numbers. A request with a file ends before
    /// the part that all files share.
    fn request(&self, connection: usize, drawn: u64, other: u64) -> Vec<u8> {
        let with_number = |text: &str| {
            text.replace("{n15}", &format!("{drawn:015}"))
                .replace("{n}", &drawn.to_string())
                .replace("{m}", &other.to_string())
                .replace("{c8}", &format!("{:08}", 10_000_000 + other % self.contacts))
                .replace("{u8}", &format!("{:08}", unique() % 100_000_000))
                .replace("{w}", &search::word(other))
                .replace("{v}", &search::word(other / search::VOCABULARY))
                .replace("{now}", &(machine::wall_micros() / 1_000_000).to_string())
        };
        let (target, body) = (with_number(&self.target), with_number(&self.body));
        let mut text = format!("{target} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if let Some(key) = self.keys.get(connection % self.keys.len().max(1)) {
            text += &format!("authorization: Bearer {key}\r\n");
        }
        if let Some(secret) = &self.secret {
            text += &signature(secret, &body);
        }
        if let Some(bytes) = self.file_bytes {
            let form = form_begin();
            let length = form.len() + bytes + FORM_END.len();
            text += &format!(
                "content-type: multipart/form-data; boundary={BOUNDARY}\r\ncontent-length: {length}\r\n\r\n"
            );
            text += &form;
            text += &format!("{:0OWN$}", unique());
            return text.into_bytes();
        }
        if !body.is_empty() {
            text += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        }
        text += "\r\n";
        text += &body;
        text.into_bytes()
    }
}

/// Returns a number that is unique in this process and across processes of the last hours: tenths of a millisecond
/// since 1970.
fn unique() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = u64::try_from(machine::wall_micros() / 100).unwrap_or_default();
    let next = |last: u64| Some((last + 1).max(now));
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_or(now, |last| (last + 1).max(now))
}

const BOUNDARY: &str = "bench-1c9f5a7be2d04836";
const FORM_END: &str = "\r\n--bench-1c9f5a7be2d04836--\r\n";

/// The number of digits at the start of each file that make its content unique.
const OWN: usize = 20;

fn form_begin() -> String {
    format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"bench.bin\"\r\n\
         content-type: application/octet-stream\r\n\r\n"
    )
}

/// Builds the part that forms with files of this size share: all but the first digits of the file, and the end of the
/// form.
fn form_rest(bytes: usize) -> Vec<u8> {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let mut rest = Vec::with_capacity(bytes + FORM_END.len());
    rest.resize_with(bytes.saturating_sub(OWN), || u8::try_from(draw.next(256) - 1).unwrap_or_default());
    rest.extend_from_slice(FORM_END.as_bytes());
    rest
}

/// Builds the header with which the chat network signs a callback.
fn signature(secret: &str, body: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x-hub-signature-256: sha256={hex}\r\n")
}

/// A generator of pseudo-random numbers (xorshift), the same in every run.
struct Draw(u64);

impl Draw {
    fn next(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most.max(1) + 1
    }
}

/// The times at which a connection sends. Together, the connections keep the rate.
struct Pace {
    first: Instant,
    seconds: f64,
}

impl Pace {
    fn new(rate: f64, number: usize, connections: usize) -> Self {
        let first = Instant::now() + Duration::from_secs_f64(number as f64 / rate);
        Self { first, seconds: connections as f64 / rate }
    }

    fn at(&self, turn: u32) -> Instant {
        self.first + Duration::from_secs_f64(self.seconds * f64::from(turn))
    }
}

/// The state that connections share.
#[derive(Default)]
struct Shared {
    measuring: Cell<bool>,
    stop: Cell<bool>,
    /// The shared end of every request.
    rest: Vec<u8>,
    left: Cell<u64>,
    statuses: RefCell<BTreeMap<u16, u64>>,
    micros: RefCell<Vec<u32>>,
}

pub async fn run(arguments: Arguments) -> Result<()> {
    let rest = arguments.file_bytes.map(form_rest).unwrap_or_default();
    let shared = Rc::new(Shared { rest, ..Shared::default() });
    shared.left.set(arguments.requests.unwrap_or(u64::MAX));
    shared.measuring.set(arguments.requests.is_some());
    let mut connections = Vec::new();
    for number in 0..arguments.connections {
        let stream = TcpStream::connect(&arguments.address).await?;
        stream.set_nodelay(true)?;
        connections.push((stream, number));
    }
    let mut began = now(arguments.process)?;
    let arguments = Rc::new(arguments);
    let tasks: Vec<_> = connections
        .into_iter()
        .map(|(stream, number)| {
            tokio::task::spawn_local(converse(stream, arguments.clone(), number, shared.clone()))
        })
        .collect();
    let mut ended = None;
    if arguments.requests.is_none() {
        tokio::time::sleep(Duration::from_secs_f64(arguments.warm)).await;
        began = now(arguments.process)?;
        shared.measuring.set(true);
        tokio::time::sleep(Duration::from_secs_f64(arguments.seconds)).await;
        shared.measuring.set(false);
        shared.stop.set(true);
        ended = Some(now(arguments.process)?);
    }
    for task in tasks {
        task.await??;
    }
    let ended = match ended {
        Some(ended) => ended,
        None => now(arguments.process)?,
    };
    let mut micros = shared.micros.take();
    micros.sort_unstable();
    let at = |part: f64| f64::from(machine::quantile(&micros, part)) / 1000.0;
    let outcome = Outcome {
        answers: micros.len() as u64,
        seconds: (ended.0 - began.0).as_secs_f64(),
        statuses: shared.statuses.take(),
        p50: at(0.5),
        p99: at(0.99),
        max: at(1.0),
        server_cpu: ended.1 - began.1,
        client_cpu: ended.2 - began.2,
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

fn now(server: u32) -> Result<(Instant, f64, f64)> {
    Ok((Instant::now(), machine::processor_seconds(server)?, machine::processor_seconds(std::process::id())?))
}

async fn converse(
    mut stream: TcpStream,
    arguments: Rc<Arguments>,
    number: usize,
    shared: Rc<Shared>,
) -> Result<()> {
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1) << 20);
    let varies = ["{n", "{m}", "{c8}", "{u8}", "{w}", "{v}"]
        .iter()
        .any(|drawn| arguments.target.contains(drawn) || arguments.body.contains(drawn));
    let varies = varies || arguments.file_bytes.is_some();
    let mut request = arguments.request(number, 1, 1);
    let pace = arguments.rate.map(|rate| Pace::new(rate, number, arguments.connections));
    let mut turn = 0;
    while !shared.stop.get() && shared.left.get() > 0 {
        let due = pace.as_ref().map(|pace| pace.at(turn));
        if let Some(due) = due {
            tokio::time::sleep_until(due.into()).await;
            turn += 1;
            if shared.stop.get() {
                break;
            }
        }
        shared.left.set(shared.left.get() - 1);
        if varies {
            request = arguments.request(number, draw.next(arguments.spread), draw.next(1_000_000));
        }
        let began = due.unwrap_or_else(Instant::now);
        stream.write_all(&request).await?;
        stream.write_all(&shared.rest).await?;
        let status = answer(&mut stream, &mut buffer).await?;
        *shared.statuses.borrow_mut().entry(status).or_insert(0) += 1;
        if shared.measuring.get() {
            shared.micros.borrow_mut().push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
    }
    Ok(())
}

async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<u16> {
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        if let Some(head) = head_length(buffer) {
            let head_bytes = buffer.get(..head).unwrap_or_default();
            let status = head_bytes.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
            let status = status.and_then(|digits| digits.parse().ok()).context("no status")?;
            if !is_chunked(head_bytes) {
                let length = head + content_length(head_bytes);
                skip(stream, buffer, length.saturating_sub(buffer.len())).await?;
                return Ok(status);
            }
            // JSON contains no raw line breaks, so this sequence cannot occur within a chunk.
            if buffer.ends_with(b"0\r\n\r\n") {
                return Ok(status);
            }
        }
    }
}

/// Receives this many bytes and discards them.
async fn skip(stream: &mut TcpStream, buffer: &mut Vec<u8>, mut left: usize) -> Result<()> {
    while left > 0 {
        buffer.clear();
        buffer.reserve(left.min(256 * 1024));
        let read = stream.read_buf(buffer).await?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        left = left.saturating_sub(read);
    }
    Ok(())
}

/// Returns whether a head announces a chunked body.
pub fn is_chunked(head: &[u8]) -> bool {
    head.windows(7).any(|window| window.eq_ignore_ascii_case(b"chunked"))
}

/// Returns the length of a message's head, including the empty line after it.
pub fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        from += bytes.get(from..)?.iter().position(|byte| *byte == b'\r')?;
        if bytes.get(from..)?.starts_with(b"\r\n\r\n") {
            return Some(from + 4);
        }
        from += 1;
    }
}

/// Returns the length of the body that a head announces.
pub fn content_length(head: &[u8]) -> usize {
    const NAME: &[u8] = b"content-length:";
    let line = head
        .split(|byte| *byte == b'\n')
        .find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)));
    let digits = line.and_then(|line| std::str::from_utf8(line.get(NAME.len()..)?).ok());
    digits.and_then(|digits| digits.trim().parse().ok()).unwrap_or(0)
}
