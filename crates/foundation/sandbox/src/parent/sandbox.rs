//! The sandbox: what the service calls.

use super::conversation::{self, End, Transcript};
use super::pool::Pool;
use super::shares::Shares;
use super::worker::{Worker, call_message, program_message};
use super::zygote::Zygote;
use crate::call::{BadValue, Call, Effect, Error, Failure, Key, Outcome, Program, Protection};
use crate::host::{Host, NoHost};
use crate::json;
use crate::settings::{Limits, Settings};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// The deadline of a check: the top level of a module is run, but no function.
const CHECK: Duration = Duration::from_secs(2);
/// How long the end of a worker may precede the news that its zygote ended.
const NEWS: Duration = Duration::from_millis(500);

/// Runs programs in processes of their own. Clones share everything.
///
/// Nothing is started before the first call. When the last clone is dropped, all processes end.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    zygote: Mutex<Option<Arc<Zygote>>>,
    pool: Pool,
    shares: Arc<Shares>,
    sweeping: AtomicBool,
    /// What the system holds workers with.
    protection: OnceLock<Protection>,
    zygotes: AtomicU64,
    workers: AtomicU64,
    calls: AtomicU64,
}

/// Counts of a sandbox, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Calls that run.
    pub running: usize,
    /// Calls that wait for their turn.
    pub waiting: usize,
    /// Workers that wait for a call.
    pub idle: usize,
    /// Zygotes that were started.
    pub zygotes: u64,
    /// Workers that were forked.
    pub workers: u64,
    /// Calls that were begun.
    pub calls: u64,
    /// What the system holds workers with; `None` before the first call.
    pub protection: Option<Protection>,
}

impl Sandbox {
    /// A sandbox with these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Inner {
            zygote: Mutex::new(None),
            pool: Pool::default(),
            shares: Shares::new(settings.calls, settings.workspace_calls),
            sweeping: AtomicBool::new(false),
            protection: OnceLock::new(),
            zygotes: AtomicU64::new(0),
            workers: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            settings,
        }))
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Counts, for metrics.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (running, waiting) = self.0.shares.counts();
        Stats {
            running,
            waiting,
            idle: self.0.pool.count(),
            zygotes: self.0.zygotes.load(Ordering::Relaxed),
            workers: self.0.workers.load(Ordering::Relaxed),
            calls: self.0.calls.load(Ordering::Relaxed),
            protection: self.0.protection.get().copied(),
        }
    }

    /// What the system holds workers with. Starts the zygote if there is none.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn protection(&self) -> Result<Protection, Error> {
        Ok(self.0.zygote().await?.protection)
    }

    /// The zygote's process, if there is one: for tests that kill it.
    #[doc(hidden)]
    pub async fn zygote_process(&self) -> Option<u32> {
        self.0.zygote.lock().await.as_ref().map(|zygote| zygote.process())
    }

    /// Compiles a program and runs its top level, without calling its function.
    ///
    /// # Errors
    /// Those of [`Sandbox::call`]. What is wrong with the program is the inner result.
    pub async fn compile(&self, workspace: &str, program: &Program) -> Result<Result<(), Failure>, Error> {
        let key = Key { workspace: workspace.to_owned(), version: String::new() };
        let call = Call { strict: true, deadline: Some(CHECK), livemode: false, ..Call::new("null") };
        let outcome = self.run(&key, program, &call, true, &NoHost).await?;
        Ok(outcome.result.map(|_| ()))
    }

    /// Calls a program.
    ///
    /// All calls with one key must have one program: then workers are used again.
    ///
    /// # Errors
    /// [`Error`]: the call was not made, or nobody knows its end. A fault of the program is part of the [`Outcome`].
    pub async fn call(
        &self,
        key: &Key,
        program: &Program,
        call: &Call,
        host: &dyn Host,
    ) -> Result<Outcome, Error> {
        self.run(key, program, call, false, host).await
    }

    async fn run(
        &self,
        key: &Key,
        program: &Program,
        call: &Call,
        check: bool,
        host: &dyn Host,
    ) -> Result<Outcome, Error> {
        let Settings { limits, patience, off, .. } = &self.0.settings;
        if *off {
            return Err(Error::Off);
        }
        self.0.admit(program, call)?;
        let deadline = call.deadline.map_or(limits.deadline, |deadline| deadline.min(limits.deadline));
        let message = call_message(call, check, deadline)
            .ok_or(Error::Given { what: "input", why: BadValue::NotJson })?;
        let _place = self.0.shares.take(&key.workspace, *patience).await.ok_or(Error::Busy)?;
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        let limits = Limits {
            memory: call.memory.map_or(limits.memory, |memory| memory.min(limits.memory)),
            ..*limits
        };
        let attempt =
            Attempt { inner: &self.0, key, program, call, message: &message, deadline, limits, host };
        match attempt.make().await {
            Made::Outcome(outcome) => Ok(outcome),
            Made::Failed(error) => Err(error),
            // Once more, with another process.
            Made::Lost(_) => match attempt.make().await {
                Made::Outcome(outcome) | Made::Lost(Some(outcome)) => Ok(outcome),
                Made::Failed(error) => Err(error),
                Made::Lost(None) => Err(Error::Interrupted),
            },
        }
    }
}

impl Inner {
    /// Refuses what a program must not get.
    fn admit(&self, program: &Program, call: &Call) -> Result<(), Error> {
        let limits = &self.settings.limits;
        let refuse = |what| move |why| Error::Given { what, why };
        if program.0.len() > limits.code {
            return Err(refuse("code")(BadValue::TooLarge(limits.code)));
        }
        let given = [
            ("input", Some(&call.input)),
            ("vars", Some(&call.vars)),
            ("contact", call.contact.as_ref()),
            ("run", call.run.as_ref()),
        ];
        for (what, value) in given {
            if let Some(value) = value {
                json::check(value, limits.input, limits.depth).map_err(refuse(what))?;
            }
        }
        Ok(())
    }

    /// The zygote, started if there is none or if it has ended.
    async fn zygote(&self) -> Result<Arc<Zygote>, Error> {
        let mut zygote = self.zygote.lock().await;
        if let Some(running) = zygote.as_ref().filter(|running| !running.is_dead()) {
            return Ok(Arc::clone(running));
        }
        let started = Zygote::start(&self.settings).await?;
        self.zygotes.fetch_add(1, Ordering::Relaxed);
        // The system and the settings stay the same, so each zygote has the same.
        let _ = self.protection.set(started.protection);
        *zygote = Some(Arc::clone(&started));
        Ok(started)
    }

    /// A new worker. A zygote that cannot fork is replaced once.
    async fn fork(&self, program: &Program, memory: usize) -> Result<Worker, Error> {
        let zygote = self.zygote().await?;
        if self.settings.required && !zygote.protection.is_complete() {
            return Err(Error::Unprotected(zygote.protection));
        }
        let worker = match Worker::fork(&zygote, program, memory).await {
            Ok(worker) => worker,
            Err(_) => {
                let mut current = self.zygote.lock().await;
                if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &zygote)) {
                    *current = None;
                }
                drop((current, zygote));
                Worker::fork(&self.zygote().await?, program, memory).await?
            }
        };
        self.workers.fetch_add(1, Ordering::Relaxed);
        Ok(worker)
    }

    /// Keeps a worker for the next call with `key`, and sees to it that it ends when there is none.
    fn keep(self: &Arc<Self>, key: &Key, worker: Worker) {
        self.pool.put(key, worker, self.settings.idle_workers);
        if !self.sweeping.swap(true, Ordering::AcqRel) {
            let (inner, idle) = (Arc::downgrade(self), self.settings.idle);
            tokio::spawn(sweep(inner, idle));
        }
    }
}

/// Ends idle workers until there are none.
async fn sweep(inner: Weak<Inner>, idle: Duration) {
    loop {
        tokio::time::sleep(idle / 4).await;
        let Some(inner) = inner.upgrade() else { return };
        if inner.pool.sweep(idle) > 0 {
            continue;
        }
        inner.sweeping.store(false, Ordering::Release);
        // One may have come before the flag was down; then nobody else sweeps.
        if inner.pool.count() == 0 || inner.sweeping.swap(true, Ordering::AcqRel) {
            return;
        }
    }
}

/// One attempt at a call.
struct Attempt<'a> {
    inner: &'a Arc<Inner>,
    key: &'a Key,
    program: &'a Program,
    call: &'a Call,
    message: &'a [u8],
    deadline: Duration,
    limits: Limits,
    host: &'a dyn Host,
}

/// What came of an attempt.
enum Made {
    /// The call's outcome.
    Outcome(Outcome),
    /// Nothing was run.
    Failed(Error),
    /// The process was lost without the program's fault, and the call may be made once more; or with a crash as its outcome.
    Lost(Option<Outcome>),
}

impl Attempt<'_> {
    async fn make(&self) -> Made {
        let limits = &self.limits;
        let started = Instant::now();
        let reused =
            if self.is_strict() { None } else { self.inner.pool.take(self.key, self.program, limits.memory) };
        let is_reused = reused.is_some();
        let worker = match reused {
            Some(worker) => worker,
            None => match self.inner.fork(self.program, limits.memory).await {
                Ok(worker) => worker,
                Err(error) => return Made::Failed(error),
            },
        };
        let mut outgoing = if is_reused { Vec::new() } else { program_message(self.program, limits) };
        outgoing.extend(self.message);
        let mut transcript = Transcript::default();
        let end = match worker.socket().and_then(UnixStream::from_std) {
            Ok(mut socket) => {
                let talk = conversation::talk(&mut socket, outgoing, limits, self.host, &mut transcript);
                tokio::time::timeout(self.deadline + limits.grace, talk).await
            }
            Err(error) => return Made::Failed(Error::Unavailable(error.to_string())),
        };
        let duration = started.elapsed();
        let result = match end {
            Ok(End::Told(result)) => {
                self.retire_or_keep(worker, &result);
                result
            }
            // The worker is killed when it is dropped.
            Ok(End::Hostile) => Err(Failure::Protocol),
            Err(_) => Err(Failure::Timeout),
            Ok(End::Lost) => return self.lost(worker, is_reused, transcript, duration).await,
        };
        Made::Outcome(outcome(result, transcript, duration))
    }

    fn is_strict(&self) -> bool {
        self.call.strict || self.inner.settings.calls_per_worker <= 1
    }

    /// Keeps a worker after a clean end, while it has calls left.
    fn retire_or_keep(&self, mut worker: Worker, result: &Result<String, Failure>) {
        worker.served += 1;
        let is_clean = !matches!(result, Err(Failure::Timeout | Failure::Memory | Failure::Stack));
        if is_clean && !self.is_strict() && worker.served < self.inner.settings.calls_per_worker {
            self.inner.keep(self.key, worker);
        }
    }

    /// A worker ended in the middle of a call.
    async fn lost(
        &self,
        worker: Worker,
        is_reused: bool,
        transcript: Transcript,
        duration: Duration,
    ) -> Made {
        let from_outside = worker.zygote.dies_within(NEWS).await;
        // What a program does to the outside it does through the host: without a host call it did nothing.
        let is_harmless = transcript.host_calls == 0 || self.call.effect == Effect::Read;
        if is_harmless && (from_outside || is_reused) {
            let crash = (!from_outside).then(|| outcome(Err(Failure::Crashed), transcript, duration));
            return Made::Lost(crash);
        }
        if from_outside {
            return Made::Failed(Error::Interrupted);
        }
        Made::Outcome(outcome(Err(Failure::Crashed), transcript, duration))
    }
}

fn outcome(result: Result<String, Failure>, transcript: Transcript, duration: Duration) -> Outcome {
    Outcome {
        result,
        logs: transcript.logs,
        logs_truncated: transcript.logs_truncated,
        duration,
        peak_memory: transcript.peak_memory,
        host_calls: transcript.host_calls,
    }
}
