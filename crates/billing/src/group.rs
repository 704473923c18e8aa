//! What this group adds to the service.

use crate::{Billing, BillingSettings, Identity, Traces, ledger, plans};
use jobs::Job;
use model::Result;
use operation::ports::RunTraces;
use operation::{Group, Registry};
use std::sync::Arc;
use std::time::Duration;

/// Adds the area of who a key is, which comes first in the documents.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn identity(registry: Registry) -> Result<Registry> {
    registry.with::<Identity>()
}

/// Adds the area of plans and Energy.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Billing>()
}

/// Identity, plans and Energy. `traces` has the steps of what spends Energy, which others spend through
/// [`Ledger`](crate::Ledger).
pub fn group(settings: BillingSettings, traces: Arc<dyn RunTraces>) -> Group {
    // Each job takes some at a time, so that no transaction is long.
    Group::default()
        .job(Job::every(
            "energy.sweep",
            Duration::from_secs(60),
            "releases holds of dead runs, expires grants, starts grants that are due",
            |job| async move {
                while job.db.write(ledger::sweep_expired_holds).await? > 0 {}
                while job.db.write(ledger::sweep_expired_grants).await? > 0 {}
                while job.db.write(ledger::sweep_pending_grants).await? > 0 {}
                Ok(())
            },
        ))
        .job(Job::every(
            "plans.renew",
            Duration::from_secs(60),
            "starts the next periods of plans, with their Energy, and ends cancelled plans",
            |job| async move {
                while job.db.write(plans::renew).await? > 0 {}
                Ok(())
            },
        ))
        .job(Job::every(
            "energy.check",
            Duration::from_secs(24 * 3600),
            "checks the ledger, and logs what is wrong at level `ERROR`",
            |job| async move {
                ledger::check_all(&job.db).await?;
                Ok(())
            },
        ))
        .table_gauge(ledger::HELD_ENERGY)
        .service(settings)
        .service(Traces(traces))
}
