//! Declares the group of flows.

use crate::draft::uses::{FlowVariables, FlowsAsUsers};
use crate::draft::{mcp_tools, operations, publish, remove, validation, version_operations};
use crate::engine::{EngineParts, FlowEngine};
use model::Result;
use operation::{Domain, Group, Operations, Parts, Services};
use ports::{ObjectUsers, VariableUsers};
use std::sync::Arc;

/// The group of flows.
pub const GROUP: Group = Group { declare: |declarations| Ok(declarations.area::<Flows>()), start };

fn start(services: &Services) -> Result<Parts> {
    let engine = FlowEngine::new(EngineParts::of(services)?);
    Ok(Parts::default().service(engine).one_of::<Arc<dyn ObjectUsers>>(Arc::new(FlowsAsUsers)).one_of::<Arc<
        dyn VariableUsers,
    >>(
        Arc::new(FlowVariables),
    ))
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
            Box::new(publish::UnpublishFlow),
            Box::new(version_operations::ListFlowVersions),
            Box::new(version_operations::GetFlowVersion),
            Box::new(version_operations::RestoreFlowVersion),
        ]
    }
}
