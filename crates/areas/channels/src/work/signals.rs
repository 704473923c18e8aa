//! The signals that start the rounds of a channel's worker.

use super::notifier::Work;
use tokio::sync::Notify;

/// One signal per kind of work. A signal sent during a round starts another round.
#[derive(Debug, Default)]
pub struct WorkSignals {
    callbacks: Notify,
    replies: Notify,
    outbox: Notify,
    files: Notify,
    events: Notify,
}

impl WorkSignals {
    /// Signals work of a kind.
    pub fn notify(&self, work: Work) {
        self.of(work).notify_one();
    }

    /// Signals work of all kinds.
    pub fn notify_all(&self) {
        for work in [Work::Callbacks, Work::Replies, Work::Outbox, Work::Files, Work::Events] {
            self.notify(work);
        }
    }

    /// Waits for the signal of a kind of work.
    pub async fn notified(&self, work: Work) {
        self.of(work).notified().await;
    }

    fn of(&self, work: Work) -> &Notify {
        match work {
            Work::Callbacks => &self.callbacks,
            Work::Replies => &self.replies,
            Work::Outbox => &self.outbox,
            Work::Files => &self.files,
            Work::Events => &self.events,
        }
    }
}
