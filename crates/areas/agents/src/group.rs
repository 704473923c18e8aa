//! Declares the group of agents: its area, its sealed tables and its ports.

use crate::sealed::{SEALED_TOOLS, SEALED_VERSIONS};
use crate::uses::AgentsAsUsers;
use crate::variables::AgentVariables;
use crate::{WorkspaceAgents, lifecycle, operations, skills, tool_operations, versions};
use model::Result;
use operation::{Declarations, Domain, Group, Operations, Parts, Services};
use ports::{AgentDirectory, ObjectUsers, VariableUsers};
use std::sync::Arc;

/// The group of agents.
pub const GROUP: Group = Group { declare, start };

fn declare(declarations: Declarations) -> Result<Declarations> {
    Ok(declarations.area::<Agents>().sealed([&SEALED_TOOLS, &SEALED_VERSIONS]))
}

fn start(_: &Services) -> Result<Parts> {
    Ok(Parts::default()
        .service(AgentDirectory::new(WorkspaceAgents))
        .one_of::<Arc<dyn ObjectUsers>>(Arc::new(AgentsAsUsers))
        .one_of::<Arc<dyn VariableUsers>>(Arc::new(AgentVariables)))
}

/// The area of agents.
pub struct Agents;

impl Domain for Agents {
    const AREA: &'static str = "Agents";
    const ORDER: u16 = 30;
    const DESCRIPTION: &'static str = "Agents answer inputs with a language model, following their instructions and calling their tools. \
         Every change of an agent creates a version, which can be read and restored.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListAgents),
            Box::new(operations::CreateAgent),
            Box::new(operations::GetAgent),
            Box::new(operations::UpdateAgent),
            Box::new(operations::DeleteAgent),
            Box::new(lifecycle::DuplicateAgent),
            Box::new(lifecycle::ActivateAgent),
            Box::new(lifecycle::DeactivateAgent),
            Box::new(lifecycle::SetDefaultAgent),
            Box::new(tool_operations::ListAgentTools),
            Box::new(tool_operations::AttachAgentTool),
            Box::new(tool_operations::DetachAgentTool),
            Box::new(skills::SetAgentSkills),
            Box::new(versions::ListAgentVersions),
            Box::new(versions::GetAgentVersion),
            Box::new(versions::RestoreAgentVersion),
        ]
    }
}
