//! Submission of a run: everything that can refuse it, then the row and its first step, in one transaction.

use super::acceptance::{Acceptance, Accepted, Asked, Looked};
use super::conversation;
use super::ending::Ended;
use super::engine::{RunEngine, is_superseded};
use super::finish::outcome;
use super::guard::{GuardFinding, Guards};
use super::listen::Listener;
use super::memory::{self, ConversationMemory};
use super::model::{NewRun, RunOptions, RunRow, RunStatus, WantedVersion};
use super::queries;
use super::step::write_finished;
use super::stream::RunStream;
use super::work::{Plan, Start, Work};
use agents::guardrails::GuardrailStage;
use agents::{AgentRow, AgentStatus, Settings, ToolRow, check_metadata};
use auth::idempotency::{self, Claim};
use model::{AgentId, Caller, Code, Error, JsonText, Result, RunId, Timestamp, WorkspaceId};
use operation::EventStream;
use providers::Tier;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use store::{Read, Tx};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// How often a run is looked at that another worker drives.
const LOOK: Duration = Duration::from_millis(200);

/// How a request for a run is answered.
pub(super) enum Submitted {
    /// With the run.
    Run(Box<Submission>),
    /// With what happens in it.
    Events(EventStream),
}

impl Submitted {
    fn run(submission: Submission) -> Self {
        Self::Run(Box::new(submission))
    }
}

/// A run as its request is answered.
pub(super) struct Submission {
    pub(super) row: RunRow,
    /// It goes on longer than a request should wait.
    pub(super) still_running: bool,
    /// Whether the answer was stored as the outcome of the request already.
    stored: bool,
}

impl RunEngine {
    /// Makes a run and, unless it is to go on in the background or is streamed, waits for its end. The answer is
    /// stored as the outcome of the request, if not with the run's last transaction then here. A streamed run is
    /// accepted with the outcome that it goes on, which its end replaces.
    pub(super) async fn submit(
        &self,
        caller: &Caller,
        new: NewRun,
        claim: Option<Claim>,
    ) -> Result<Submitted> {
        let submitted = self.make_or_find(caller, new, claim.clone()).await?;
        let unstored = match &submitted {
            Submitted::Run(run) if !run.stored => Some(run.row.clone()),
            _ => None,
        };
        if let (Some(row), Some(claim)) = (unstored, claim) {
            let engine = self.clone();
            self.db().write(move |tx| engine.store_outcome(tx, &claim, &row, false)).await?;
        }
        Ok(submitted)
    }

    async fn make_or_find(&self, caller: &Caller, new: NewRun, claim: Option<Claim>) -> Result<Submitted> {
        check_metadata(new.metadata.as_ref())?;
        if new.stream && new.background {
            return Err(Error::invalid("stream", "cannot be true together with `background`"));
        }
        if let Some(format) = &new.response_format {
            format.check()?;
        }
        let begun = self.begun_before(caller, claim.as_ref()).await?;
        let failed = match begun {
            Some(row) if row.status == RunStatus::Failed => Some(row.id),
            Some(row) => return self.wait_for(row, self.patience(), claim).await,
            None => None,
        };
        let background = new.background;
        let (listener, heard) = new.stream.then(Listener::new).unzip();
        let (accepted, told_accepted) = oneshot::channel();
        let (engine, caller, kept) = (self.clone(), caller.clone(), claim.clone());
        // The run goes on when its caller hangs up, so no part of it lives in the request's future.
        let driving = self.0.parts.runtime.spawn(async move {
            let (mut work, start) = match (failed, kept.clone()) {
                (Some(id), Some(claim)) => {
                    let (work, start) = engine.retry(caller, new, id, claim).await?;
                    (work, Some(start))
                }
                (_, claim) => engine.accept(caller, new, claim, RunOptions::default()).await?,
            };
            work.listener = listener;
            // Nobody listens any more where the caller hung up.
            let _ = accepted.send(work.row.clone());
            engine.drive(work, start, kept.filter(|_| !background)).await
        });
        match (told_accepted.await, heard) {
            (Ok(row), Some(heard)) => Ok(Submitted::Events(RunStream::events(self, row, heard, driving)?)),
            (Ok(row), None) if background => {
                Ok(Submitted::run(Submission { row, still_running: false, stored: true }))
            }
            (Ok(row), None) => self.await_end(row, driving, claim).await,
            // It was refused.
            (Err(_), _) => driving.await.map_err(Error::internal)??.submitted(),
        }
    }

    async fn await_end(
        &self,
        row: RunRow,
        driving: JoinHandle<Result<Ended>>,
        claim: Option<Claim>,
    ) -> Result<Submitted> {
        let began = Instant::now();
        match timeout(self.patience(), driving).await {
            Ok(ended) => match ended.map_err(Error::internal)? {
                Err(error) if is_superseded(&error) => {
                    let left = self.patience().saturating_sub(began.elapsed());
                    self.wait_for(row, left, claim).await
                }
                ended => ended?.submitted(),
            },
            Err(_) => self.still_running(row, claim).await,
        }
    }

    /// The run that an earlier request with the same `Idempotency-Key` has begun.
    pub(super) async fn begun_before(
        &self,
        caller: &Caller,
        claim: Option<&Claim>,
    ) -> Result<Option<RunRow>> {
        let Some(resource) = claim.and_then(|claim| claim.resource.as_deref()) else { return Ok(None) };
        let id = RunId::parse(resource).ok_or_else(|| Error::internal("a claim names no run"))?;
        let workspace = caller.workspace_id();
        Ok(Some(self.db().read(move |read| queries::by_id(read, workspace, &id)).await?))
    }

    /// Waits for a run that another worker drives; if that worker is dead, the run will be resumed.
    pub(super) async fn wait_for(
        &self,
        row: RunRow,
        patience: Duration,
        claim: Option<Claim>,
    ) -> Result<Submitted> {
        let deadline = Instant::now() + patience;
        loop {
            let (workspace, id) = (row.workspace_id, row.id.clone());
            let now = self.db().read(move |read| queries::by_id(read, workspace, &id)).await?;
            if now.status.is_at_rest() {
                return Ended { row: now, stored: false }.submitted();
            }
            if Instant::now() >= deadline {
                return self.still_running(row, claim).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The answer for a run that goes on longer than a request should wait. Stored as the outcome of its request until
    /// the run's end replaces it, and under the run's lock, so that it never replaces the run's end.
    async fn still_running(&self, row: RunRow, claim: Option<Claim>) -> Result<Submitted> {
        let engine = self.clone();
        let row = self.db().write(move |tx| {
            let row = queries::locked(tx, row.workspace_id, &row.id)?;
            if let Some(claim) = claim.as_ref().filter(|_| !row.status.is_at_rest()) {
                engine.store_outcome(tx, claim, &row, true)?;
            }
            Ok(row)
        });
        let row = row.await?;
        if row.status.is_at_rest() {
            return Ended { row, stored: false }.submitted();
        }
        Ok(Submitted::run(Submission { row, still_running: true, stored: true }))
    }

    /// Accepts a run. `base` says of its options what the request does not.
    pub(super) async fn accept(
        &self,
        caller: Caller,
        new: NewRun,
        claim: Option<Claim>,
        base: RunOptions,
    ) -> Result<(Work, Option<Start>)> {
        let asked = Arc::new(Asked { caller, new, claim, base });
        let mut looked: Option<Arc<Looked>> = None;
        loop {
            let acceptance = Acceptance { asked: asked.clone(), looked: looked.take() };
            match self.db().write_batched(&self.0.acceptances, self.clone(), acceptance).await? {
                Accepted::Run(work, start) => return Ok((*work, start)),
                Accepted::LookFirst(rules) => {
                    let input = asked.new.input.clone();
                    let look = tokio::task::spawn_blocking(move || Looked::at(rules, input));
                    looked = Some(Arc::new(look.await.map_err(Error::internal)??));
                }
            }
        }
    }

    /// Accepts a run in a transaction.
    pub(super) fn accept_in(&self, tx: &mut Tx, acceptance: &Acceptance) -> Result<Accepted> {
        let Acceptance { asked, looked } = acceptance;
        let (Asked { caller, new, claim, .. }, looked) = (&**asked, looked.as_deref());
        let agent = agent_for(tx, caller, new)?;
        let (settings, tools) = version_for(tx, &agent, new)?;
        self.tiers().expect_model(settings.model)?;
        let looked = looked.filter(|looked| looked.rules == settings.guardrails);
        if looked.is_none() && !settings.guardrails.is_empty() {
            return Ok(Accepted::LookFirst(settings.guardrails));
        }
        let mut row = fresh_row(tx, caller, new, &agent, &settings)?;
        let named = new.conversation_id.is_some();
        let waits = named && self.must_wait(tx, new.on_busy, &row)?;
        if !caller.livemode() {
            queries::count_test_run(tx, caller.workspace_id(), caller.workspace.plan.test_runs_per_day)?;
        }
        let guards = looked.map(|looked| looked.guards.clone()).unwrap_or_default();
        let plan = self.plan(tx, asked, &mut row, (settings, tools), guards)?;
        // A run that waits reads its memory when its turn comes.
        let memory = if named && !waits {
            memory::memory(self.turns(), tx, &row, &plan.settings, &plan.guards)?
        } else {
            ConversationMemory::default()
        };
        let report = looked.and_then(|looked| looked.report.clone());
        let over = report.as_ref().and_then(|report| report.ending(GuardrailStage::Input, &plan.settings));
        let blocked = over.is_some();
        // What is blocked is stored as it came; the model never sees it.
        if let Some(looked) = looked.filter(|_| !blocked) {
            row.input = Some(looked.input.clone());
        }
        let mut work = Work { memory, ..self.work_on(plan, row) };
        if blocked || !waits {
            work.start(tx.now());
        }
        if waits && !blocked {
            self.admit(tx, &work)?;
        }
        queries::insert(tx, &work.row)?;
        if let Some(report) = report {
            self.note(&mut work, &GuardFinding { stage: GuardrailStage::Input, at: json!({}), report });
            write_finished(tx, &work)?;
            work.written = work.steps.len();
        }
        let start = match (over, waits) {
            (Some(ending), _) => Some(Start::Over(ending)),
            (None, true) => None,
            (None, false) => Some(self.begin(tx, &mut work)?),
        };
        if let Some(claim) = claim.as_ref() {
            idempotency::attach(tx, claim, work.row.id.as_str())?;
            if new.background || new.stream {
                self.store_outcome(tx, claim, &work.row, new.stream)?;
            }
        }
        Ok(Accepted::Run(Box::new(work), start))
    }

    /// A run that this process works on from now on.
    pub(super) fn work_on(&self, plan: Arc<Plan>, row: RunRow) -> Work {
        let working = self.active().work_on(&row.id, conversation::key(&row));
        Work::new(plan, working, row, ConversationMemory::default())
    }

    /// What a run is to do, which its row keeps.
    pub(super) fn plan(
        &self,
        tx: &mut Tx,
        asked: &Asked,
        row: &mut RunRow,
        (settings, tools): (Settings, Vec<ToolRow>),
        guards: Arc<Guards>,
    ) -> Result<Arc<Plan>> {
        let Asked { caller, new, base, .. } = asked;
        let mut options = options(caller, new, &settings, base);
        if options.contact.is_some() {
            // A small model is confused by what it does not need.
            let takes_contacts = tools.iter().map(ToolRow::takes_contacts).collect::<Result<Vec<bool>>>()?;
            options.hides_contact = !takes_contacts.contains(&true);
        }
        self.read_placeholders(tx, caller, &settings, &tools, &mut options)?;
        row.options = JsonText::of(&options);
        Ok(Arc::new(Plan::new(caller.clone(), settings, tools, guards, options)?))
    }
}

impl Ended {
    pub(super) fn submitted(self) -> Result<Submitted> {
        let (row, stored) = (outcome(self.row)?, self.stored);
        Ok(Submitted::run(Submission { row, still_running: false, stored }))
    }
}

/// Names the part of the request that an unknown object stood in.
fn naming(param: &str) -> impl Fn(Error) -> Error {
    move |error| if error.code() == Code::NotFound { error.param(param) } else { error }
}

fn agent_for(read: &mut Read, caller: &Caller, new: &NewRun) -> Result<AgentRow> {
    if !matches!(new.agent_version, Some(WantedVersion::Draft(_))) {
        return expect_active(read, caller.workspace_id(), new.agent_id);
    }
    let agent = named_agent(read, caller.workspace_id(), new.agent_id)?;
    if caller.livemode() {
        return Err(Error::invalid("agent_version", "can be `draft` only with a test key"));
    }
    Ok(agent)
}

/// The active agent with this id; without one, the workspace's default agent.
///
/// # Errors
/// `not_found`, `agent_inactive`, `agent_not_configured`.
pub(super) fn expect_active(
    read: &mut Read,
    workspace: WorkspaceId,
    id: Option<AgentId>,
) -> Result<AgentRow> {
    let agent = named_agent(read, workspace, id)?;
    if agent.status != AgentStatus::Active {
        return Err(Error::new(Code::AgentInactive, "The agent is not active. Activate it first."));
    }
    Ok(agent)
}

fn named_agent(read: &mut Read, workspace: WorkspaceId, id: Option<AgentId>) -> Result<AgentRow> {
    match id {
        Some(id) => agents::queries::live_agent(read, workspace, id).map_err(naming("agent_id")),
        None => agents::queries::default_agent(read, workspace)?.ok_or_else(|| {
            Error::new(
                Code::AgentNotConfigured,
                "The workspace has no default agent. Create an agent, or send `agent_id`.",
            )
        }),
    }
}

fn version_for(read: &mut Read, agent: &AgentRow, new: &NewRun) -> Result<(Settings, Vec<ToolRow>)> {
    match wanted_number(new).filter(|version| *version != agent.version) {
        Some(version) => agents::queries::version_settings(read, agent.workspace_id, agent.id, version)
            .map_err(naming("agent_version")),
        None => Ok((agent.settings()?, agents::queries::tools(read, agent.id)?)),
    }
}

/// The version that a new run asks for by its number.
fn wanted_number(new: &NewRun) -> Option<i64> {
    new.agent_version.and_then(WantedVersion::number)
}

fn options(caller: &Caller, new: &NewRun, settings: &Settings, base: &RunOptions) -> RunOptions {
    let format = new.response_format.as_ref().unwrap_or(&settings.response_format);
    RunOptions {
        json: format.schema().is_some(),
        response_format: new.response_format.clone(),
        max_steps: new.max_steps,
        timeout_seconds: new.timeout_seconds,
        background: new.background,
        idempotency_key: caller.idempotency_key.clone(),
        trace: caller.trace.clone(),
        draft: matches!(new.agent_version, Some(WantedVersion::Draft(_))),
        trigger: new.trigger.clone(),
        contact: new.answering.map(|answering| answering.contact),
        contact_epoch: new.answering.map(|answering| answering.epoch),
        question: new.question,
        ..base.clone()
    }
}

/// The row of a new run. Where its conversation has a name, that is locked from here on.
pub(super) fn fresh_row(
    tx: &mut Tx,
    caller: &Caller,
    new: &NewRun,
    agent: &AgentRow,
    settings: &Settings,
) -> Result<RunRow> {
    let workspace_id = caller.workspace_id();
    let (moment, conversation_id) = match &new.conversation_id {
        Some(name) => {
            let key = conversation::key_of(workspace_id, caller.livemode(), agent.id, name);
            conversation::lock(tx, key)?;
            (conversation::next_moment(tx, workspace_id, name)?, Some(name.clone()))
        }
        None => (tx.now(), None),
    };
    let id = RunId::new(moment, &*tx.random());
    let conversation_id = conversation_id.unwrap_or_else(|| id.as_str().replacen("run_", "eph_", 1));
    Ok(RunRow {
        ephemeral: conversation_id.starts_with("eph_"),
        conversation_id,
        lease_until: Some(tx.now().plus_seconds(queries::LEASE_SECONDS)),
        queued_at: moment,
        agent_id: agent.id,
        agent_version: wanted_number(new).unwrap_or(agent.version),
        model: settings.model,
        input: Some(new.input.clone()),
        metadata: JsonText::of(&new.metadata.clone().unwrap_or_default()),
        ..empty_row(caller, workspace_id, id, moment)
    })
}

/// A run of which nothing is known but who asks.
fn empty_row(caller: &Caller, workspace_id: WorkspaceId, id: RunId, moment: Timestamp) -> RunRow {
    RunRow {
        workspace_id,
        id,
        livemode: caller.livemode(),
        agent_id: model::AgentId(0),
        agent_version: 0,
        status: RunStatus::Queued,
        input: None,
        output: None,
        conversation_id: String::new(),
        ephemeral: false,
        model: Tier::default(),
        incomplete_reason: None,
        error: None,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        reasoning_tokens: 0,
        model_calls: 0,
        tool_calls: 0,
        energy: 0,
        simulated_energy: 0,
        options: JsonText::of(&RunOptions::default()),
        metadata: JsonText::of(&model::Metadata::default()),
        key_id: caller.key.id.clone(),
        key_lineage: caller.key.lineage.clone(),
        request_id: caller.request.clone(),
        lease_until: None,
        epoch: 1,
        queued_at: moment,
        started_at: None,
        completed_at: None,
        purged_at: None,
    }
}
