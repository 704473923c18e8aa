//! A clock that can be moved.

use chrono::Duration;
use model::{Clock, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::watch;

/// Another clock, moved on by as much as was asked for. It can be given to the service too, so that both jump together.
pub struct VirtualClock {
    base: Arc<dyn Clock>,
    ahead_millis: AtomicI64,
    moved: watch::Sender<()>,
}

impl VirtualClock {
    /// A clock that shows what `base` shows until it is moved.
    #[must_use]
    pub fn new(base: Arc<dyn Clock>) -> Self {
        Self { base, ahead_millis: AtomicI64::new(0), moved: watch::Sender::new(()) }
    }

    /// Moves the clock on.
    pub fn advance(&self, duration: Duration) {
        self.ahead_millis.fetch_add(duration.num_milliseconds(), Ordering::SeqCst);
        self.moved.send_replace(());
    }

    /// Tells each time that the clock is moved.
    pub(crate) fn moves(&self) -> watch::Receiver<()> {
        self.moved.subscribe()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.base.now().plus(Duration::milliseconds(self.ahead_millis.load(Ordering::SeqCst)))
    }
}
