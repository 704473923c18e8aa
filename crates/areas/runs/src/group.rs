//! Group of runs: areas, services, jobs, routes and metrics.

use crate::approvals::{Approvals, approval_links};
use crate::engine::OPEN_RUNS;
use crate::{RunDirectory, RunEngine, RunEngineParts, events, operations, usage};
use action_links::LinkRoute;
use egress::Connector;
use jobs::Job;
use model::Result;
use operation::{BaseUrl, Declarations, Domain, EventType, Group, LocalCalls, Operations, Parts, Services};
use ports::{AgentRuns, LinkTargets, RunTraces, Structurer};
use providers::Tiers;
use std::sync::Arc;
use std::time::Duration;

/// Runs.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    let declarations = declarations.area::<Runs>().area::<AgentUsage>();
    Ok(declarations.service::<Arc<dyn RunTraces>>(Arc::new(RunDirectory)))
}

/// The area.
pub struct Runs;

impl Domain for Runs {
    const AREA: &'static str = "Runs";
    const ORDER: u16 = 20;
    const DESCRIPTION: &'static str = "A run executes an agent on a text input and returns its output. It is made of steps, spends Energy \
         with a live key, and can share the memory of a conversation with other runs.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::CreateRun),
            Box::new(operations::CreateWorkspaceRun),
            Box::new(operations::ListRuns),
            Box::new(operations::GetRun),
        ]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<events::RunEvent<'_>>()
    }
}

/// The runs of an agent, summed up by day.
pub struct AgentUsage;

impl Domain for AgentUsage {
    const AREA: &'static str = "Agents";
    const ORDER: u16 = 31;
    /// The crate `agents` describes the area.
    const DESCRIPTION: &'static str = "";

    fn operations() -> Operations {
        vec![Box::new(usage::GetAgentUsage)]
    }
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
        approval_links: approval_links(services.get()?, &base_url),
        spending: services.get()?,
        turns: services.cloned()?,
        tracer: services.cloned()?,
        operations: services.cloned::<LocalCalls>()?,
        causes: services.cloned()?,
        variables: services.cloned()?,
        people: services.cloned()?,
        collections: services.cloned()?,
        functions: services.cloned()?,
        flows: services.cloned()?,
        skills: services.cloned()?,
        business: services.cloned()?,
        runtime: services.cloned()?,
    })?;
    let parts = Parts::default()
        .jobs(jobs(&engine))
        .metrics(engine.collectors())
        .table_gauge(OPEN_RUNS)
        .raw_route(LinkRoute::new(Approvals(engine.clone())))
        .service(Structurer::new(engine.clone()))
        .service::<Arc<dyn AgentRuns>>(Arc::new(engine.clone()))
        .service(engine)
        .one_of::<Arc<dyn LinkTargets>>(Arc::new(RunDirectory));
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
