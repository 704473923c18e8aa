//! Declares the group of flows.

use crate::draft::uses::{FlowVariables, FlowsAsUsers};
use crate::draft::{mcp_tools, operations, publish, remove, validation, version_operations};
use crate::engine::metrics::{LATENESS, OPEN_RUNS};
use crate::engine::{EngineParts, FlowEngine};
use crate::events::{ApprovalRequested, FlowRunEvent};
use crate::nodes::custom_events::CustomEvent;
use crate::runs::operations as runs;
use crate::runs::retention::purge;
use crate::waits;
use jobs::Job;
use model::Result;
use operation::{Domain, EventType, Group, Operations, Parts, Services};
use ports::{ObjectUsers, VariableUsers, WorkspaceFlows};
use std::sync::Arc;
use std::time::Duration;

/// The group of flows.
pub const GROUP: Group = Group { declare: |declarations| Ok(declarations.area::<Flows>()), start };

fn start(services: &Services) -> Result<Parts> {
    let engine = FlowEngine::new(EngineParts::of(services)?);
    services.get::<WorkspaceFlows>()?.connect(engine.clone());
    let (objects, variables): (Arc<dyn ObjectUsers>, Arc<dyn VariableUsers>) =
        (Arc::new(FlowsAsUsers), Arc::new(FlowVariables));
    let purging = Job::every(
        "flows.purge",
        Duration::from_secs(600),
        "deletes runs of flows whose time is over",
        purge,
    );
    let parts = waits::add(Parts::default(), &engine).one_of(objects).one_of(variables);
    Ok(parts.job(purging).table_gauge(OPEN_RUNS).table_gauge(LATENESS).service(engine))
}

/// The area of flows.
pub struct Flows;

impl Domain for Flows {
    const AREA: &'static str = "Flows";
    const ORDER: u16 = 35;
    const DESCRIPTION: &'static str = "A flow is a graph of nodes that you draw, test and publish. Its runs do what the nodes say, and \
         may wait for a reply, an event, a person or a moment for as long as a year.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListFlows),
            Box::new(operations::CreateFlow),
            Box::new(mcp_tools::ListFlowMcpTools),
            Box::new(operations::GetFlow),
            Box::new(operations::UpdateFlow),
            Box::new(remove::DeleteFlow),
            Box::new(operations::DuplicateFlow),
            Box::new(validation::ValidateFlow),
            Box::new(publish::PublishFlow),
            Box::new(version_operations::ListFlowVersions),
            Box::new(version_operations::GetFlowVersion),
            Box::new(version_operations::RestoreFlowVersion),
            Box::new(runs::StartFlowRun),
            Box::new(runs::ListFlowRuns),
            Box::new(runs::GetFlowRun),
            Box::new(runs::ListFlowRunSteps),
            Box::new(runs::CancelFlowRun),
            Box::new(runs::RetryFlowRun),
            Box::new(publish::UnpublishFlow),
        ]
    }

    fn event_types() -> Vec<EventType> {
        let mut types = EventType::of::<FlowRunEvent<'_>>();
        types.extend(EventType::of::<ApprovalRequested>());
        types.extend(EventType::of::<CustomEvent>());
        types
    }
}
