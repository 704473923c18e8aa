//! Accepting a run: everything that can refuse it, then the row and its first step, in one transaction.

use super::engine::{RunEngine, emit_end};
use super::execute::{Start, Work};
use super::model::{NewRun, OnBusy, RunOptions, RunRow, RunStatus};
use super::queries;
use crate::agents::queries as agents;
use crate::agents::{AgentStatus, MemoryMode, check_run_metadata};
use auth::idempotency::{self, Claim};
use model::{Caller, Code, Error, JsonText, Random, Result, RunId, Timestamp};
use std::time::Duration;
use store::{Read, Tx};

/// Runs that may wait in a conversation, the one that goes on included.
const LONGEST_QUEUE: usize = 10;
/// How long a request waits for its run before it answers 202.
const SYNC_WAIT: Duration = Duration::from_secs(100);
/// How long a run may wait for its turn.
const QUEUE_SECONDS: i64 = 600;

/// How a request for a run was answered.
pub(super) enum Submitted {
    /// The run has ended, or was asked for in the background.
    Done(RunRow),
    /// It goes on longer than a request should wait.
    StillRunning(RunRow),
}

impl RunEngine {
    /// Makes a run and, unless it is to go on in the background, waits for its end.
    pub(super) async fn submit(
        &self,
        caller: &Caller,
        new: NewRun,
        claim: Option<Claim>,
    ) -> Result<Submitted> {
        check_run_metadata(new.metadata.as_ref())?;
        if let Some(format) = &new.response_format {
            format.check()?;
        }
        let background = new.background;
        let work = match claim.as_ref().and_then(|claim| claim.resource.clone()) {
            Some(resource) => match self.take_up(caller, &resource).await? {
                TakenUp::Ended(row) => return Ok(Submitted::Done(row)),
                TakenUp::Elsewhere(row) => return self.wait_for(row).await,
                TakenUp::Ours(work) => *work,
            },
            None => self.accept(caller, new, claim.clone()).await?,
        };
        let accepted = work.row.clone();
        let engine = self.clone();
        let claim = claim.filter(|_| !background);
        // The run goes on when its caller hangs up, so it must not live in the request's future.
        let driving = tokio::spawn(async move { engine.drive(work, claim).await });
        if background {
            return Ok(Submitted::Done(accepted));
        }
        match tokio::time::timeout(SYNC_WAIT, driving).await {
            Ok(ended) => ended?.map(Submitted::Done),
            Err(_) => Ok(Submitted::StillRunning(accepted)),
        }
    }

    async fn accept(&self, caller: &Caller, new: NewRun, claim: Option<Claim>) -> Result<Work> {
        let engine = self.clone();
        let caller = caller.clone();
        self.db().write(move |tx| engine.accept_in(tx, &caller, &new, claim.as_ref())).await
    }

    fn accept_in(&self, tx: &mut Tx, caller: &Caller, new: &NewRun, claim: Option<&Claim>) -> Result<Work> {
        let agent = self.agent_for(tx, caller, new)?;
        let (settings, tools) = match new.agent_version.filter(|version| *version != agent.version) {
            Some(version) => {
                agents::version_settings(tx, caller.workspace_id(), agent.id, version).map_err(|error| {
                    if error.code() == Code::NotFound { error.param("agent_version") } else { error }
                })?
            }
            None => (agent.settings()?, agents::tools(tx, agent.id)?),
        };
        let now = tx.now();
        let random = tx.random();
        let mut row = fresh_row(caller, new, now, &*random);
        row.agent_id = agent.id;
        row.agent_version = new.agent_version.unwrap_or(agent.version);
        row.model = settings.model.as_str().to_owned();

        let waits = new.conversation_id.is_some() && self.must_wait(tx, caller, new, &row)?;
        if !caller.livemode() {
            queries::count_test_run(tx, caller.workspace_id(), caller.workspace.plan.test_runs_per_day)?;
        }
        if let Some(limit) = settings.energy_limit_monthly.filter(|_| caller.livemode()) {
            let spent = queries::energy_since(tx, caller.workspace_id(), agent.id, now.month_start())?;
            if spent >= limit {
                let message = format!("The agent has used its {limit} Energy of this month.");
                return Err(Error::new(Code::EnergyDepleted, message).param("energy_limit_monthly"));
            }
        }
        let turns = self.turns(tx, &row, &settings.memory)?;
        let mut work = Work::new(caller.clone(), row, settings, tools, turns)?;
        if !waits {
            work.row.status = RunStatus::InProgress.as_str().to_owned();
            work.row.started_at = Some(now);
        }
        queries::insert(tx, &work.row)?;
        if !waits {
            work.start = Some(self.begin_step(tx, &mut work)?);
        }
        if let Some(claim) = claim {
            idempotency::attach(tx, claim, work.row.id.as_str())?;
            if new.background {
                let reply = super::answer::reply(work.row.clone(), &work.format(), false)?;
                idempotency::finish(tx, claim, reply.status, &reply.body)?;
            }
        }
        Ok(work)
    }

    fn agent_for(&self, tx: &mut Tx, caller: &Caller, new: &NewRun) -> Result<crate::agents::AgentRow> {
        let agent = match new.agent_id {
            Some(id) => agents::live_agent(tx, caller.workspace_id(), id).map_err(|error| {
                if error.code() == Code::NotFound { error.param("agent_id") } else { error }
            })?,
            None => agents::default_agent(tx, caller.workspace_id())?.ok_or_else(|| {
                Error::new(Code::AgentNotConfigured, "The workspace has no agent. Create one, or name one.")
            })?,
        };
        if agent.status()? != AgentStatus::Active {
            return Err(Error::new(Code::AgentInactive, "The agent is switched off. Activate it first."));
        }
        Ok(agent)
    }

    /// Whether the run must wait for its turn, after doing what `on_busy` asks.
    fn must_wait(&self, tx: &mut Tx, caller: &Caller, new: &NewRun, row: &RunRow) -> Result<bool> {
        let active = queries::active_in_conversation(
            tx,
            caller.workspace_id(),
            caller.livemode(),
            &row.conversation_id,
        )?;
        let Some(holder) = active.first() else { return Ok(false) };
        let busy = || {
            let age = (row.queued_at.millis() - holder.queued_at.millis()) / 1000;
            let message =
                format!("The conversation is busy with {}, which began {age} seconds ago.", holder.id);
            Error::new(Code::ConversationBusy, message).with("run_id", holder.id.as_str()).retry_after(2)
        };
        let reason = match new.on_busy {
            OnBusy::Reject => return Err(busy()),
            OnBusy::Enqueue if active.len() >= LONGEST_QUEUE => return Err(busy()),
            OnBusy::Enqueue => return Ok(true),
            OnBusy::Interrupt => "interrupted",
            OnBusy::Rollback => "rolled_back",
        };
        for mut other in active {
            if queries::cancel(tx, &other, reason)? {
                other.status = RunStatus::Cancelled.as_str().to_owned();
                other.incomplete_reason = Some(reason.to_owned());
                emit_end(tx, &other)?;
                let (engine, id) = (self.clone(), other.id);
                tx.after_commit(move || engine.stop_work(&id));
            }
        }
        Ok(false)
    }

    pub(super) fn turns(
        &self,
        read: &mut Read,
        row: &RunRow,
        memory: &crate::agents::Memory,
    ) -> Result<Vec<queries::Turn>> {
        match memory.mode {
            MemoryMode::None => Ok(Vec::new()),
            MemoryMode::Window => queries::turns(read, row, memory.max_messages / 2),
        }
    }

    /// Waits for the turn of a queued run, then begins its first step. `None`: it will never have one.
    pub(super) async fn await_turn(&self, work: &mut Work) -> Result<Option<Start>> {
        loop {
            let ended = self.0.ended.notified();
            match self.write_work(work, |engine, tx, work| engine.try_turn(tx, work)).await? {
                Turn::Begun(start) => return Ok(Some(start)),
                Turn::Over => return Ok(None),
                Turn::Wait => {
                    // Other processes end runs too, so the look is repeated.
                    let _ = tokio::time::timeout(Duration::from_millis(500), ended).await;
                }
            }
        }
    }

    fn try_turn(&self, tx: &mut Tx, work: &mut Work) -> Result<Turn> {
        let row = queries::by_id(tx, work.row.workspace_id, &work.row.id)?;
        if row.status()?.is_final() || row.epoch != work.row.epoch {
            work.row = row;
            return Ok(Turn::Over);
        }
        let now = tx.now();
        if row.queued_at.plus_seconds(QUEUE_SECONDS) <= now {
            work.row.status = RunStatus::Expired.as_str().to_owned();
            work.row.completed_at = Some(now);
            queries::finish(tx, &work.row)?;
            return Ok(Turn::Over);
        }
        let active =
            queries::active_in_conversation(tx, row.workspace_id, row.livemode, &row.conversation_id)?;
        if active.first().is_some_and(|first| first.id < row.id) {
            queries::renew(tx, &row)?;
            return Ok(Turn::Wait);
        }
        let agent = agents::live_agent(tx, row.workspace_id, row.agent_id).and_then(|agent| agent.status());
        if !matches!(agent, Ok(AgentStatus::Active)) {
            let message = "The agent was switched off while the run waited.";
            work.fail(now, Code::AgentInactive, message);
            queries::finish(tx, &work.row)?;
            emit_end(tx, &work.row)?;
            return Ok(Turn::Over);
        }
        if !queries::start(tx, &row)? {
            return Ok(Turn::Wait);
        }
        work.row.status = RunStatus::InProgress.as_str().to_owned();
        work.row.started_at = Some(now);
        // The turns before this one have ended by now, so memory is read only here.
        work.turns = self.turns(tx, &work.row, &work.settings.memory)?;
        match self.begin_step(tx, work) {
            Ok(start) => Ok(Turn::Begun(start)),
            Err(error) if matches!(error.code().status(), 402 | 429) => {
                work.fail(now, error.code(), error.message());
                queries::finish(tx, &work.row)?;
                emit_end(tx, &work.row)?;
                Ok(Turn::Over)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for a run that another worker drives.
    async fn wait_for(&self, row: RunRow) -> Result<Submitted> {
        let deadline = tokio::time::Instant::now() + SYNC_WAIT;
        loop {
            let (workspace, id) = (row.workspace_id, row.id.clone());
            let now = self.db().read(move |read| queries::by_id(read, workspace, &id)).await?;
            if now.status()?.is_final() {
                return Ok(Submitted::Done(now));
            }
            if tokio::time::Instant::now() >= deadline {
                return Ok(Submitted::StillRunning(now));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Takes up the run that an earlier request with the same `Idempotency-Key` had begun.
    async fn take_up(&self, caller: &Caller, resource: &str) -> Result<TakenUp> {
        let id = RunId::parse(resource).ok_or_else(|| Error::internal("a claim names no run"))?;
        let workspace = caller.workspace_id();
        let row = self
            .db()
            .write(move |tx| {
                let row = queries::by_id(tx, workspace, &id)?;
                // A failed run gave its Energy back, so it may begin again under the same id.
                if row.status()? == RunStatus::Failed {
                    queries::reopen(tx, &row).map(Ok)
                } else {
                    Ok(Err(row))
                }
            })
            .await?;
        match row {
            Ok(reopened) => Ok(TakenUp::Ours(Box::new(self.load(caller.clone(), reopened).await?))),
            Err(row) if row.status()?.is_final() => Ok(TakenUp::Ended(row)),
            Err(row) => Ok(TakenUp::Elsewhere(row)),
        }
    }
}

enum TakenUp {
    Ended(RunRow),
    /// It goes on under another worker's lease; if that worker is dead, the sweeper will resume it.
    Elsewhere(RunRow),
    Ours(Box<Work>),
}

enum Turn {
    Begun(Start),
    Wait,
    Over,
}

fn fresh_row(caller: &Caller, new: &NewRun, now: Timestamp, random: &dyn Random) -> RunRow {
    let id = RunId::new(now, random);
    let conversation_id =
        new.conversation_id.clone().unwrap_or_else(|| id.as_str().replacen("run_", "eph_", 1));
    let options = RunOptions {
        response_format: new.response_format.clone(),
        max_steps: new.max_steps,
        timeout_seconds: new.timeout_seconds,
        background: new.background,
    };
    RunRow {
        workspace_id: caller.workspace_id(),
        livemode: caller.livemode(),
        agent_id: model::AgentId(0),
        agent_version: 0,
        status: RunStatus::Queued.as_str().to_owned(),
        input: Some(new.input.clone()),
        output: None,
        ephemeral: conversation_id.starts_with("eph_"),
        conversation_id,
        model: String::new(),
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
        options: JsonText::of(&options),
        metadata: JsonText::of(&new.metadata.clone().unwrap_or_default()),
        key_id: caller.key.id.clone(),
        key_lineage: caller.key.lineage.clone(),
        request_id: caller.request.clone(),
        lease_until: Some(now.plus_seconds(queries::LEASE_SECONDS)),
        epoch: 1,
        queued_at: now,
        started_at: None,
        completed_at: None,
        purged_at: None,
        id,
    }
}
