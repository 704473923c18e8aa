//! Registry of the runs that this process executes, and of those that wait in a conversation.

use model::RunId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The runs that a process works on. Entries are guards: whatever happens to the work, none is left behind.
#[derive(Default)]
pub(crate) struct ActiveRuns {
    working: Mutex<HashMap<RunId, Entry>>,
    /// Notifications of queued runs, by conversation.
    waiting: Mutex<HashMap<i64, Weak<Notify>>>,
    serial: AtomicU64,
    ended: Notify,
}

/// A run in execution.
struct Entry {
    serial: u64,
    cancel: CancellationToken,
    /// Cancelled when the work has ended.
    ended: CancellationToken,
}

/// Registration of a run in execution. Dropping it removes the run from the registry.
pub(crate) struct ActiveRun {
    active: Arc<ActiveRuns>,
    run: RunId,
    conversation: i64,
    serial: u64,
    /// Says when to stop.
    pub(crate) cancel: CancellationToken,
}

/// A queued run that waits for its turn in a conversation.
pub(crate) struct TurnWaiter {
    active: Arc<ActiveRuns>,
    conversation: i64,
    /// Notified when a run of the conversation ends in this process.
    pub(crate) turn: Arc<Notify>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ActiveRuns {
    /// Notes that this process works on a run. An earlier worker on it is cancelled: its lease expired and the run was
    /// taken over.
    pub(crate) fn register(self: &Arc<Self>, run: &RunId, conversation: i64) -> ActiveRun {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let cancel = CancellationToken::new();
        let entry = Entry { serial, cancel: cancel.clone(), ended: CancellationToken::new() };
        if let Some(earlier) = locked(&self.working).insert(run.clone(), entry) {
            earlier.cancel.cancel();
            earlier.ended.cancel();
        }
        ActiveRun { active: self.clone(), run: run.clone(), conversation, serial, cancel }
    }

    /// Cancels the work on a run in this process. Another process notices at its next step or renewal.
    pub(crate) fn stop(&self, run: &RunId) {
        if let Some(entry) = locked(&self.working).get(run) {
            entry.cancel.cancel();
        }
    }

    pub(crate) fn wait_for_turn(self: &Arc<Self>, conversation: i64) -> TurnWaiter {
        let mut waiting = locked(&self.waiting);
        let turn = waiting.get(&conversation).and_then(Weak::upgrade).unwrap_or_default();
        waiting.insert(conversation, Arc::downgrade(&turn));
        TurnWaiter { active: self.clone(), conversation, turn }
    }

    /// The number of runs in execution.
    pub(crate) fn working(&self) -> usize {
        locked(&self.working).len()
    }

    /// Returns a token that is cancelled at the end of the execution of a run, if this process executes it.
    pub(crate) fn end_of(&self, run: &RunId) -> Option<CancellationToken> {
        locked(&self.working).get(run).map(|entry| entry.ended.clone())
    }

    /// Waits until no run is worked on.
    pub(crate) async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            if self.working() == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        let mut working = locked(&self.active.working);
        if working.get(&self.run).is_some_and(|entry| entry.serial == self.serial)
            && let Some(entry) = working.remove(&self.run)
        {
            entry.ended.cancel();
        }
        drop(working);
        let waiting = locked(&self.active.waiting).get(&self.conversation).and_then(Weak::upgrade);
        if let Some(turn) = waiting {
            turn.notify_waiters();
        }
        self.active.ended.notify_waiters();
    }
}

impl Drop for TurnWaiter {
    fn drop(&mut self) {
        let mut waiting = locked(&self.active.waiting);
        // Ours is the last one: a count under the lock, under which alone others are made.
        if waiting.get(&self.conversation).is_some_and(|turn| turn.strong_count() <= 1) {
            waiting.remove(&self.conversation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{SeededRandom, Timestamp};

    #[test]
    fn entries_end_with_their_guards() {
        let active = Arc::new(ActiveRuns::default());
        let run = RunId::new(Timestamp::from_millis(1), &SeededRandom::new(1));
        let first = active.register(&run, 7);
        let second = active.register(&run, 7);
        assert!(first.cancel.is_cancelled() && !second.cancel.is_cancelled());
        drop(first);
        assert_eq!(active.working(), 1);
        let ended = active.end_of(&run).unwrap();
        active.stop(&run);
        assert!(second.cancel.is_cancelled());
        assert!(!ended.is_cancelled());
        drop(second);
        assert!(ended.is_cancelled() && active.end_of(&run).is_none());
        assert_eq!(active.working(), 0);
        let (one, two) = (active.wait_for_turn(7), active.wait_for_turn(7));
        assert!(Arc::ptr_eq(&one.turn, &two.turn));
        drop(one);
        assert_eq!(locked(&active.waiting).len(), 1);
        drop(two);
        assert_eq!(locked(&active.waiting).len(), 0);
    }
}
