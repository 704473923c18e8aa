//! Lease of a run: transactions of its worker, and the heartbeat that renews the lease.

use super::RunEngine;
use crate::execution::Execution;
use crate::queries::runs;
use model::Result;
use std::sync::Arc;
use std::time::Duration;
use store::{HeldLease, Tx};

impl RunEngine {
    /// Runs a transaction that reads `execution`.
    pub(crate) async fn write_with<T: Send + 'static>(
        &self,
        execution: &Arc<Execution>,
        change: impl Fn(&Self, &mut Tx, &Execution) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (engine, execution) = (self.clone(), execution.clone());
        self.db().write(move |tx| change(&engine, tx, &execution)).await
    }

    /// Awaits `future`, and renews the lease of the run meanwhile. If the lease is lost, the execution is cancelled.
    pub(crate) async fn keeping_lease<T>(
        &self,
        execution: &Arc<Execution>,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = std::pin::pin!(future);
        let lost = HeldLease::new(Duration::from_secs(runs::LEASE_SECONDS.unsigned_abs()))
            .until_lost(|| self.write_with(execution, |_, tx, execution| runs::renew(tx, &execution.row)));
        tokio::select! {
            value = &mut future => return value,
            () = lost => execution.active.cancel.cancel(),
        }
        future.await
    }
}
