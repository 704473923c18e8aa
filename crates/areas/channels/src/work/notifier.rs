//! Notifications of new work to the workers of channels, so that it does not wait for their next poll.

use model::ChannelId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use store::Tx;
use tokio::sync::Notify;

/// The kinds of work for a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Callbacks to apply.
    Callbacks,
    /// Messages to answer.
    Replies,
    /// Messages to send.
    Outbox,
    /// Files to download.
    Files,
    /// Events that wait for the files of their messages.
    Events,
}

/// Notifies the workers of this process. Workers of other processes poll every half second. A service for operations.
#[derive(Debug, Clone, Default)]
pub struct WorkNotifier(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    wanted: Mutex<BTreeSet<(ChannelId, Work)>>,
    notify: Notify,
}

impl WorkNotifier {
    /// Notifies a channel's worker of work.
    pub fn notify(&self, channel: ChannelId, work: Work) {
        self.wanted().insert((channel, work));
        self.0.notify.notify_one();
    }

    /// Notifies a channel's worker of its outbox when this transaction has committed.
    pub fn notify_of_outbox(&self, tx: &mut Tx, channel: ChannelId) {
        let notifier = self.clone();
        tx.after_commit(move || notifier.notify(channel, Work::Outbox));
    }

    /// Waits for work and returns it.
    pub async fn notified(&self) -> BTreeSet<(ChannelId, Work)> {
        self.0.notify.notified().await;
        std::mem::take(&mut *self.wanted())
    }

    fn wanted(&self) -> std::sync::MutexGuard<'_, BTreeSet<(ChannelId, Work)>> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
