//! Group of agents and runs: its jobs, routes and services.

use crate::agents::{AgentVariables, SEALED_TOOLS, SEALED_VERSIONS, WorkspaceAgents};
use crate::providers::Tiers;
use crate::runs::{ApprovalRoute, OPEN_RUNS, RunDirectory};
use crate::{Agents, RunEngine, Runs};
use auth::SealedTable;
use egress::Connector;
use jobs::Job;
use model::Result;
use operation::ports::AgentDirectory;
use operation::ports::Structurer;
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

/// The tables with sealed values.
pub const SEALED: &[&SealedTable] = &[&SEALED_TOOLS, &SEALED_VERSIONS];

/// Agents and runs. Others may read traces through [`RunDirectory`].
pub fn group(engine: &RunEngine, tiers: Arc<Tiers>, connector: Arc<Connector>) -> Group {
    let (resuming, purging) = (engine.clone(), engine.clone());
    Group::default()
        .job(Job::every(
            "runs.resume",
            Duration::from_secs(5),
            "resumes runs whose lease has expired",
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
            "deletes the texts of ephemeral conversations",
            move |_| {
                let engine = purging.clone();
                async move {
                    engine.purge_ephemeral().await?;
                    Ok(())
                }
            },
        ))
        .metrics(engine.collectors())
        .table_gauge(OPEN_RUNS)
        .raw_route(ApprovalRoute::new(engine.clone()))
        .shared_service(tiers)
        .shared_service(connector)
        .service(engine.operations().clone())
        .service(Structurer::new(engine.clone()))
        .service(engine.clone())
        .service(AgentDirectory::new(WorkspaceAgents))
        .link_target(RunDirectory)
        .variable_users(AgentVariables)
}
