//! Scripted flows, in place of those of the group that keeps them.

use model::{ContactId, Error, FlowId, FlowRunId, Result, SeededRandom, Timestamp, WorkspaceId};
use operation::{BoxFuture, Services};
use ports::{
    FlowAnswer, FlowResponse, FlowStart, Flows, StartFlow, StartableFlow, Unstartable, WorkspaceFlows,
};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use store::{Read, Tx};

/// How a run of a scripted flow answers.
#[derive(Debug, Clone)]
pub enum FlowEnd {
    /// By a `respond` node.
    Response(FlowResponse),
    /// It is completed with this output.
    Completed(Value),
    /// It ends otherwise, as this word and sentence say.
    Ended(&'static str, &'static str),
    /// It has not answered in time.
    Pending,
    /// The start is refused.
    Refused(fn() -> Error),
    /// The contact has an active run.
    Active,
    /// The first who waits for it waits for ever. It is completed with `{}` for others.
    Hangs,
}

/// A run that was started.
#[derive(Debug, Clone)]
pub struct StartedFlow {
    /// The run.
    pub run: FlowRunId,
    /// What it was started with.
    pub start: StartFlow,
    /// For how long the caller waits. `None` for one that does not wait.
    pub patience: Option<Duration>,
    end: FlowEnd,
}

/// The flows of all workspaces, and what was started. Cheap to clone.
#[derive(Clone, Default)]
pub struct ScriptedFlows(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    flows: HashMap<(WorkspaceId, FlowId), std::result::Result<StartableFlow, Unstartable>>,
    ends: VecDeque<FlowEnd>,
    started: Vec<StartedFlow>,
    /// The starts within transactions that were refused, by moment and name, with their errors: a transaction may run twice.
    refused: HashMap<(Timestamp, String), fn() -> Error>,
}

impl ScriptedFlows {
    /// The services that put them in the place of the real ones.
    pub fn services(&self) -> Services {
        Services::default().with(WorkspaceFlows::new(self.clone()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Publishes a version of a flow and activates it.
    pub fn publish(&self, workspace: WorkspaceId, flow: i64, input_schema: Value) {
        let id = FlowId(flow);
        let mut state = self.state();
        let version = match state.flows.get(&(workspace, id)) {
            Some(Ok(before)) => before.version + 1,
            _ => 1,
        };
        let description = Some(format!("Quotes prices, version {version}."));
        let name = "Quote".to_owned();
        let published = StartableFlow { id, version, name, description, input_schema, is_test_only: false };
        state.flows.insert((workspace, id), Ok(published));
    }

    /// Makes a flow one that cannot be started.
    pub fn withdraw(&self, workspace: WorkspaceId, flow: i64, why: Unstartable) {
        self.state().flows.insert((workspace, FlowId(flow)), Err(why));
    }

    /// Says how the next run answers. Runs without a script are completed with `{}`.
    pub fn then(&self, end: FlowEnd) -> &Self {
        self.state().ends.push_back(end);
        self
    }

    /// All runs, oldest first.
    pub fn started(&self) -> Vec<StartedFlow> {
        self.state().started.clone()
    }

    /// `within` is the moment of the transaction, for a start within one.
    fn begin(
        &self,
        start: &StartFlow,
        patience: Option<Duration>,
        within: Option<Timestamp>,
    ) -> Result<StartedFlow> {
        let mut state = self.state();
        let found = state.flows.get(&(start.workspace, start.flow)).cloned();
        found.unwrap_or(Err(Unstartable::Missing)).map_err(Unstartable::error)?;
        let is_same = |known: &&StartedFlow| {
            (known.start.workspace, known.start.flow) == (start.workspace, start.flow)
                && known.start.once == start.once
        };
        if let Some(place) = state.started.iter().position(|known| is_same(&known)) {
            let known = &mut state.started[place];
            if matches!(known.end, FlowEnd::Hangs) {
                known.end = FlowEnd::Completed(json!({}));
            }
            return Ok(known.clone());
        }
        let attempt = within.map(|moment| (moment, start.once.clone()));
        if let Some(error) = attempt.as_ref().and_then(|attempt| state.refused.get(attempt)) {
            return Err(error());
        }
        let end = state.ends.pop_front().unwrap_or_else(|| FlowEnd::Completed(json!({})));
        if let FlowEnd::Refused(error) = end {
            state.refused.extend(attempt.map(|attempt| (attempt, error)));
            return Err(error());
        }
        let seed = u64::try_from(state.started.len()).unwrap();
        let run = FlowRunId::new(Timestamp::from_millis(1_768_478_400_000), &SeededRandom::new(seed));
        let started = StartedFlow { run, start: start.clone(), patience, end };
        state.started.push(started.clone());
        Ok(started)
    }
}

impl Flows for ScriptedFlows {
    fn startable(
        &self,
        _: &mut Read,
        workspace: WorkspaceId,
        flow: FlowId,
    ) -> Result<std::result::Result<StartableFlow, Unstartable>> {
        Ok(self.state().flows.get(&(workspace, flow)).cloned().unwrap_or(Err(Unstartable::Missing)))
    }

    fn start(&self, tx: &mut Tx, start: &StartFlow) -> Result<FlowStart> {
        let started = self.begin(start, None, Some(tx.now()))?;
        Ok(match started.end {
            FlowEnd::Active => FlowStart::Active(started.run),
            _ => FlowStart::Run(started.run),
        })
    }

    fn answer(&self, start: StartFlow, patience: Duration) -> BoxFuture<Result<FlowAnswer>> {
        let begun = self.begin(&start, Some(patience), None);
        if begun.as_ref().is_ok_and(|started| matches!(started.end, FlowEnd::Hangs)) {
            return Box::pin(std::future::pending());
        }
        let answer = begun.map(|StartedFlow { run, end, .. }| match end {
            FlowEnd::Response(response) => FlowAnswer::Response(run, response),
            FlowEnd::Completed(output) => FlowAnswer::Completed(run, output),
            FlowEnd::Ended(status, message) => FlowAnswer::Ended(run, status, message.to_owned()),
            FlowEnd::Pending | FlowEnd::Active | FlowEnd::Hangs | FlowEnd::Refused(_) => {
                FlowAnswer::Pending(run)
            }
        });
        Box::pin(std::future::ready(answer))
    }

    fn interrupt(&self, _: &mut Tx, _: WorkspaceId, _: ContactId) -> Result<usize> {
        Ok(0)
    }

    fn cancel_started_by(&self, _: &mut Tx, _: WorkspaceId, _: model::AutomationId) -> Result<usize> {
        Ok(0)
    }
}
