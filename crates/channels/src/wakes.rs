//! Waking the workers of channels, so that what was just written does not wait for their next look.

use std::sync::Arc;
use store::Tx;
use tokio::sync::Notify;

/// Wakes the workers of this process. Those of others look every half second. A service that operations ask for.
#[derive(Debug, Clone, Default)]
pub struct Wakes(Arc<Notify>);

impl Wakes {
    /// There is work now.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// There is work when this transaction is committed.
    pub(crate) fn after(&self, tx: &mut Tx) {
        let wakes = self.clone();
        tx.after_commit(move || wakes.wake());
    }

    /// Waits until there may be work.
    pub(crate) async fn awaken(&self) {
        self.0.notified().await;
    }
}
