//! What wakes the parts of a channel's worker, each for its own work.

use crate::wakes::Work;
use tokio::sync::Notify;

/// A bell for each part. One that rings while its part is at work is heard afterwards.
#[derive(Debug, Default)]
pub(super) struct Bells {
    callbacks: Notify,
    replies: Notify,
    outbox: Notify,
    files: Notify,
    held: Notify,
}

impl Bells {
    /// There is such work.
    pub(super) fn ring(&self, work: Work) {
        self.of(work).notify_one();
    }

    /// There may be work of any kind.
    pub(super) fn ring_all(&self) {
        for work in [Work::Callbacks, Work::Replies, Work::Outbox, Work::Files, Work::Held] {
            self.ring(work);
        }
    }

    /// Waits until there is such work.
    pub(super) async fn heard(&self, work: Work) {
        self.of(work).notified().await;
    }

    fn of(&self, work: Work) -> &Notify {
        match work {
            Work::Callbacks => &self.callbacks,
            Work::Replies => &self.replies,
            Work::Outbox => &self.outbox,
            Work::Files => &self.files,
            Work::Held => &self.held,
        }
    }
}
