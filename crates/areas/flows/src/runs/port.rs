//! The port by which other groups start runs.

use super::queries;
use super::row::{FlowRunStatus, FlowTriggerType, RunRow};
use super::start::{self, NewRun, Started};
use crate::draft::model::{FlowRow, FlowStatus};
use crate::engine::FlowEngine;
use model::{AutomationId, Code, ContactId, Env, FlowId, RequestId, Result, WorkspaceId};
use operation::{BoxFuture, Resource};
use ports::{FlowAnswer, FlowStart, FlowStarter, Flows, StartFlow, StartableFlow, Unstartable};
use std::time::Duration;
use store::{Read, Tx};

impl Flows for FlowEngine {
    fn startable(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        flow: FlowId,
    ) -> Result<std::result::Result<StartableFlow, Unstartable>> {
        let row = match FlowRow::find(read, workspace, &flow) {
            Ok(row) => row,
            Err(error) if error.code() == Code::NotFound => return Ok(Err(Unstartable::Missing)),
            Err(error) => return Err(error),
        };
        let Some(version) = row.published_version else { return Ok(Err(Unstartable::NotPublished)) };
        if row.status != FlowStatus::Active {
            return Ok(Err(Unstartable::Inactive));
        }
        let content = self.version(read, workspace, flow, version)?;
        Ok(Ok(StartableFlow {
            id: flow,
            version,
            name: row.name,
            description: content.settings.description.clone(),
            input_schema: content.input_schema.clone(),
            is_test_only: content.publisher.as_ref().is_some_and(|publisher| publisher.env == Env::Test),
        }))
    }

    fn start(&self, tx: &mut Tx, start: &StartFlow) -> Result<FlowStart> {
        let new = new_run(tx, start);
        Ok(match start::start(self, tx, &new)? {
            Started::New(id) | Started::Known(id) => FlowStart::Run(id),
            Started::Active(id) => FlowStart::Active(id),
        })
    }

    fn answer(&self, start: StartFlow, patience: Duration) -> BoxFuture<Result<FlowAnswer>> {
        let engine = self.clone();
        Box::pin(async move {
            let (starter, workspace) = (engine.clone(), start.workspace);
            let started = engine.db().write(move |tx| {
                let new = new_run(tx, &start);
                start::start(&starter, tx, &new)
            });
            let (Started::New(id) | Started::Known(id) | Started::Active(id)) = started.await?;
            engine.await_answer(workspace, id, patience).await
        })
    }

    fn interrupt(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<usize> {
        let runs = queries::awaiting_reply(tx, workspace, contact)?;
        cancel(self, tx, runs)
    }

    fn cancel_started_by(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        automation: AutomationId,
    ) -> Result<usize> {
        let runs = queries::open_of_automation(tx, workspace, automation)?;
        cancel(self, tx, runs)
    }
}

fn cancel(engine: &FlowEngine, tx: &mut Tx, runs: Vec<RunRow>) -> Result<usize> {
    let mut count = 0;
    for run in runs {
        count += usize::from(engine.end_now(tx, run, FlowRunStatus::Cancelled)?);
    }
    Ok(count)
}

fn new_run(tx: &mut Tx, start: &StartFlow) -> NewRun {
    let request = RequestId::new(tx.now(), &*tx.random());
    let new = NewRun {
        input: start.input.clone(),
        payload: start.payload.clone(),
        contact: start.contact,
        chain: start.chain.clone(),
        once: Some(start.once.clone()),
        ..NewRun::of(start.workspace, start.flow, start.livemode, request)
    };
    let (trigger, id) = match &start.by {
        FlowStarter::Automation { automation, event } => {
            let (automation, event) = (Some(*automation), event.clone());
            let id = automation.map(|id| id.to_string());
            return NewRun { trigger: FlowTriggerType::Automation, trigger_id: id, automation, event, ..new };
        }
        FlowStarter::Reminder(id) => (FlowTriggerType::Reminder, id.to_string()),
        FlowStarter::InboundWebhook(id) => (FlowTriggerType::InboundWebhook, id.clone()),
        FlowStarter::Agent { run, .. } => (FlowTriggerType::Agent, run.to_string()),
    };
    NewRun { trigger, trigger_id: Some(id), ..new }
}
