//! Notifying the workers of channels of new work, so that it does not wait for their next poll.

use model::ChannelId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use store::Tx;
use tokio::sync::Notify;

/// The kinds of work for a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Callbacks wait to be applied.
    Callbacks,
    /// Messages wait for an answer.
    Replies,
    /// Messages wait to be sent.
    Outbox,
    /// Files wait to be read.
    Files,
    /// Events wait for the files of their messages.
    Events,
}

/// Notifies the workers of this process; those of others poll every half second. A service that operations ask for.
#[derive(Debug, Clone, Default)]
pub struct WorkNotifier(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    wanted: Mutex<BTreeSet<(ChannelId, Work)>>,
    notify: Notify,
}

impl WorkNotifier {
    /// Notifies the channel's worker of work.
    pub fn notify(&self, channel: ChannelId, work: Work) {
        self.wanted().insert((channel, work));
        self.0.notify.notify_one();
    }

    /// Notifies the channel's worker of its outbox when this transaction is committed.
    pub fn notify_of_outbox(&self, tx: &mut Tx, channel: ChannelId) {
        let notifier = self.clone();
        tx.after_commit(move || notifier.notify(channel, Work::Outbox));
    }

    /// Waits for work, and returns what is waiting.
    pub async fn notified(&self) -> BTreeSet<(ChannelId, Work)> {
        self.0.notify.notified().await;
        std::mem::take(&mut *self.wanted())
    }

    fn wanted(&self) -> std::sync::MutexGuard<'_, BTreeSet<(ChannelId, Work)>> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
