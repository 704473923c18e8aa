//! A clock that can be advanced.

use chrono::Duration;
use model::{Clock, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::watch;

/// A clock that runs ahead of another one by an adjustable time. The service can use it too, so that both jump
/// together.
pub struct VirtualClock {
    base: Arc<dyn Clock>,
    ahead_millis: AtomicI64,
    moved: watch::Sender<()>,
}

impl VirtualClock {
    /// Creates a clock that shows the time of `base` until it is advanced.
    #[must_use]
    pub fn new(base: Arc<dyn Clock>) -> Self {
        Self { base, ahead_millis: AtomicI64::new(0), moved: watch::Sender::new(()) }
    }

    /// Advances the clock.
    pub fn advance(&self, duration: Duration) {
        self.ahead_millis.fetch_add(duration.num_milliseconds(), Ordering::SeqCst);
        self.moved.send_replace(());
    }

    /// Returns a receiver that is notified each time the clock is advanced.
    pub(crate) fn moves(&self) -> watch::Receiver<()> {
        self.moved.subscribe()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.base.now().plus(Duration::milliseconds(self.ahead_millis.load(Ordering::SeqCst)))
    }
}
