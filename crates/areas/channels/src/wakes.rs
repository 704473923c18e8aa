//! Waking the workers of channels, so that what was just written does not wait for their next look.

use model::ChannelId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use store::Tx;
use tokio::sync::Notify;

/// What there is to do for a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Callbacks wait to be applied.
    Callbacks,
    /// Messages wait for an answer.
    Replies,
    /// Messages wait to be sent.
    Outbox,
    /// Files wait to be read.
    Files,
    /// Events wait for the files of their messages.
    Held,
}

/// Wakes the workers of this process. Those of others look every half second. A service that operations ask for.
#[derive(Debug, Clone, Default)]
pub struct Wakes(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    wanted: Mutex<BTreeSet<(ChannelId, Work)>>,
    notify: Notify,
}

impl Wakes {
    /// There is work now.
    pub(crate) fn wake(&self, channel: ChannelId, work: Work) {
        self.wanted().insert((channel, work));
        self.0.notify.notify_one();
    }

    /// There is something to send when this transaction is committed.
    pub fn send_after(&self, tx: &mut Tx, channel: ChannelId) {
        let wakes = self.clone();
        tx.after_commit(move || wakes.wake(channel, Work::Outbox));
    }

    /// Waits until there is work, and says where.
    pub(crate) async fn awaken(&self) -> BTreeSet<(ChannelId, Work)> {
        self.0.notify.notified().await;
        std::mem::take(&mut *self.wanted())
    }

    fn wanted(&self) -> std::sync::MutexGuard<'_, BTreeSet<(ChannelId, Work)>> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
