//! Batched acceptance on PostgreSQL: one statement each for the agents, holds, rows and first steps of many runs. Runs that need
//! more than that are accepted one by one.

use super::row::new_row;
use crate::engine::{Acceptance, Accepted, RunEngine, RunRequest};
use crate::execution::{Execution, FirstStep};
use crate::memory::{self, ConversationMemory};
use crate::queries::{runs, steps};
use crate::run::{RunRow, StepRow, conversation};
use crate::steps::ModelCall;
use agents::{ActiveAgent, active_agents};
use auth::idempotency;
use model::{AgentId, Result, WorkspaceId};
use ports::Charge;
use std::collections::HashMap;
use std::sync::Arc;
use store::{Batched, Tx};

/// A run whose Energy is to be held.
struct Candidate<'a> {
    /// Its index in the batch.
    place: usize,
    request: &'a RunRequest,
    execution: Execution,
    model_call: ModelCall,
}

/// A run whose Energy is held.
struct Begun<'a> {
    place: usize,
    request: &'a RunRequest,
    execution: Execution,
    step: StepRow,
    start: FirstStep,
}

impl Batched for Acceptance {
    type Maker = RunEngine;
    type Output = Accepted;

    fn alone(&self, engine: &RunEngine, tx: &mut Tx) -> Result<Accepted> {
        engine.accept_in(tx, self)
    }

    fn together(engine: &RunEngine, acceptances: &[&Self], tx: &mut Tx) -> Result<Vec<Option<Accepted>>> {
        let candidates = candidates(engine, tx, acceptances)?;
        let begun = hold(engine, tx, candidates)?;
        write(engine, tx, &begun)?;
        let mut accepted: Vec<Option<Accepted>> = acceptances.iter().map(|_| None).collect();
        for Begun { place, mut execution, step, start, .. } in begun {
            execution.steps.push(step);
            if let Some(accepted) = accepted.get_mut(place) {
                *accepted = Some(Accepted::Run(Box::new(execution), Some(start)));
            }
        }
        Ok(accepted)
    }
}

/// Writes runs and their first steps, and the outcomes of requests that are answered before a run ends.
fn write(engine: &RunEngine, tx: &mut Tx, begun: &[Begun<'_>]) -> Result<()> {
    let rows: Vec<&RunRow> = begun.iter().map(|begun| &begun.execution.row).collect();
    runs::insert_all(tx, &rows)?;
    let first: Vec<&StepRow> = begun.iter().map(|begun| &begun.step).collect();
    steps::insert_all(tx, &first)?;
    for Begun { request, execution, .. } in begun {
        if let Some(claim) = &request.claim {
            idempotency::attach(tx, claim, execution.row.id.as_str())?;
            if request.new.background || request.new.stream {
                engine.store_outcome(tx, claim, &execution.row, request.new.stream)?;
            }
        }
    }
    Ok(())
}

/// Holds Energy for all runs that can be paid, and makes their first steps.
fn hold<'a>(engine: &RunEngine, tx: &mut Tx, candidates: Vec<Candidate<'a>>) -> Result<Vec<Begun<'a>>> {
    let wanted = |candidate: &Candidate<'_>| {
        let prices = engine.tiers().get(candidate.execution.row.model).prices;
        (candidate.execution.charge(), candidate.model_call.most(prices))
    };
    let holds: Vec<(Charge, i64)> = candidates.iter().map(wanted).collect();
    let held = if holds.is_empty() { Vec::new() } else { engine.0.parts.meter.hold_all(tx, &holds)? };
    let held = candidates.into_iter().zip(holds).zip(held).filter(|(_, is_held)| *is_held);
    let begin = |((candidate, (_, wanted)), _): ((Candidate<'a>, (Charge, i64)), bool)| {
        let Candidate { place, request, execution, model_call } = candidate;
        let (step, model_request) = engine.model_step(tx, &execution, model_call, Some(wanted));
        Begun { place, request, execution, step, start: FirstStep::Answer(model_request) }
    };
    Ok(held.map(begin).collect())
}

/// Returns the runs that the batch can accept.
fn candidates<'a>(
    engine: &RunEngine,
    tx: &mut Tx,
    acceptances: &[&'a Acceptance],
) -> Result<Vec<Candidate<'a>>> {
    let ordinary = acceptances.iter().enumerate().filter(|(_, acceptance)| acceptance.is_ordinary());
    let ordinary: Vec<(usize, &'a RunRequest)> =
        ordinary.map(|(place, acceptance)| (place, &*acceptance.request)).collect();
    let wanted: Vec<(WorkspaceId, Option<AgentId>)> =
        ordinary.iter().map(|(_, request)| request.agent()).collect();
    let agents = if wanted.is_empty() { Vec::new() } else { active_agents(tx, &wanted)? };
    let mut known: HashMap<(WorkspaceId, Option<AgentId>), &ActiveAgent> = HashMap::new();
    for agent in &agents {
        known.insert((agent.row.workspace_id, Some(agent.row.id)), agent);
        if agent.row.is_default {
            known.insert((agent.row.workspace_id, None), agent);
        }
    }
    let with_agents = ordinary.into_iter().filter_map(|(place, request)| {
        let agent = *known.get(&request.agent())?;
        Some((request.conversation(agent), place, request, agent))
    });
    let mut with_agents: Vec<_> = with_agents.collect();
    // Conversations are locked in one order. The second run of one waits for the first.
    with_agents.sort_by_key(|(conversation, place, ..)| (*conversation, *place));
    with_agents.dedup_by(|next, one| next.0.is_some() && next.0 == one.0);
    let mut candidates = Vec::with_capacity(with_agents.len());
    for (_, place, request, agent) in with_agents {
        let ready = ready(engine, tx, request, agent)?;
        candidates.extend(ready.map(|(execution, model_call)| Candidate {
            place,
            request,
            execution,
            model_call,
        }));
    }
    Ok(candidates)
}

/// Returns an execution and its first model call, unless the run needs other queries or steps before.
fn ready(
    engine: &RunEngine,
    tx: &mut Tx,
    request: &RunRequest,
    agent: &ActiveAgent,
) -> Result<Option<(Execution, ModelCall)>> {
    let settings = agent.row.settings()?;
    let has_model = engine.tiers().expect_model(settings.model).is_ok();
    let has_placeholders = settings.instructions.contains("{{")
        || agent.tools.iter().any(|tool| tool.settings.as_str().contains("{{"));
    if !has_model || has_placeholders || !settings.guardrails.is_empty() {
        return Ok(None);
    }
    let mut row = new_row(tx, &request.caller, &request.new, &agent.row, &settings)?;
    let named = request.new.conversation_id.is_some();
    if named && !runs::active_in_conversation(tx, &row)?.is_empty() {
        return Ok(None);
    }
    let plan = engine.plan(tx, request, &mut row, (settings, agent.tools.clone()), Arc::default())?;
    let memory = if named {
        memory::read(engine.turns(), tx, &row, &plan.settings, &plan.guardrails)?
    } else {
        ConversationMemory::default()
    };
    let mut execution = Execution { memory, ..engine.new_execution(plan, row) };
    execution.start(tx.now());
    if engine.due_summarization(&execution).is_some() {
        return Ok(None);
    }
    let model_call = engine.next_model_call(&execution);
    Ok(Some((execution, model_call)))
}

impl Acceptance {
    /// Returns whether the batch can accept it: a live run of the agent's current version, without a guardrail report.
    fn is_ordinary(&self) -> bool {
        let RunRequest { caller, new, .. } = &*self.request;
        let is_of_agent = new.agent_version.is_none() && new.reading_tier.is_none();
        caller.livemode() && is_of_agent && self.inspection.is_none()
    }
}

impl RunRequest {
    /// The workspace and the agent; `None` for its default agent.
    fn agent(&self) -> (WorkspaceId, Option<AgentId>) {
        (self.caller.workspace_id(), self.new.agent_id)
    }

    /// The lock key of its conversation, if that has a name.
    fn conversation(&self, agent: &ActiveAgent) -> Option<i64> {
        let name = self.new.conversation_id.as_deref()?;
        let livemode = self.caller.livemode();
        Some(conversation::key_of(self.caller.workspace_id(), livemode, agent.row.id, name))
    }
}
