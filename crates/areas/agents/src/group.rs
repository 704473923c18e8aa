//! What agents and runs add to the service.

use crate::agents::{AgentVariables, SEALED_TOOLS, SEALED_VERSIONS, WorkspaceAgents};
use crate::providers::Tiers;
use crate::runs::{ApprovalRoute, OPEN_RUNS, RunDirectory, RunEngineParts};
use crate::{Agents, RunEngine, Runs};
use egress::Connector;
use jobs::Job;
use model::Result;
use operation::{BaseUrl, Declarations, Group, LocalCalls, Parts, Services};
use ports::{AgentDirectory, AgentRuns, LinkTargets, RunTraces, Structurer, VariableUsers};
use std::sync::Arc;
use std::time::Duration;

/// Agents and runs.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations.area::<Runs>().area::<Agents>().sealed([&SEALED_TOOLS, &SEALED_VERSIONS]).service::<Arc<
        dyn RunTraces,
    >>(Arc::new(
        RunDirectory,
    )))
}

fn start(services: &Services) -> Result<Parts> {
    let BaseUrl(base_url) = services.cloned()?;
    let engine = RunEngine::new(RunEngineParts {
        db: services.cloned()?,
        tiers: services.get::<Tiers>()?,
        meter: services.cloned()?,
        connector: services.get::<Connector>()?,
        seal: services.get()?,
        directory: services.get()?,
        base_url,
        spending: services.get()?,
        turns: services.cloned()?,
        tracer: services.cloned()?,
        operations: services.cloned::<LocalCalls>()?,
        variables: services.cloned()?,
        people: services.cloned()?,
        collections: services.cloned()?,
        business: services.cloned()?,
        runtime: services.cloned()?,
    })?;
    let parts = Parts::default()
        .jobs(jobs(&engine))
        .metrics(engine.collectors())
        .table_gauge(OPEN_RUNS)
        .raw_route(ApprovalRoute::new(engine.clone()))
        .service(Structurer::new(engine.clone()))
        .service::<Arc<dyn AgentRuns>>(Arc::new(engine.clone()))
        .service(engine)
        .service(AgentDirectory::new(WorkspaceAgents))
        .one_of::<Arc<dyn LinkTargets>>(Arc::new(RunDirectory))
        .one_of::<Arc<dyn VariableUsers>>(Arc::new(AgentVariables));
    Ok(parts)
}

fn jobs(engine: &RunEngine) -> [Job; 2] {
    let (resuming, purging) = (engine.clone(), engine.clone());
    [
        Job::every(
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
        ),
        Job::every(
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
        ),
    ]
}
