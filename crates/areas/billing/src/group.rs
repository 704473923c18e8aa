//! What this group adds to the service.

use crate::{Billing, BillingSettings, Identity, Ledger, Traces, ledger, plans};
use auth::SpentMicros;
use jobs::Job;
use model::Result;
use operation::{Declarations, Group, Parts, Services};
use ports::EnergyMeter;
use std::sync::Arc;
use std::time::Duration;

/// Identity, plans and Energy.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations.area::<Identity>().area::<Billing>().service::<SpentMicros>(ledger::spent_micros))
}

fn start(services: &Services) -> Result<Parts> {
    let settings = services.cloned::<BillingSettings>()?;
    let ledger = Ledger::new(settings.recharge_url).with_spending(services.get()?);
    let parts = Parts::default()
        .jobs(jobs())
        .table_gauge(ledger::HELD_ENERGY)
        .service::<Arc<dyn EnergyMeter>>(Arc::new(ledger))
        .service(Traces(services.cloned()?));
    Ok(parts)
}

fn jobs() -> [Job; 3] {
    // Each job takes some at a time, so that no transaction is long.
    [
        Job::every(
            "energy.sweep",
            Duration::from_secs(60),
            "releases holds of dead runs, expires grants, starts grants that are due",
            |job| async move {
                while job.db.write(ledger::sweep_expired_holds).await? > 0 {}
                while job.db.write(ledger::sweep_expired_grants).await? > 0 {}
                while job.db.write(ledger::sweep_pending_grants).await? > 0 {}
                Ok(())
            },
        ),
        Job::every(
            "plans.renew",
            Duration::from_secs(60),
            "starts the next periods of plans, with their Energy, and ends cancelled plans",
            |job| async move {
                while job.db.write(plans::renew).await? > 0 {}
                Ok(())
            },
        ),
        Job::every(
            "energy.check",
            Duration::from_secs(24 * 3600),
            "checks the ledger, and logs what is wrong at level `ERROR`",
            |job| async move {
                ledger::check_all(&job.db).await?;
                Ok(())
            },
        ),
    ]
}
