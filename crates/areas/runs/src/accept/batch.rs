//! Acceptance of many runs by few statements, on PostgreSQL: agents, holds, runs and first steps of all that are ordinary.

use super::row::fresh_row;
use crate::engine::{Acceptance, Accepted, Asked, RunEngine};
use crate::execution::{Start, Work};
use crate::memory::{self, ConversationMemory};
use crate::queries::{bulk, runs};
use crate::run::{RunRow, StepRow, conversation};
use crate::steps::Need;
use agents::{ActiveAgent, active_agents};
use auth::idempotency;
use model::{AgentId, Result, WorkspaceId};
use ports::Charge;
use std::collections::HashMap;
use std::sync::Arc;
use store::{Batched, Tx};

/// A run that is ready for its hold.
struct Candidate<'a> {
    /// Its place among the acceptances.
    place: usize,
    asked: &'a Asked,
    work: Work,
    need: Need,
}

/// A run that is ready to be written.
struct Begun<'a> {
    place: usize,
    asked: &'a Asked,
    work: Work,
    step: StepRow,
    start: Start,
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
        for Begun { place, mut work, step, start, .. } in begun {
            work.steps.push(step);
            if let Some(accepted) = accepted.get_mut(place) {
                *accepted = Some(Accepted::Run(Box::new(work), Some(start)));
            }
        }
        Ok(accepted)
    }
}

/// Writes runs and their first steps, and the outcomes of requests that are answered before a run ends.
fn write(engine: &RunEngine, tx: &mut Tx, begun: &[Begun<'_>]) -> Result<()> {
    let rows: Vec<&RunRow> = begun.iter().map(|begun| &begun.work.row).collect();
    bulk::insert_runs(tx, &rows)?;
    let steps: Vec<&StepRow> = begun.iter().map(|begun| &begun.step).collect();
    bulk::insert_steps(tx, &steps)?;
    for Begun { asked, work, .. } in begun {
        if let Some(claim) = &asked.claim {
            idempotency::attach(tx, claim, work.row.id.as_str())?;
            if asked.new.background || asked.new.stream {
                engine.store_outcome(tx, claim, &work.row, asked.new.stream)?;
            }
        }
    }
    Ok(())
}

/// Sets Energy aside for as many runs as can be paid, and makes their first steps.
fn hold<'a>(engine: &RunEngine, tx: &mut Tx, candidates: Vec<Candidate<'a>>) -> Result<Vec<Begun<'a>>> {
    let wanted = |candidate: &Candidate<'_>| {
        let prices = engine.tiers().get(candidate.work.row.model).prices;
        (candidate.work.charge(), candidate.need.most(prices))
    };
    let holds: Vec<(Charge, i64)> = candidates.iter().map(wanted).collect();
    let held = if holds.is_empty() { Vec::new() } else { engine.0.parts.meter.hold_all(tx, &holds)? };
    let held = candidates.into_iter().zip(holds).zip(held).filter(|(_, is_held)| *is_held);
    let begin = |((candidate, (_, wanted)), _): ((Candidate<'a>, (Charge, i64)), bool)| {
        let Candidate { place, asked, work, need } = candidate;
        let (step, asking) = engine.model_step(tx, &work, need, Some(wanted));
        Begun { place, asked, work, step, start: Start::Answer(asking) }
    };
    Ok(held.map(begin).collect())
}

/// The acceptances that are ordinary.
fn candidates<'a>(
    engine: &RunEngine,
    tx: &mut Tx,
    acceptances: &[&'a Acceptance],
) -> Result<Vec<Candidate<'a>>> {
    let ordinary = acceptances.iter().enumerate().filter(|(_, acceptance)| acceptance.is_ordinary());
    let ordinary: Vec<(usize, &'a Asked)> =
        ordinary.map(|(place, acceptance)| (place, &*acceptance.asked)).collect();
    let wanted: Vec<(WorkspaceId, Option<AgentId>)> =
        ordinary.iter().map(|(_, asked)| asked.agent()).collect();
    let agents = if wanted.is_empty() { Vec::new() } else { active_agents(tx, &wanted)? };
    let mut known: HashMap<(WorkspaceId, Option<AgentId>), &ActiveAgent> = HashMap::new();
    for agent in &agents {
        known.insert((agent.row.workspace_id, Some(agent.row.id)), agent);
        if agent.row.is_default {
            known.insert((agent.row.workspace_id, None), agent);
        }
    }
    let with_agents = ordinary.into_iter().filter_map(|(place, asked)| {
        let agent = *known.get(&asked.agent())?;
        Some((asked.conversation(agent), place, asked, agent))
    });
    let mut with_agents: Vec<_> = with_agents.collect();
    // Conversations are locked in one order. The second run of one waits for the first.
    with_agents.sort_by_key(|(conversation, place, ..)| (*conversation, *place));
    with_agents.dedup_by(|next, one| next.0.is_some() && next.0 == one.0);
    let mut candidates = Vec::with_capacity(with_agents.len());
    for (_, place, asked, agent) in with_agents {
        let ready = ready(engine, tx, asked, agent)?;
        candidates.extend(ready.map(|(work, need)| Candidate { place, asked, work, need }));
    }
    Ok(candidates)
}

/// A run of an agent and what its first answer takes, unless there is something to look up or to do before.
fn ready(
    engine: &RunEngine,
    tx: &mut Tx,
    asked: &Asked,
    agent: &ActiveAgent,
) -> Result<Option<(Work, Need)>> {
    let settings = agent.row.settings()?;
    let has_model = engine.tiers().expect_model(settings.model).is_ok();
    let has_placeholders = settings.instructions.contains("{{")
        || agent.tools.iter().any(|tool| tool.settings.as_str().contains("{{"));
    if !has_model || has_placeholders || !settings.guardrails.is_empty() {
        return Ok(None);
    }
    let mut row = fresh_row(tx, &asked.caller, &asked.new, &agent.row, &settings)?;
    let named = asked.new.conversation_id.is_some();
    if named && !runs::active_in_conversation(tx, &row)?.is_empty() {
        return Ok(None);
    }
    let plan = engine.plan(tx, asked, &mut row, (settings, agent.tools.clone()), Arc::default())?;
    let memory = if named {
        memory::read(engine.turns(), tx, &row, &plan.settings, &plan.guards)?
    } else {
        ConversationMemory::default()
    };
    let mut work = Work { memory, ..engine.work_on(plan, row) };
    work.start(tx.now());
    if engine.fold_for(&work).is_some() {
        return Ok(None);
    }
    let need = engine.need(&work);
    Ok(Some((work, need)))
}

impl Acceptance {
    /// Whether it needs nothing but its agent, a memory and Energy: no other version, and no guardrail's report.
    fn is_ordinary(&self) -> bool {
        let Asked { caller, new, .. } = &*self.asked;
        caller.livemode() && new.agent_version.is_none() && self.looked.is_none()
    }
}

impl Asked {
    /// Whose agent runs, and which; `None` for the default one.
    fn agent(&self) -> (WorkspaceId, Option<AgentId>) {
        (self.caller.workspace_id(), self.new.agent_id)
    }

    /// The number that stands for its conversation with an agent, if that has a name.
    fn conversation(&self, agent: &ActiveAgent) -> Option<i64> {
        let name = self.new.conversation_id.as_deref()?;
        let livemode = self.caller.livemode();
        Some(conversation::key_of(self.caller.workspace_id(), livemode, agent.row.id, name))
    }
}
