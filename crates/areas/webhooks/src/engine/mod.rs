//! Delivery engine: every process runs one, and they share the endpoints by leases.
//!
//! One task holds what is ours in memory and takes turns ([`turn`](mod@turn)). While one is under way it sends what is loaded, up to
//! its limits, and collects what comes of it for the next. The transactions of turns thus carry many deliveries when there
//! are many.
//!
//! Fairness: endpoints are claimed by how long they have waited since they were last served; wires and loaded deliveries of
//! a workspace are bounded; of an endpoint as many are loaded ahead as it has answered; and while others wait, one is given
//! back after a slice of its backlog.

mod load;
mod metrics;
mod rows;
mod settle;
mod state;
mod turn;

pub(crate) use metrics::OPEN_DELIVERIES;
pub(crate) use rows::{Finished, Verdict};
pub(crate) use settle::keep_attempt;
pub(crate) use state::Parts;

use crate::closing;
use crate::sequencer::Sequencer;
use futures::FutureExt;
use futures::future::{Fuse, FusedFuture};
use metrics::DeliveryMetrics;
use model::{Result, WebhookEndpointId, WorkspaceId};
use prometheus::core::Collector;
use rows::{TurnInput, TurnResult};
use state::State;
use std::sync::Arc;
use std::time::Duration;
use store::Tx;
use tokio_util::sync::CancellationToken;
use turn::turn;

/// How often an engine looks for work that nobody woke it for: retries that are due, and what other processes left.
const POLL: Duration = Duration::from_millis(500);
/// The same while it holds endpoints: others may add to their queues.
const POLL_HOLDING: Duration = Duration::from_millis(100);

/// Delivers events. Cheap to clone; [`Deliveries::start`] makes it work.
#[derive(Clone)]
pub struct Deliveries {
    pub(crate) parts: Arc<Parts>,
    sequencer: Sequencer,
    metrics: Arc<DeliveryMetrics>,
}

impl Deliveries {
    pub(crate) fn new(parts: Parts, sequencer: Sequencer) -> Result<Self> {
        Ok(Self { parts: Arc::new(parts), sequencer, metrics: Arc::new(DeliveryMetrics::new()?) })
    }

    /// What is exported.
    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        self.metrics.collectors()
    }

    /// Wakes the engine once `tx` is committed.
    pub(crate) fn wake_after(&self, tx: &mut Tx) {
        let wake = self.parts.wake.clone();
        tx.after_commit(move || wake.notify_one());
    }

    /// Places events and delivers, on this runtime, until [`Delivering::stop`].
    pub fn start(&self) -> Delivering {
        let stop = CancellationToken::new();
        let placing = tokio::spawn(self.sequencer.clone().serve(stop.clone()));
        let delivering = tokio::spawn(self.clone().serve(stop.clone()));
        Delivering { stop, placing, delivering }
    }

    /// Places what waits, and makes every delivery that is due by the database's clock, until none is. Says how many
    /// attempts were made. For tests, which move the clock, and for tools.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn run_due(&self) -> Result<usize> {
        let mut state = State::new(self.parts.clone());
        let mut attempts = 0;
        loop {
            self.sequencer.run_due().await?;
            self.take_turn(&mut state).await?;
            state.dispatch();
            if !state.is_sending() {
                // What is left is kept back by its pace, the breaker or its time.
                self.sequencer.run_due().await?;
                state.stop();
                self.take_turn(&mut state).await?;
                return Ok(attempts);
            }
            while state.collect().await {
                attempts += 1;
                state.dispatch();
            }
        }
    }

    async fn take_turn(&self, state: &mut State) -> Result<()> {
        let written = self.write_turn(state.input()).await;
        self.end_turn(state, written).await
    }

    async fn write_turn(&self, input: TurnInput) -> Written {
        let input = Arc::new(input);
        let (given, catalogue) = (input.clone(), self.parts.catalogue.clone());
        let result = self.parts.db.write(move |tx| turn(tx, &catalogue, &given)).await;
        Written { input, result }
    }

    async fn end_turn(&self, state: &mut State, Written { input, result }: Written) -> Result<()> {
        match result {
            Ok(mut result) => {
                self.metrics.count(&input.finished);
                let lapsed = std::mem::take(&mut result.lapsed);
                state.apply(result);
                self.close(lapsed).await;
                Ok(())
            }
            Err(error) => {
                state.put_back(input);
                Err(error)
            }
        }
    }

    /// Switches off what has lost its key. What fails is left for the job that looks at all endpoints.
    async fn close(&self, lapsed: Vec<(WorkspaceId, WebhookEndpointId)>) {
        for (workspace, id) in lapsed {
            let catalogue = self.parts.catalogue.clone();
            let closed = self.parts.db.write(move |tx| closing::close_lapsed(tx, &catalogue, workspace, &id));
            if let Err(error) = closed.await {
                tracing::warn!(?error, "an endpoint without a key could not be switched off");
            }
        }
    }

    async fn serve(self, stop: CancellationToken) {
        let mut state = State::new(self.parts.clone());
        let mut due = true;
        let writing = Fuse::terminated();
        tokio::pin!(writing);
        while !stop.is_cancelled() {
            if due && writing.is_terminated() {
                writing.set(self.write_turn(state.input()).fuse());
                due = false;
            }
            state.dispatch();
            let poll = if state.holds_any() { POLL_HOLDING } else { POLL };
            let pause = state.next_pace().map_or(poll, |pace| pace.min(poll));
            tokio::select! {
                () = stop.cancelled() => {}
                written = &mut writing => {
                    if let Err(error) = self.end_turn(&mut state, written).await {
                        tracing::error!(?error, "deliveries could not be written down");
                        tokio::time::sleep(POLL).await;
                    }
                }
                () = self.parts.wake.notified() => due = true,
                true = state.collect() => {
                    state.collect_ready();
                    due = true;
                }
                () = tokio::time::sleep(pause) => due |= pause == poll,
            }
        }
        if !writing.is_terminated()
            && let Err(error) = self.end_turn(&mut state, writing.await).await
        {
            tracing::warn!(?error, "deliveries could not be written down");
        }
        state.stop();
        while state.collect().await {}
        if let Err(error) = self.take_turn(&mut state).await {
            tracing::warn!(?error, "the last deliveries could not be written down: they are made again");
        }
    }
}

/// A turn that was written down, or could not be.
struct Written {
    input: Arc<TurnInput>,
    result: Result<TurnResult>,
}

/// Deliveries at work. Dropped, they end where they stand, and whoever takes over makes them again.
#[must_use = "dropped, deliveries end"]
pub struct Delivering {
    stop: CancellationToken,
    placing: tokio::task::JoinHandle<()>,
    delivering: tokio::task::JoinHandle<()>,
}

impl Delivering {
    /// Sends nothing more, waits for what is on its way for at most `patience`, and writes it down.
    pub async fn stop(mut self, patience: Duration) {
        self.stop.cancel();
        let all = async {
            let _ = (&mut self.placing).await;
            let _ = (&mut self.delivering).await;
        };
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("deliveries were cut off; they are made again");
        }
    }
}

impl Drop for Delivering {
    fn drop(&mut self) {
        self.placing.abort();
        self.delivering.abort();
    }
}
