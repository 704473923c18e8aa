//! Flows that note what they are asked.

use model::{AutomationId, Code, ContactId, Error, FlowId, FlowRunId, Result, WorkspaceId};
use operation::{BoxFuture, Services};
use ports::{FlowAnswer, FlowStart, Flows, StartFlow, StartableFlow, Unstartable, WorkspaceFlows};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Read, Tx};

#[derive(Default)]
struct State {
    started: Vec<StartFlow>,
    interrupted: Vec<ContactId>,
    cancelled: Vec<AutomationId>,
    is_inactive: bool,
    refusal: Option<(Code, &'static str)>,
}

/// Flow 1 can be started, flow 2 was never published, and there are no others.
#[derive(Clone, Default)]
pub struct ScriptedFlows(Arc<Mutex<State>>);

impl ScriptedFlows {
    pub fn services(&self) -> Services {
        Services::default().with(WorkspaceFlows::new(self.clone()))
    }

    /// What was started since the last call.
    pub fn started(&self) -> Vec<StartFlow> {
        std::mem::take(&mut self.0.lock().unwrap().started)
    }

    pub fn interrupted(&self) -> usize {
        self.0.lock().unwrap().interrupted.len()
    }

    pub fn cancelled(&self) -> Vec<AutomationId> {
        self.0.lock().unwrap().cancelled.clone()
    }

    pub fn deactivate(&self, is_inactive: bool) {
        self.0.lock().unwrap().is_inactive = is_inactive;
    }

    pub fn refuse(&self, with: Option<(Code, &'static str)>) {
        self.0.lock().unwrap().refusal = with;
    }
}

impl Flows for ScriptedFlows {
    fn startable(
        &self,
        _: &mut Read,
        _: WorkspaceId,
        flow: FlowId,
    ) -> Result<std::result::Result<StartableFlow, Unstartable>> {
        Ok(match flow.0 {
            1 if self.0.lock().unwrap().is_inactive => Err(Unstartable::Inactive),
            1 => Ok(StartableFlow {
                id: flow,
                version: 1,
                name: "one".to_owned(),
                description: None,
                input_schema: json!({}),
                is_test_only: false,
            }),
            2 => Err(Unstartable::NotPublished),
            _ => Err(Unstartable::Missing),
        })
    }

    fn start(&self, tx: &mut Tx, start: &StartFlow) -> Result<FlowStart> {
        let mut state = self.0.lock().unwrap();
        if state.is_inactive {
            return Err(Error::new(Code::InvalidState, "The flow is inactive."));
        }
        if let Some((code, message)) = state.refusal {
            return Err(Error::new(code, message).param("input"));
        }
        state.started.push(start.clone());
        Ok(FlowStart::Run(FlowRunId::new(tx.now(), &*tx.random())))
    }

    fn answer(&self, _: StartFlow, _: Duration) -> BoxFuture<Result<FlowAnswer>> {
        Box::pin(async { Err(Error::internal("nobody waits for a run here")) })
    }

    fn interrupt(&self, _: &mut Tx, _: WorkspaceId, contact: ContactId) -> Result<usize> {
        self.0.lock().unwrap().interrupted.push(contact);
        Ok(1)
    }

    fn cancel_started_by(&self, _: &mut Tx, _: WorkspaceId, automation: AutomationId) -> Result<usize> {
        self.0.lock().unwrap().cancelled.push(automation);
        Ok(1)
    }
}
