//! Group of agents and runs: its jobs, routes and services.

use crate::providers::Tiers;
use crate::runs::{ApprovalRoute, RunDirectory};
use crate::{Agents, RunEngine, Runs};
use egress::Connector;
use jobs::Job;
use model::Result;
use operation::{Group, Registry};
use std::sync::Arc;
use std::time::Duration;

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Runs>()?.with::<Agents>()
}

/// Agents and runs. Others may read traces through [`RunDirectory`].
pub fn group(engine: &RunEngine, tiers: Arc<Tiers>, connector: Arc<Connector>) -> Group {
    let (resuming, purging) = (engine.clone(), engine.clone());
    Group::default()
        .job(Job::every(
            "runs.resume",
            Duration::from_secs(5),
            "takes over runs whose workers fell silent",
            move |_| {
                let engine = resuming.clone();
                async move {
                    engine.resume_silent().await?;
                    Ok(())
                }
            },
        ))
        .job(Job::every(
            "runs.purge",
            Duration::from_secs(600),
            "forgets the texts of ephemeral conversations",
            move |_| {
                let engine = purging.clone();
                async move {
                    engine.purge_ephemeral().await?;
                    Ok(())
                }
            },
        ))
        .raw_route(ApprovalRoute::new(engine.clone()))
        .shared_service(tiers)
        .shared_service(connector)
        .service(engine.clone())
        .link_target(RunDirectory)
}
