//! The engine at work: it looks for runs that have work until it is stopped.

use super::{FlowEngine, MAX_DRIVES};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often to look for runs that became due, or that others have woken.
const POLL: Duration = Duration::from_millis(500);
/// The wait after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

impl FlowEngine {
    /// Executes runs on this runtime, until [`Serving::stop`].
    pub fn start(&self) -> Serving {
        let (engine, stop) = (self.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            while !stopped.is_cancelled() {
                let wait = match engine.run_due().await {
                    // There may be more.
                    Ok(count) if count > 0 => continue,
                    Ok(_) => POLL,
                    Err(error) => {
                        tracing::error!(?error, "runs of flows could not be claimed");
                        AFTER_FAILURE
                    }
                };
                tokio::select! {
                    () = stopped.cancelled() => {}
                    () = engine.0.wake.notified() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        });
        Serving { engine: self.clone(), stop, task }
    }

    /// Waits until this process executes no run.
    pub async fn idle(&self) {
        let all = u32::try_from(MAX_DRIVES).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        drop(self.0.permits.acquire_many(all).await);
    }

    /// Executes everything that has work, and what follows from it. For tests, and for tools.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn run_all_due(&self) -> model::Result<usize> {
        let mut all = 0;
        loop {
            self.idle().await;
            let count = self.run_due().await?;
            if count == 0 {
                return Ok(all);
            }
            all += count;
        }
    }
}

/// The engine at work. Dropped, it claims no more runs.
#[must_use = "dropped, the engine stops"]
pub struct Serving {
    engine: FlowEngine,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Serving {
    /// Claims no more runs, and waits for at most `patience` until those under way rest. What is cut off is resumed by others.
    pub async fn stop(self, patience: Duration) {
        self.stop.cancel();
        if tokio::time::timeout(patience, self.engine.idle()).await.is_err() {
            tracing::warn!("runs of flows are left to be resumed");
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}
