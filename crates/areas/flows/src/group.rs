//! Declares the group of flows.

use crate::engine::{EngineParts, FlowEngine};
use crate::events::{ApprovalRequested, FlowRunEvent};
use crate::runs::operations as runs;
use crate::waits::approvals::FlowApprovals;
use crate::waits::energy;
use crate::waits::events::FlowEvents;
use crate::waits::references::FlowReferences;
use crate::waits::replies::Replies;
use action_links::LinkRoute;
use events::EventConsumer;
use model::Result;
use operation::{Domain, EventType, Group, Operations, Parts, Services};
use ports::{ContactReferences, MessageTaker, WorkspaceFlows};
use std::sync::Arc;

/// The group of flows.
pub const GROUP: Group = Group { declare: |declarations| Ok(declarations.area::<Flows>()), start };

fn start(services: &Services) -> Result<Parts> {
    let engine = FlowEngine::new(EngineParts::of(services)?);
    services.get::<WorkspaceFlows>()?.connect(engine.clone());
    let parts = Parts::default()
        .jobs([energy::job(&engine)])
        .raw_route(LinkRoute::new(FlowApprovals(engine.clone())))
        .one_of::<Arc<dyn MessageTaker>>(Arc::new(Replies(engine.clone())))
        .one_of::<Arc<dyn EventConsumer>>(Arc::new(FlowEvents(engine.clone())))
        .one_of::<Arc<dyn ContactReferences>>(Arc::new(FlowReferences(engine.clone())));
    Ok(parts.service(engine))
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
            Box::new(runs::StartFlowRun),
            Box::new(runs::ListFlowRuns),
            Box::new(runs::GetFlowRun),
            Box::new(runs::ListFlowRunSteps),
            Box::new(runs::CancelFlowRun),
            Box::new(runs::RetryFlowRun),
        ]
    }

    fn event_types() -> Vec<EventType> {
        let mut all = EventType::of::<FlowRunEvent<'_>>();
        all.extend(EventType::of::<ApprovalRequested>());
        all
    }
}
