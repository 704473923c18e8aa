//! Acceptance of one run in a transaction.

use super::agent::{agent_for, version_for};
use super::row::new_row;
use super::test_runs;
use crate::engine::{Acceptance, Accepted, InputInspection, RunEngine, RunRequest};
use crate::execution::{Execution, FirstStep, Plan, write_finished};
use crate::guardrails::{GuardrailFinding, ending};
use crate::memory::{self, ConversationMemory};
use crate::queries::runs;
use crate::run::{NewRun, RunOptions, RunRow, RunTriggerKind, WantedVersion, conversation};
use ::guardrails::{CompiledGuardrails, GuardrailStage};
use agents::{PlaceholderReader, Settings, ToolRow};
use auth::idempotency::{self, Claim};
use model::{Caller, Error, JsonText, Result, whole_number};
use serde_json::json;
use std::sync::Arc;
use store::Tx;

impl RunEngine {
    /// Accepts a run. `base` has the options that the request does not contain.
    pub(crate) async fn accept(
        &self,
        caller: Caller,
        new: NewRun,
        claim: Option<Claim>,
        base: RunOptions,
    ) -> Result<(Execution, Option<FirstStep>)> {
        let request = Arc::new(RunRequest { caller, new, claim, base });
        let mut inspection: Option<Arc<InputInspection>> = None;
        loop {
            let acceptance = Acceptance { request: request.clone(), inspection: inspection.take() };
            match self.db().write_batched(&self.0.acceptances, self.clone(), acceptance).await? {
                Accepted::Run(execution, start) => return Ok((*execution, start)),
                Accepted::InspectInput(rules) => {
                    let input = request.new.input.clone();
                    let look = tokio::task::spawn_blocking(move || InputInspection::of(rules, input));
                    inspection = Some(Arc::new(look.await.map_err(Error::internal)??));
                }
            }
        }
    }

    /// Accepts a run in a transaction.
    pub(crate) fn accept_in(&self, tx: &mut Tx, acceptance: &Acceptance) -> Result<Accepted> {
        let Acceptance { request, inspection } = acceptance;
        let (RunRequest { caller, new, claim, .. }, inspection) = (&**request, inspection.as_deref());
        let agent = agent_for(tx, caller, new)?;
        let (settings, tools) = version_for(tx, &agent, new)?;
        self.tiers().expect_model(settings.model)?;
        let inspection = inspection.filter(|inspection| inspection.rules == settings.guardrails);
        if inspection.is_none() && !settings.guardrails.is_empty() {
            return Ok(Accepted::InspectInput(settings.guardrails));
        }
        let mut row = new_row(tx, caller, new, &agent, &settings)?;
        let named = new.conversation_id.is_some();
        let waits = named && self.must_wait(tx, new.on_busy, &row)?;
        if !caller.livemode() {
            test_runs::count(tx, caller.workspace_id(), caller.workspace.plan.test_runs_per_day)?;
        }
        let guardrails = inspection.map(|inspection| inspection.guardrails.clone()).unwrap_or_default();
        let plan = self.plan(tx, request, &mut row, (settings, tools), guardrails)?;
        // A run that waits reads its memory when its turn comes.
        let memory = if named && !waits {
            memory::read(self.turns(), tx, &row, &plan.settings, &plan.guardrails)?
        } else {
            ConversationMemory::default()
        };
        let report = inspection.and_then(|inspection| inspection.report.clone());
        let early_end =
            report.as_ref().and_then(|report| ending(report, GuardrailStage::Input, &plan.settings));
        let blocked = early_end.is_some();
        // A blocked input is stored unchanged; the model never sees it.
        if let Some(inspection) = inspection.filter(|_| !blocked) {
            row.input = Some(inspection.input.clone());
        }
        let mut execution = Execution { memory, ..self.new_execution(plan, row) };
        if blocked || !waits {
            execution.start(tx.now());
        }
        if waits && !blocked {
            self.admit(tx, &execution)?;
        }
        runs::insert(tx, &execution.row)?;
        if let Some(report) = report {
            self.add_finding(
                &mut execution,
                &GuardrailFinding { stage: GuardrailStage::Input, at: json!({}), report },
            );
            write_finished(tx, &execution)?;
            execution.written = execution.steps.len();
        }
        let start = match (early_end, waits) {
            (Some(ending), _) => Some(FirstStep::End(ending)),
            (None, true) => None,
            (None, false) => Some(self.begin(tx, &mut execution)?),
        };
        if let Some(claim) = claim.as_ref() {
            idempotency::attach(tx, claim, execution.row.id.as_str())?;
            if new.background || new.stream {
                self.store_outcome(tx, claim, &execution.row, new.stream)?;
            }
        }
        Ok(Accepted::Run(Box::new(execution), start))
    }

    /// Registers a run as one of this process.
    pub(crate) fn new_execution(&self, plan: Arc<Plan>, row: RunRow) -> Execution {
        let active = self.active().register(&row.id, conversation::key(&row));
        Execution::new(plan, active, row, ConversationMemory::default())
    }

    /// Makes the plan of a run, and stores its options in the row.
    pub(crate) fn plan(
        &self,
        tx: &mut Tx,
        request: &RunRequest,
        row: &mut RunRow,
        (settings, tools): (Settings, Vec<ToolRow>),
        guardrails: Arc<CompiledGuardrails>,
    ) -> Result<Arc<Plan>> {
        let RunRequest { caller, new, base, .. } = request;
        let mut options = options(caller, new, &settings, base);
        if options.contact.is_some() {
            // Irrelevant facts confuse small models.
            let takes_contacts = tools.iter().map(ToolRow::takes_contacts).collect::<Result<Vec<bool>>>()?;
            options.hides_contact = !takes_contacts.contains(&true);
        }
        let is_channel = options.trigger.kind == RunTriggerKind::Channel;
        let channel = options.trigger.id.as_deref().filter(|_| is_channel).and_then(whole_number);
        let parts = &self.0.parts;
        let reader = PlaceholderReader {
            people: &parts.people,
            variables: &parts.variables,
            business: &*parts.business,
        };
        let values = reader.read(tx, caller, &settings, &tools, options.contact, channel)?;
        (options.variables, options.placeholders) = values;
        let (workspace, input) = (row.workspace_id, new.input.as_str());
        let chosen = self.versions().choose(tx, workspace, &settings, tools, input, &mut options.versions)?;
        row.options = JsonText::of(&options);
        Ok(Arc::new(Plan::new(caller.clone(), settings, chosen, guardrails, options)?))
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
        chain: caller.chain.clone(),
        draft: matches!(new.agent_version, Some(WantedVersion::Draft(_))),
        trigger: new.trigger.clone(),
        contact: new.answering.map(|answering| answering.contact),
        contact_epoch: new.answering.map(|answering| answering.epoch),
        question: new.question,
        inner: new.inner.clone(),
        energy_limit: new.energy_limit,
        reading_tier: new.reading_tier,
        ..base.clone()
    }
}
