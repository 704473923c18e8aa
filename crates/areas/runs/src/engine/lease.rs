//! Lease of a run: transactions of its worker, and the heartbeat that renews the lease.

use super::RunEngine;
use crate::execution::Work;
use crate::queries::runs;
use model::Result;
use std::sync::Arc;
use std::time::Duration;
use store::Tx;

impl RunEngine {
    /// Runs a transaction that looks at `work`.
    pub(crate) async fn write_with<T: Send + 'static>(
        &self,
        work: &Arc<Work>,
        change: impl Fn(&Self, &mut Tx, &Work) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (engine, work) = (self.clone(), work.clone());
        self.db().write(move |tx| change(&engine, tx, &work)).await
    }
}

/// How often a worker says that it is alive: often enough for two to get lost within a lease.
const HEARTBEAT: Duration = Duration::from_secs(10);

impl RunEngine {
    /// Does something that takes long, and says now and then that this worker is alive. Where the run is no longer
    /// this worker's, the work is cancelled.
    pub(crate) async fn keeping_lease<T>(&self, work: &Arc<Work>, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                value = &mut future => return value,
                () = tokio::time::sleep(HEARTBEAT) => {
                    let renewed = self.write_with(work, |_, tx, work| runs::renew(tx, &work.row)).await;
                    if let Ok(false) = renewed {
                        work.working.cancel.cancel();
                    }
                }
            }
        }
    }
}
