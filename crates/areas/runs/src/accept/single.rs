//! Acceptance of one run in a transaction.

use super::agent::{agent_for, version_for};
use super::row::fresh_row;
use super::test_runs;
use crate::engine::{Acceptance, Accepted, Asked, Looked, RunEngine};
use crate::execution::{Plan, Start, Work, write_finished};
use crate::guardrails::{GuardFinding, Guards};
use crate::memory::{self, ConversationMemory};
use crate::queries::runs;
use crate::run::{NewRun, RunOptions, RunRow, WantedVersion, conversation};
use agents::guardrails::GuardrailStage;
use agents::{Settings, ToolRow};
use auth::idempotency::{self, Claim};
use model::{Caller, Error, JsonText, Result};
use serde_json::json;
use std::sync::Arc;
use store::Tx;

impl RunEngine {
    /// Accepts a run. `base` says of its options what the request does not.
    pub(crate) async fn accept(
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
    pub(crate) fn accept_in(&self, tx: &mut Tx, acceptance: &Acceptance) -> Result<Accepted> {
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
            test_runs::count(tx, caller.workspace_id(), caller.workspace.plan.test_runs_per_day)?;
        }
        let guards = looked.map(|looked| looked.guards.clone()).unwrap_or_default();
        let plan = self.plan(tx, asked, &mut row, (settings, tools), guards)?;
        // A run that waits reads its memory when its turn comes.
        let memory = if named && !waits {
            memory::read(self.turns(), tx, &row, &plan.settings, &plan.guards)?
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
        runs::insert(tx, &work.row)?;
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
    pub(crate) fn work_on(&self, plan: Arc<Plan>, row: RunRow) -> Work {
        let working = self.active().work_on(&row.id, conversation::key(&row));
        Work::new(plan, working, row, ConversationMemory::default())
    }

    /// What a run is to do, which its row keeps.
    pub(crate) fn plan(
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
