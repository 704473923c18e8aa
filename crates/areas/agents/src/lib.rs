//! Agents: instructions, a model tier, limits, and tools.
//!
//! Every change of an agent creates an immutable version, and a run records the version that it ran. An agent is
//! created as a draft; only an active agent runs. A deleted agent is archived: its versions remain for the runs that
//! refer to them, and its name becomes free.

mod agents_as_tools;
mod directory;
mod group;
mod guardrail_functions;
pub mod lifecycle;
mod model;
pub mod operations;
mod placeholders;
mod prompt_values;
pub mod queries;
mod run_skills;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod sealed;
mod settings;
pub mod skills;
pub mod tool_operations;
mod tools;
mod uses;
mod variables;
pub mod versions;

pub use self::model::{Agent, AgentPatch, AgentRow, AgentStatus, NewAgent, check_metadata};
pub use agents_as_tools::MOST_DEPTH;
pub use directory::WorkspaceAgents;
pub use group::{Agents, GROUP};
pub use placeholders::{PARTS_OF_NOW, ROOTS, texts};
pub use prompt_values::{PlaceholderReader, PlaceholderValues, PromptVariables, value_text};
pub use queries::{ActiveAgent, active_agents};
pub use run_skills::{KeptSkill, KeptVersions, RunSkills, SkillCall, SkillCaller, VersionReader, skill_text};
pub use settings::{
    Handoff, Memory, MemoryMode, ReplyRules, ResponseFormat, ResponseKind, Settings, SkillRef,
};
pub use tool_operations::ToolName;
pub use tools::{
    AgentTool, Callable, CalledFlow, CodeFunction, FIND_TOOLS, FoundTools, Function, Grant, HttpFailure,
    HttpMethod, HttpResult, HttpTool, LOAD_SKILL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, Reach, Records, Takes,
    ToolAccess, ToolApproval, ToolFunction, ToolKind, ToolRow, ToolScope, ToolSettings, bounded_answer,
    bounded_output, call_http, fenced, find_tools, flow_result, header_place, scopes, shorten,
    split_deferred,
};
