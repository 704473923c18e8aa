//! The program's log on standard error.
//!
//! A log may lose lines; it may not stop what it tells of. So whoever logs hands its line to a thread, and neither waits
//! for the reader of standard error nor hears of it. `tracing-appender` does the same, but complains about a stuck
//! reader on the very pipe that is stuck, and would hang there.

use anyhow::Context;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// As many lines may wait for the reader; further ones are lost.
const WAITING: usize = 4096;
/// How long the end of the program may wait for the reader.
const PATIENCE: Duration = Duration::from_secs(1);

enum Message {
    Line(Vec<u8>),
    /// All lines before it are written once its sender is dropped.
    Flush(Sender<()>),
}

/// Takes lines for standard error. Never waits, and never fails.
#[derive(Clone)]
pub(crate) struct Log {
    messages: Sender<Message>,
    /// Lines that nobody will read.
    lost: Arc<AtomicU64>,
}

impl Log {
    /// Starts the thread that writes.
    pub(crate) fn start() -> io::Result<Self> {
        let (messages, queue) = bounded(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let log = Self { messages, lost: lost.clone() };
        std::thread::Builder::new().name("log".to_owned()).spawn(move || write_all(&queue, &lost))?;
        Ok(log)
    }

    /// Makes this the log of the whole program, for what `filter` lets pass: readable on a terminal, JSON otherwise.
    pub(crate) fn install(&self, filter: &str) -> anyhow::Result<()> {
        // Of every caller that speaks no HTTP the dispatcher says, at level ERROR, what the answer to it says too.
        let filter = format!("actix_http::h1::dispatcher=off,{filter}");
        let filter = tracing_subscriber::EnvFilter::try_new(filter).context("SVC_LOG cannot be read")?;
        let log = self.clone();
        let builder = tracing_subscriber::fmt()
            .with_env_filter(filter)
            // Its own complaints would go to standard error directly.
            .log_internal_errors(false)
            .with_writer(move || log.clone());
        if stderr().is_terminal() {
            builder.init();
        } else {
            builder.json().init();
        }
        // A panic is a line of the log like any other fault.
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string);
            tracing::error!(place, said = panic.payload_as_str(), "a panic");
        }));
        Ok(())
    }

    /// A line as it is, for the person who typed the command.
    pub(crate) fn line(&self, text: &str) {
        self.take(format!("{text}\n").into_bytes());
    }

    /// Waits until all lines so far are written, but not for a reader that does not read.
    pub(crate) fn flush(&self) {
        let deadline = Instant::now() + PATIENCE;
        self.drain(deadline);
        if report_lost(&self.lost) {
            self.drain(deadline);
        }
    }

    fn drain(&self, deadline: Instant) {
        let (written, waiting) = bounded(0);
        if self.messages.send_deadline(Message::Flush(written), deadline).is_ok() {
            // Either way there is nothing left to do: it is written, or never will be.
            let _ = waiting.recv_deadline(deadline);
        }
    }

    fn take(&self, line: Vec<u8>) {
        if self.messages.try_send(Message::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// `tracing` writes each event with one call.
impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.take(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(queue: &Receiver<Message>, lost: &AtomicU64) {
    let mut out = stderr();
    for message in queue {
        match message {
            // A named pipe may find another reader, so the next line is tried again.
            Message::Line(line) if out.write_all(&line).is_err() => {
                lost.fetch_add(1, Ordering::Relaxed);
            }
            Message::Line(_) if queue.is_empty() => {
                report_lost(lost);
            }
            Message::Line(_) => {}
            Message::Flush(waiting) => drop(waiting),
        }
    }
}

/// Reports what the reader, who has caught up, missed. `false` where that is nothing.
fn report_lost(lost: &AtomicU64) -> bool {
    let lines = lost.swap(0, Ordering::Relaxed);
    if lines > 0 {
        tracing::warn!(lines, "lines of the log were lost");
    }
    lines > 0
}

/// For whether it is a terminal, for the log's thread, and for commands that end before anybody could mind.
#[expect(clippy::disallowed_methods, reason = "the one place that the others ask")]
pub(crate) fn stderr() -> io::Stderr {
    io::stderr()
}
