//! Agents, for whoever assigns work to them or lets them run without a request.

use super::conversations::ChannelQuestion;
use super::skills::SkillPin;
use model::{
    AgentId, Answering, AutomationId, Chain, ChannelId, FlowRunId, KeyId, ReminderId, Result, RunId,
    WorkspaceId,
};
use operation::BoxFuture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use store::{Read, Tx};

/// A run that is started without a request.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The key on whose behalf it runs, and which pays. It must still have `runs:execute`.
    pub key: KeyId,
    /// The agent; `None` for the workspace's default agent.
    pub agent: Option<AgentId>,
    /// The input.
    pub input: String,
    /// What starts it, which the run shows as its trigger.
    pub trigger: StartedBy,
    /// The contact whom the agent answers, whose id it is told.
    pub answering: Option<Answering>,
    /// The messages that it answers over a channel. Its memory is then the conversation over that channel.
    pub question: Option<ChannelQuestion>,
    /// The conversation whose memory it has. `None` for one of its own.
    pub conversation: Option<String>,
    /// Whether a run that the conversation still has is cancelled and forgotten. Otherwise the new run waits for its end.
    pub supersedes: bool,
    /// Its place in a chain of causes. `None` for a run that starts a chain.
    pub chain: Option<Chain>,
    /// What names this start among all: of several attempts with one name, one makes a run.
    pub once: String,
    /// What differs from the settings of the agent.
    pub options: StartOptions,
}

/// What differs from the settings of the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StartOptions {
    /// A version of the agent. `None` for the current one.
    pub version: Option<i64>,
    /// A JSON Schema of the answer.
    pub schema: Option<Value>,
    /// The most Energy that the run may use. The limits of the agent count as well.
    pub energy_limit: Option<i64>,
    /// The tier of a model that only reads the input: the run has no instructions, tools, skills or memory of the agent.
    pub reading_tier: Option<String>,
}

/// What starts a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartedBy {
    /// A reminder.
    Reminder(ReminderId),
    /// A contact that wrote over a channel.
    Channel(ChannelId),
    /// A run of a flow.
    Flow(FlowRunId),
    /// An automation.
    Automation(AutomationId),
}

/// The result of a run that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The word for how it ended, such as `completed`.
    pub status: &'static str,
    /// The agent.
    pub agent: AgentId,
    /// The text of the answer. An incomplete run may have one too.
    pub output: Option<String>,
    /// The answer as JSON, if a schema was asked for and the answer fits it.
    pub data: Option<Value>,
    /// Why the run is incomplete, cancelled or expired.
    pub reason: Option<String>,
    /// Why the run failed: a word, and a sentence for people.
    pub failure: Option<(String, String)>,
    /// The Energy spent, after refunds.
    pub energy: i64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// The word for it, such as `completed`.
    pub status: &'static str,
    /// The agent.
    pub agent: AgentId,
    /// The answer, where the run was completed.
    pub output: Option<String>,
    /// The place in the chain of causes of what the run leads to, such as the message with its answer.
    pub leads_to: Option<Chain>,
}

/// Runs of agents, for other groups.
pub trait AgentRuns: Send + Sync {
    /// Makes sure that a run of this agent, or of the default agent, could be started now.
    ///
    /// # Errors
    /// As those of `POST /runs`: `not_found`, `agent_inactive`, `agent_not_configured`.
    fn expect_active(&self, read: &mut Read, workspace: WorkspaceId, agent: Option<AgentId>) -> Result<()>;

    /// Starts a run, which then goes on in the background. Once it was started, starting it again within a day gives the
    /// same run.
    ///
    /// # Errors
    /// As those of `POST /runs`; `missing_scope` where the key may not run agents any more, `workspace_blocked`.
    fn start(&self, run: StartRun) -> BoxFuture<Result<RunId>>;

    /// Waits for the end of a run, on whichever replica it is. A run that waits for an approval has not ended.
    ///
    /// # Errors
    /// `not_found`.
    fn ended(&self, workspace: WorkspaceId, run: RunId) -> BoxFuture<Result<RunEnd>>;

    /// Returns the result of a run. `None` while it has not ended.
    ///
    /// # Errors
    /// `not_found`.
    fn result(&self, read: &mut Read, workspace: WorkspaceId, run: &RunId) -> Result<Option<RunResult>>;

    /// Cancels a run that has not ended, because what started it was cancelled.
    ///
    /// # Errors
    /// When the database fails.
    fn cancel(&self, tx: &mut Tx, workspace: WorkspaceId, run: &RunId) -> Result<()>;
}

/// The agents of all workspaces. The group that keeps them implements it.
pub trait LiveAgents: Send + Sync {
    /// Those of the workspace's agents that have one of these ids and were not deleted, in no order.
    ///
    /// # Errors
    /// When the database fails.
    fn among(&self, read: &mut Read, workspace: WorkspaceId, ids: &[AgentId]) -> Result<Vec<AgentId>>;

    /// The agents of the workspace that have skills, with these, in the order of their ids.
    ///
    /// # Errors
    /// When the database fails.
    fn skills(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<AgentSkill>>;

    /// The names by which models call the tools of the workspace's agents, and the names of the tools themselves.
    ///
    /// # Errors
    /// When the database fails.
    fn tool_names(&self, read: &mut Read, workspace: WorkspaceId) -> Result<BTreeSet<String>>;
}

/// A skill of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSkill {
    /// The agent.
    pub agent: AgentId,
    /// Its name.
    pub name: String,
    /// Whether it can run now.
    pub is_active: bool,
    /// The skill.
    pub pin: SkillPin,
}

/// The agents of all workspaces. A service that operations ask for.
#[derive(Clone)]
pub struct AgentDirectory(Arc<dyn LiveAgents>);

impl AgentDirectory {
    /// The directory of these agents.
    pub fn new(agents: impl LiveAgents + 'static) -> Self {
        Self(Arc::new(agents))
    }

    /// Whether the workspace has an agent with this id that was not deleted.
    ///
    /// # Errors
    /// When the database fails.
    pub fn has(&self, read: &mut Read, workspace: WorkspaceId, id: AgentId) -> Result<bool> {
        Ok(!self.0.among(read, workspace, &[id])?.is_empty())
    }
}

impl Deref for AgentDirectory {
    type Target = dyn LiveAgents;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
