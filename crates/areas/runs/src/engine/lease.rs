//! Lease of a run: transactions of its worker, and the heartbeat that renews the lease.

use super::RunEngine;
use crate::execution::Execution;
use crate::queries::runs;
use model::Result;
use std::sync::Arc;
use std::time::Duration;
use store::Tx;

/// Interval of the heartbeat: a lease survives two lost ones.
const HEARTBEAT: Duration = Duration::from_secs(10);

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

    /// Awaits `future`, and renews the lease of the run meanwhile. If another worker has taken the run over, the execution is
    /// cancelled.
    pub(crate) async fn keeping_lease<T>(
        &self,
        execution: &Arc<Execution>,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                value = &mut future => return value,
                () = tokio::time::sleep(HEARTBEAT) => {
                    let renewed = self.write_with(execution, |_, tx, execution| runs::renew(tx, &execution.row)).await;
                    if let Ok(false) = renewed {
                        execution.active.cancel.cancel();
                    }
                }
            }
        }
    }
}
