//! The job that dispatches a firing.

use super::outcome::{Failed, Started, note_refused, note_started, note_stopped};
use super::targets::{Prepared, agent_run, function_call};
use super::{Dispatch, JOB};
use crate::conditions::{Reading, evaluated};
use crate::firings::row::{FiringReason, FiringRow, FiringStatus};
use crate::rules::row::{AutomationRow, AutomationStatus, TargetType};
use crate::surroundings::Surroundings;
use auth::{Directory, keys};
use expressions::{Path, Template};
use jobs::{Job, JobContext, JobError};
use model::{Chain, Code, ContactId, Error, FiringId, FlowId, Result};
use operation::Resource;
use ports::{FlowStart, FlowStarter, StartFlow};
use serde_json::{Map, Value};
use std::sync::Arc;
use store::{Db, Read, Tx};

/// The most attempts before a firing has failed.
const MOST_ATTEMPTS: i64 = 8;

/// Services of dispatching. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    pub(crate) around: Surroundings,
    pub(crate) reading: Reading,
    pub(crate) directory: Arc<Directory>,
}

/// The job that dispatches a firing.
pub(crate) fn job(dispatcher: &Dispatcher) -> Job {
    let dispatcher = dispatcher.clone();
    Job::after(JOB, "an automation fires", "starts what an automation starts", move |job| {
        dispatch(dispatcher.clone(), job)
    })
    .up_to(MOST_ATTEMPTS + 1)
}

async fn dispatch(dispatcher: Dispatcher, job: JobContext) -> Result<(), JobError> {
    let Dispatch { firing } = job.payload.parse()?;
    match dispatcher.run(&job.db, firing.clone()).await {
        Ok(()) => Ok(()),
        Err(error) if is_passing(&error) && job.attempts < MOST_ATTEMPTS => Err(error.into()),
        Err(error) => Ok(job.db.write(move |tx| note_refused(tx, &firing, &error)).await?),
    }
}

/// Returns whether another attempt may succeed.
fn is_passing(error: &Error) -> bool {
    error.code().status() >= 500
        || matches!(error.code(), Code::IdempotencyInProgress | Code::RateLimited | Code::ConcurrencyLimited)
}

/// What the first transaction of a dispatch leaves to be done.
enum Next {
    Done,
    Start(Box<Prepared>),
}

impl Dispatcher {
    async fn run(&self, db: &Db, id: FiringId) -> Result<()> {
        let (this, firing) = (self.clone(), id.clone());
        let next = db.write(move |tx| this.begin(tx, &firing)).await?;
        let Next::Start(prepared) = next else { return Ok(()) };
        let started = match prepared.automation.target_type {
            TargetType::Agent => Started::Agent(self.around.agents.start(agent_run(*prepared)).await?),
            _ => {
                let workspace = self.directory.workspace(prepared.firing.workspace_id).await?;
                let workspace =
                    workspace.ok_or_else(|| Error::internal("the workspace of a firing is gone"))?;
                if let Some(reason) = &workspace.blocked_reason {
                    return Err(Error::new(Code::WorkspaceBlocked, reason.clone()));
                }
                let call = function_call(db, *prepared, workspace);
                let end = self.around.functions.call(call).await?;
                let failed = end.result.err();
                let failed = failed.map(|failure| Failed {
                    code: failure.code.to_owned(),
                    message: failure.message,
                    param: None,
                });
                Started::Function(end.invocation, failed)
            }
        };
        db.write(move |tx| match FiringRow::locked(tx, &id)? {
            // What was discarded meanwhile has started all the same, and the row says so.
            Some(row) if row.status != FiringStatus::Dispatched => note_started(tx, &row, started.clone()),
            _ => Ok(()),
        })
        .await
    }

    /// Starts a flow, or prepares the start of something else.
    fn begin(&self, tx: &mut Tx, id: &FiringId) -> Result<Next> {
        let Some(firing) = FiringRow::locked(tx, id)?.filter(|row| row.status == FiringStatus::Pending)
        else {
            return Ok(Next::Done);
        };
        let stop = |tx: &mut Tx, reason, failed: Option<&Failed>| {
            note_stopped(tx, &firing, reason, failed).map(|()| Next::Done)
        };
        let found = AutomationRow::find(tx, firing.workspace_id, &firing.automation_id);
        let automation = match found {
            Ok(row) if row.status == AutomationStatus::On => row,
            Ok(_) => return stop(tx, FiringReason::SwitchedOff, None),
            Err(error) if error.code() == Code::NotFound => return stop(tx, FiringReason::SwitchedOff, None),
            Err(error) => return Err(error),
        };
        let scopes = keys::standing_scopes(tx, &automation.lineage_id, automation.workspace_id)?;
        if !scopes.contains(automation.target_type.scope()) {
            let message = format!(
                "The key that changed the automation last was revoked, or lacks the scope `{}`.",
                automation.target_type.scope().as_str()
            );
            let failed = Failed { code: Code::MissingScope.as_str().to_owned(), message, param: None };
            return stop(tx, FiringReason::KeyLost, Some(&failed));
        }
        let input = match input(tx, &self.reading, &automation, firing.contact_id, &firing.payload.parse()?)?
        {
            Ok(input) => input,
            Err(message) => {
                let failed = Failed { code: "template_error".to_owned(), message, param: None };
                return stop(tx, FiringReason::TemplateError, Some(&failed));
            }
        };
        if automation.target_type != TargetType::Flow {
            let answering = self.answering(tx, &firing)?;
            if automation.target_type == TargetType::Agent
                && !firing.livemode
                && automation.env == model::Env::Live
            {
                return stop(tx, FiringReason::TestMode, None);
            }
            return Ok(Next::Start(Box::new(Prepared { automation, firing, input, answering })));
        }
        let start = StartFlow {
            workspace: firing.workspace_id,
            flow: FlowId(automation.target_id),
            livemode: firing.livemode,
            input,
            payload: firing.payload.parse()?,
            contact: firing.contact_id,
            by: FlowStarter::Automation { automation: automation.id, event: firing.event_id.clone() },
            chain: Chain::stored(firing.chain.as_ref()),
            once: format!("firing:{}", firing.id),
        };
        match self.around.flows.get()?.start(tx, &start)? {
            FlowStart::Run(run) => note_started(tx, &firing, Started::Flow(run))?,
            FlowStart::Active(_) => return stop(tx, FiringReason::Overlap, None),
        }
        Ok(Next::Done)
    }

    /// The contact whom an agent answers, unless a person does.
    fn answering(&self, tx: &mut Tx, firing: &FiringRow) -> Result<Option<model::Answering>> {
        let Some(id) = firing.contact_id else { return Ok(None) };
        let card = self.reading.contact(tx, firing.workspace_id, id)?;
        let card = card.filter(|card| card.autopilot && !card.is_blocked);
        Ok(card.map(|card| model::Answering { contact: card.id, epoch: card.epoch }))
    }
}

/// Collects the paths that the texts of an input read.
fn collect(json: &Value, paths: &mut Vec<Path>) {
    match json {
        Value::String(text) => {
            if let Ok(template) = Template::parse(text, &crate::conditions::ROOTS) {
                paths.extend(template.references().into_iter().cloned());
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, paths)),
        Value::Object(members) => Map::values(members).for_each(|part| collect(part, paths)),
        _ => {}
    }
}

/// Computes the input of a target, or says why it cannot be computed.
///
/// # Errors
/// When the database fails.
pub(crate) fn input(
    read: &mut Read,
    reading: &Reading,
    automation: &AutomationRow,
    contact: Option<ContactId>,
    payload: &Value,
) -> Result<std::result::Result<Value, String>> {
    let Some(input) = automation.target()?.input.map(Value::Object) else { return Ok(Ok(payload.clone())) };
    let contact = match contact {
        Some(id) => reading.contact(read, automation.workspace_id, id)?,
        None => None,
    };
    let mut paths = Vec::new();
    collect(&input, &mut paths);
    let paths: Vec<&Path> = paths.iter().collect();
    let of = (automation.workspace_id, automation.env);
    let values = reading.values(read, of, payload, contact.as_ref(), &paths)?;
    Ok(evaluated(&input, &values.context()))
}
