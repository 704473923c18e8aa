//! Requests of this process that wait for runs.

use model::FlowRunId;
use ports::FlowAnswer;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Those who wait, by their runs.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<HashMap<FlowRunId, Vec<oneshot::Sender<FlowAnswer>>>>);

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, HashMap<FlowRunId, Vec<oneshot::Sender<FlowAnswer>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, run: &FlowRunId) -> oneshot::Receiver<FlowAnswer> {
        let (sender, receiver) = oneshot::channel();
        self.lock().entry(run.clone()).or_default().push(sender);
        receiver
    }

    pub(super) fn tell(&self, run: &FlowRunId, answer: &FlowAnswer) {
        for waiter in self.lock().remove(run).into_iter().flatten() {
            // The request may be gone.
            let _ = waiter.send(answer.clone());
        }
    }

    pub(super) fn forget_closed(&self, run: &FlowRunId) {
        let mut all = self.lock();
        if let Some(waiters) = all.get_mut(run) {
            waiters.retain(|waiter| !waiter.is_closed());
            if waiters.is_empty() {
                all.remove(run);
            }
        }
    }
}
