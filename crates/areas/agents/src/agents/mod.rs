//! Agents: instructions, a model tier, limits, and tools.
//!
//! Every change of an agent makes a new immutable version, and a run names the version it ran. An agent is created
//! as a draft, which is off; only an active agent runs. A deleted agent is archived: its versions stay for the runs
//! that name them, its name is free again.

mod callable;
mod directory;
mod functions;
mod grants;
pub mod guardrails;
pub mod lifecycle;
mod model;
pub mod operations;
mod placeholders;
pub mod queries;
mod sealed;
mod settings;
mod tool;
mod tool_rules;
pub mod tools;
pub mod usage;
mod variables;
pub mod versions;

pub(crate) use callable::Callable;
pub use directory::WorkspaceAgents;
pub(crate) use functions::{Function, Reach, Records, Takes};
pub(crate) use grants::scopes;
pub(crate) use model::check_metadata as check_run_metadata;
pub use model::{Agent, AgentPatch, AgentRow, AgentStatus, NewAgent};
pub(crate) use placeholders::{PARTS_OF_NOW, ROOTS, texts};
pub(crate) use queries::{ActiveAgent, active_agents};
pub(crate) use sealed::{SEALED_TOOLS, SEALED_VERSIONS};
pub use settings::{
    Handoff, Memory, MemoryMode, ReplyRules, ResponseFormat, ResponseKind, Settings, SkillRef,
};
pub(crate) use tool::header_place;
pub use tool::{
    AgentTool, Grant, HttpMethod, HttpTool, ToolAccess, ToolApproval, ToolFunction, ToolKind, ToolRow,
    ToolScope, ToolSettings,
};
pub use tools::ToolName;
pub(crate) use variables::AgentVariables;

use operation::{Domain, Operations};

/// The area.
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
            Box::new(tools::ListAgentTools),
            Box::new(tools::AttachAgentTool),
            Box::new(tools::DetachAgentTool),
            Box::new(tools::SetAgentSkills),
            Box::new(versions::ListAgentVersions),
            Box::new(versions::GetAgentVersion),
            Box::new(versions::RestoreAgentVersion),
            Box::new(usage::GetAgentUsage),
        ]
    }
}
