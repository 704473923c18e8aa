//! Ports: what one group of areas may ask of another. Small traits, implemented by their owner and wired by the
//! composition.

mod agents;
mod collections;
mod contacts;
mod conversations;
mod dated;
mod flows;
mod functions;
mod messages;
mod people;
mod references;
mod skills;
mod structured;
mod takers;
mod uses;
mod variables;

pub use agents::{
    AgentDirectory, AgentRuns, AgentSkill, LiveAgents, RunEnd, RunResult, StartOptions, StartRun, StartedBy,
};
pub use collections::{CollectionDirectory, Collections, RecordField, item_query};
pub use contacts::{
    Audience, ChatIdentity, ConsentStatement, ConsentTies, ContactBook, ContactCard, ContactKey, ContactRef,
    HandOver, HandoffReason, People,
};
pub use conversations::{
    AssignedConversations, AutoAssignment, ChannelQuestion, ChannelTurn, ChannelTurns, Speaker,
};
pub use dated::{DateWindow, DatedRecord, DatedRecords, DatedSet};
pub use expressions::placeholder::{Placeholder, placeholders, whole_placeholder, with_values};
pub use flows::{
    FlowAnswer, FlowResponse, FlowStart, FlowStarter, Flows, StartFlow, StartableFlow, Unstartable,
    WorkspaceFlows,
};
pub use functions::{
    CallableFunction, FunctionCall, FunctionCaller, FunctionEffect, FunctionEnd, FunctionFailure, Functions,
    InlineCall, Uncallable, WorkspaceFunctions,
};
pub use messages::{MessageContent, MessageSender, MessageToSend, Messenger, SentBy, TemplateToSend};
pub use people::{
    BUSINESS_FACTS, BusinessCalendar, BusinessRetention, KeptDays, Member, Members, OpenWork,
    OpenWorkDirectory, Opening, TeamMembers, WorkType,
};
pub use references::{ContactReferences, ContactUses, FileReferences, FileUse, FileUses, Left};
pub use skills::{
    MissingSkill, OfferedFile, OfferedSkill, SkillActivation, SkillFileText, SkillLibrary, SkillPin,
    SkillScript, Skills,
};
pub use structured::{StructuredAnswer, StructuredRuns, StructuredTask, Structurer};
pub use takers::{IncomingMessage, IncomingMessages, MessageTaker, MessageTakers, TakerRank, Taking};
pub use uses::{ObjectUse, ObjectUsers, ObjectUses, UsedObject, in_use};
pub use variables::{
    KnownVariable, VariableReference, VariableUserDirectory, VariableUsers, Variables, WorkspaceVariables,
    referenced_variables, with_variables,
};

use model::{AgentId, Caller, Result, RunId, StepId, Timestamp, WorkspaceId};
use std::sync::Arc;
use store::{Read, Tx};

/// What a piece of work is charged to.
#[derive(Debug, Clone)]
pub struct Charge {
    /// Who asked for the work.
    pub caller: Caller,
    /// The run that spends.
    pub run: RunId,
    /// The agent that runs.
    pub agent: AgentId,
    /// What it is called in ledgers, such as `run`.
    pub operation: &'static str,
    /// What the agent may spend.
    pub limits: AgentLimits,
    /// Whether nothing was held for the run yet, as far as its worker knows. It saves a look, and decides nothing.
    pub is_new: bool,
}

/// The most Energy that an agent may spend. `None` sets no bound of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentLimits {
    /// All its runs together, in the calendar month (UTC) in which they began.
    pub month: Option<i64>,
    /// One run.
    pub run: Option<i64>,
}

/// Energy that was used in one step.
#[derive(Debug, Clone)]
pub struct Settlement<'a> {
    /// The step's number within the run: settling a step again changes nothing.
    pub step: i64,
    /// Energy used. What is beyond the hold is absorbed by the platform.
    pub energy: i64,
    /// The model that used it.
    pub model: &'a str,
    /// Set with the last step: what is still held is released and the execution is recorded.
    pub close: Option<Closing<'a>>,
}

/// How a piece of work ended.
#[derive(Debug, Clone, Copy)]
pub struct Closing<'a> {
    /// The word for ledgers, such as `completed`.
    pub status: &'a str,
    /// Whether what was spent is given back, because nothing usable came of it.
    pub refund: bool,
    /// The last step of its trace; `None` for work without one.
    pub last_step: Option<i64>,
}

/// Work of a test key that has ended.
#[derive(Debug, Clone, Copy)]
pub struct TestExecution<'a> {
    /// How it ended, such as `completed`.
    pub status: &'a str,
    /// The model that it used.
    pub model: &'a str,
    /// The first step of the attempt that counts.
    pub first_step: i64,
    /// The last step of its trace.
    pub last_step: Option<i64>,
}

/// The keeper of Energy. Every method works in the caller's transaction, so that work and charge are one.
///
/// Runs of test keys cost nothing: only their executions are recorded.
pub trait EnergyMeter: Send + Sync {
    /// Makes sure that at least `least` and at most `wanted` Energy is set aside for the next step, beside what the
    /// run has used, and gives how much that is. What is refused leaves no trace, so the caller may go on.
    ///
    /// # Errors
    /// The first that does not allow `least`, in this order: `budget_exceeded` for the key's budget with cut-off,
    /// `energy_depleted` (with `recharge_url`) for the workspace, and with `param` = `energy_limit_monthly` or
    /// `energy_limit_per_run` for the agent.
    fn hold(&self, tx: &mut Tx, charge: &Charge, wanted: i64, least: i64) -> Result<i64>;

    /// Sets Energy aside for the first steps of many new runs with a few statements: `wanted` for each charge. Tells for which
    /// it did. The others left no trace: [`hold`](Self::hold) says what becomes of them.
    ///
    /// # Errors
    /// When the database fails.
    fn hold_all(&self, tx: &mut Tx, holds: &[(Charge, i64)]) -> Result<Vec<bool>>;

    /// Whether a hold of at least `least` would be allowed at this moment, for work that is to wait before it begins:
    /// nothing is set aside.
    ///
    /// # Errors
    /// As those of [`hold`](Self::hold).
    fn admit(&self, tx: &mut Tx, charge: &Charge, least: i64) -> Result<()>;

    /// Debits what a step used, as far as it was held, and gives what was debited: what a step cost beyond its hold is
    /// never the customer's.
    ///
    /// # Errors
    /// When the database fails.
    fn settle(&self, tx: &mut Tx, charge: &Charge, settlement: &Settlement<'_>) -> Result<i64>;

    /// The same as [`settle`](Self::settle) for steps of different runs, by few statements for all that are ordinary.
    ///
    /// # Errors
    /// When the database fails.
    fn settle_all(&self, tx: &mut Tx, settlements: &[(Charge, Settlement<'_>)]) -> Result<Vec<i64>>;

    /// Lets work that was closed with a refund begin anew under its own name. The steps of the new attempt begin with
    /// `first_step`, behind those of the one before, and only they are given back if it is refunded too.
    ///
    /// # Errors
    /// When the database fails.
    fn reopen(&self, tx: &mut Tx, charge: &Charge, first_step: i64) -> Result<()>;

    /// Records the end of a test key's work among the executions, at no cost.
    ///
    /// # Errors
    /// When the database fails.
    fn record_test(&self, tx: &mut Tx, charge: &Charge, execution: &TestExecution<'_>) -> Result<()>;
}

/// A step of a run, as bills show it; a query selects its columns in this order.
#[derive(Debug, Clone, PartialEq, Eq, diesel::Queryable)]
pub struct TraceStep {
    /// The id.
    pub id: StepId,
    /// Its place in the run.
    pub position: i64,
    /// The type of step, such as a model call or a tool call.
    pub kind: String,
    /// The name of the model or tool.
    pub name: String,
    /// The final status.
    pub status: String,
    /// The number of input tokens.
    pub input_tokens: i64,
    /// The number of output tokens.
    pub output_tokens: i64,
    /// The Energy spent, after refunds.
    pub energy: i64,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; `None` while it has not.
    pub completed_at: Option<Timestamp>,
}

/// The traces of runs.
pub trait RunTraces: Send + Sync {
    /// The steps of the workspace's run `run` from position `first` to `last`, in their order; none where there is no
    /// such run.
    ///
    /// # Errors
    /// When the database fails.
    fn steps(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        run: &str,
        first: i64,
        last: i64,
    ) -> Result<Vec<TraceStep>>;
}

/// An object that links may point at, as links show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedTarget {
    /// Its id, as text.
    pub id: String,
    /// Its title, where it has one.
    pub title: Option<String>,
    /// The type of its bytes, where it is a file.
    pub mime_type: Option<String>,
    /// Its status, where it has one.
    pub status: Option<String>,
}

/// Objects of one type that links may point at. Each group that keeps such objects implements it.
pub trait LinkTargets: Send + Sync {
    /// The word for the type in links, such as `run`.
    fn target_type(&self) -> &'static str;

    /// Whether the workspace has a live object with this id. It is then kept until the transaction ends: nobody moves it
    /// to the trash or deletes it meanwhile. An id of the wrong form is that of no object.
    ///
    /// # Errors
    /// When the database fails.
    fn hold(&self, tx: &mut Tx, workspace: WorkspaceId, id: &str) -> Result<bool>;

    /// The id of the object that took the place of one that is gone, as when contacts are merged.
    ///
    /// # Errors
    /// When the database fails.
    fn survivor(&self, _read: &mut Read, _workspace: WorkspaceId, _id: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Those of the workspace's live objects that have one of these ids, in no order.
    ///
    /// # Errors
    /// When the database fails.
    fn show(&self, read: &mut Read, workspace: WorkspaceId, ids: &[&str]) -> Result<Vec<LinkedTarget>>;
}

/// Everything that links may point at beside items and files, by its type. A service that operations ask for.
#[derive(Clone, Default)]
pub struct LinkDirectory(Vec<Arc<dyn LinkTargets>>);

impl LinkDirectory {
    /// A directory of these types.
    pub fn new(targets: impl IntoIterator<Item = Arc<dyn LinkTargets>>) -> Self {
        Self(targets.into_iter().collect())
    }

    /// The objects of a type; `None` where the service keeps no such objects.
    pub fn of(&self, target_type: &str) -> Option<&dyn LinkTargets> {
        self.0.iter().find(|targets| targets.target_type() == target_type).map(|targets| &**targets)
    }
}
