//! The workers of channels: whoever holds a channel's lease takes its callbacks apart, answers its contacts, sends what is
//! in its outbox, and reads its files. One worker per channel keeps the messages of a contact in order and its rates in one
//! place; another replica takes over when the lease ends.

mod answering;
mod callbacks;
mod delayed_events;
mod delivering;
mod due;
mod files;
mod offering;
mod outbox;
mod parts;
mod replies;
mod reply_state;
mod send;
mod settle;

use channels::ChannelRow;
use channels::work::{LEASE, Lease, RENEWAL, Rates, Work, WorkSignals};
use model::{ChannelId, Result};
pub use parts::WorkerParts;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::HeldLease;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often the channels are looked at for work that another process made.
const LOOK: Duration = Duration::from_millis(500);
/// How long a channel without work is kept.
const IDLE: Duration = Duration::from_secs(30);

/// The workers of all channels. Cheap to clone.
#[derive(Clone)]
pub struct Workers(Arc<Inner>);

struct Inner {
    parts: WorkerParts,
    /// The channels that this process works on, with the signals of their worker.
    active: Mutex<HashMap<ChannelId, Arc<WorkSignals>>>,
}

/// Workers that were started.
pub struct Working {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Working {
    /// Lets the workers end what they are at, for at most `patience`.
    pub async fn stop(self, patience: Duration) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!("messages that are being sent are left: whether they were sent is not known");
        }
    }
}

impl Workers {
    /// Workers that do nothing yet.
    #[must_use]
    pub fn new(parts: WorkerParts) -> Self {
        Self(Arc::new(Inner { parts, active: Mutex::default() }))
    }

    /// Begins to work, on this runtime.
    #[must_use]
    pub fn start(&self) -> Working {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (workers, stopping, spawner) = (self.clone(), stop.clone(), tasks.clone());
        tasks.spawn(async move { workers.supervise(&stopping, &spawner).await });
        Working { stop, tasks }
    }

    /// Does everything that is due by the database's clock, and waits for the answers of agents. For tests, which move the
    /// clock.
    ///
    /// # Errors
    /// When the database fails, or another process has the lease of a channel.
    pub async fn run_due(&self) -> Result<()> {
        for channel in self.0.parts.db.read(due::with_work).await? {
            let Some((row, lease)) = take(&self.0.parts, channel).await? else { continue };
            let worker = Worker::new(self.0.parts.clone(), row, lease);
            worker.run_due().await?;
            worker.lease.give_back().await?;
        }
        Ok(())
    }

    async fn supervise(&self, stop: &CancellationToken, tasks: &TaskTracker) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                wanted = self.0.parts.notifier.notified() => {
                    for (channel, work) in wanted {
                        self.attend(channel, Some(work), stop, tasks).await;
                    }
                }
                _ = looks.tick() => match self.0.parts.db.read(due::with_work).await {
                    Ok(channels) => {
                        for channel in channels {
                            self.attend(channel, None, stop, tasks).await;
                        }
                    }
                    Err(error) => tracing::error!(%error, "the channels could not be looked at"),
                },
            }
        }
    }

    /// Wakes the worker of a channel, or starts one if no other process has the channel. `None` wakes it for everything.
    async fn attend(
        &self,
        channel: ChannelId,
        work: Option<Work>,
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) {
        let active = self.active().get(&channel).cloned();
        if let Some(signals) = active {
            return work.map_or_else(|| signals.notify_all(), |work| signals.notify(work));
        }
        match take(&self.0.parts, channel).await {
            Ok(Some((row, lease))) => {
                let worker = Worker::new(self.0.parts.clone(), row, lease);
                self.active().insert(channel, worker.signals.clone());
                let (workers, stop) = (self.clone(), stop.clone());
                tasks.spawn(async move {
                    worker.work(&stop).await;
                    workers.active().remove(&channel);
                });
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%channel, %error, "a channel could not be taken"),
        }
    }

    fn active(&self) -> std::sync::MutexGuard<'_, HashMap<ChannelId, Arc<WorkSignals>>> {
        self.0.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker of one channel, while it holds the lease.
struct Worker {
    parts: WorkerParts,
    channel: ChannelRow,
    lease: Lease,
    rates: Arc<Mutex<Rates>>,
    signals: Arc<WorkSignals>,
}

impl Worker {
    fn new(parts: WorkerParts, channel: ChannelRow, lease: Lease) -> Self {
        let capabilities = parts.network.0.capabilities();
        let rates = Rates::new(channel.messages_per_second, capabilities.pair_interval, parts.db.now());
        Self { parts, channel, lease, rates: Arc::new(Mutex::new(rates)), signals: Arc::default() }
    }

    /// Works until there is nothing to do for a while, or the lease is lost.
    async fn work(&self, stop: &CancellationToken) {
        let done = CancellationToken::new();
        let rounds = async {
            tokio::join!(
                self.repeat(Work::Callbacks, &done, || self.callbacks()),
                self.send_all(&done),
                self.repeat(Work::Files, &done, || self.files()),
                self.repeat(Work::Events, &done, || self.publish_delayed()),
                self.answer(&done),
            );
        };
        tokio::select! {
            () = rounds => {}
            () = self.keep_lease(stop, &done) => {}
        }
        if let Err(error) = self.lease.give_back().await {
            tracing::warn!(channel = %self.channel.id, %error, "the lease of a channel was not given back");
        }
    }

    /// Renews the lease until the worker is to stop, has had nothing to do for a while, or has lost it. What is being done
    /// then is ended first, for as long as the lease holds.
    async fn keep_lease(&self, stop: &CancellationToken, done: &CancellationToken) {
        let began = tokio::time::Instant::now();
        let mut held = HeldLease::new(LEASE);
        loop {
            tokio::select! {
                () = stop.cancelled() => done.cancel(),
                () = tokio::time::sleep(RENEWAL) => {}
            }
            let is_idle = began.elapsed() > IDLE && matches!(self.has_work().await, Ok(false));
            if is_idle {
                done.cancel();
            }
            match held.renew(self.lease.renew()).await {
                true if !done.is_cancelled() => {}
                // Work that is being done is ended while the lease lasts.
                true => return held.until_lost(|| self.lease.renew()).await,
                false => return,
            }
        }
    }

    async fn has_work(&self) -> Result<bool> {
        let channel = self.channel.id;
        self.parts.db.read(move |read| due::has_work(read, channel)).await
    }

    /// Repeats a round while it finds something to do, and otherwise when there may be something.
    async fn repeat<F: Future<Output = Result<bool>>>(
        &self,
        work: Work,
        done: &CancellationToken,
        round: impl Fn() -> F,
    ) {
        while !done.is_cancelled() {
            match round().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::error!(channel = %self.channel.id, ?work, %error, "a round failed"),
            }
            tokio::select! {
                () = done.cancelled() => return,
                () = self.signals.notified(work) => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    async fn run_due(&self) -> Result<()> {
        loop {
            let mut did = self.callbacks().await?;
            did |= self.files().await?;
            did |= self.publish_delayed().await?;
            did |= self.answer_due().await?;
            did |= self.outbox().await?;
            if !did {
                return Ok(());
            }
        }
    }
}

/// Takes the lease of a channel. Messages that an earlier worker was handing to the network are then `unknown`.
async fn take(parts: &WorkerParts, channel: ChannelId) -> Result<Option<(ChannelRow, Lease)>> {
    let areas = parts.areas.clone();
    Lease::take(&parts.db, channel, move |tx, row| settle::forget_interrupted(tx, &areas, row)).await
}

/// Writes several down in one transaction, or, where that fails, each in its own.
///
/// # Errors
/// The first of those that fail alone too.
async fn together_or_each<T: Clone, F: Future<Output = Result<()>>>(
    all: &[T],
    write: impl Fn(Vec<T>) -> F,
) -> Result<()> {
    let mut result = write(all.to_vec()).await;
    if result.is_err() && all.len() > 1 {
        result = Ok(());
        for one in all {
            let written = write(vec![one.clone()]).await;
            result = result.and(written);
        }
    }
    result
}
