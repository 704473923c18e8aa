//! Where a drive begins: at the trigger, at what has arrived, or at what the worker before left open.

use super::{AtWork, Changes, Drive, OpenStep};
use crate::engine::FlowEngine;
use crate::engine::content::Content;
use crate::engine::values::Surroundings;
use crate::nodes::{Arrival, NodeCall};
use crate::runs::row::{FlowRunMode, FlowRunStatus, RunContent, RunRow};
use crate::runs::steps::{FlowStepStatus, StepRow};
use crate::runs::waits::{FlowWaitType, WaitRow};
use crate::schema::{flow_steps, flow_waits};
use crate::waits;
use diesel::prelude::*;
use flow_graphs::{NodeType, is_repeatable};
use flow_machine::{Outcome, Simulation, State, Task};
use model::{Caller, JsonText, Result};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use store::Read;

/// How long the memory of keys lasts that makes an effect happen once, in seconds.
const KEYS_REMEMBERED_SECONDS: i64 = 24 * 3600;

/// What a drive needs of the database.
pub(crate) struct Loaded {
    pub(crate) row: RunRow,
    pub(crate) content: Arc<Content>,
    pub(crate) started_with: RunContent,
    pub(crate) around: Surroundings,
    pub(crate) left: Left,
}

/// What the database knows of a run that goes on.
#[derive(Default)]
pub(crate) struct Left {
    steps: Vec<StepRow>,
    waits: Vec<WaitRow>,
}

impl Left {
    /// Reads the steps that have not ended, and the waits.
    pub(crate) fn of(read: &mut Read, row: &RunRow) -> Result<Self> {
        let steps = flow_steps::table
            .filter(flow_steps::run_id.eq(&row.id))
            .filter(flow_steps::status.eq_any(FlowStepStatus::OPEN))
            .order(flow_steps::position)
            .select(StepRow::as_select())
            .load(read.connection())?;
        let waits = flow_waits::table
            .filter(flow_waits::run_id.eq(&row.id))
            .select(WaitRow::as_select())
            .load(read.connection())?;
        Ok(Self { steps, waits })
    }
}

impl Drive {
    /// A drive of a claimed run. `left` is what the worker before has left of it.
    ///
    /// # Errors
    /// When its row is damaged.
    pub(crate) fn new(engine: &FlowEngine, loaded: Loaded, caller: Caller) -> Result<Self> {
        let Loaded { row, content, started_with, around, left } = loaded;
        let state: State = match &row.state {
            Some(state) => state.parse()?,
            None => State::default(),
        };
        let simulation = (row.mode == FlowRunMode::Test)
            .then(|| Simulation { replies: started_with.replies.iter().cloned().collect() });
        let mut open = HashMap::new();
        for step in left.steps {
            if let Some(step) = OpenStep::stored(step)? {
                open.insert(step.task.token, step);
            }
        }
        let response = row.response.as_ref().map(JsonText::parse).transpose()?;
        Ok(Self {
            engine: engine.clone(),
            row,
            content,
            started_with: Arc::new(started_with),
            caller,
            around,
            state,
            open,
            left: left.waits,
            changes: Changes::default(),
            look_back: Vec::new(),
            simulation,
            pause: None,
            response: response.map(|response| (response, true)),
        })
    }

    /// Puts in what has happened since the run was left. Returns whether an event has cancelled the run.
    pub(super) async fn begin(&mut self, at_work: &mut AtWork) -> Result<bool> {
        if self.row.state.is_none() {
            let payload = if self.started_with.payload.is_null() {
                self.started_with.input.clone()
            } else {
                self.started_with.payload.clone()
            };
            self.state = self.content.program.start(&payload);
            self.note_trigger(&payload);
            let cancels = waits::cancels(&self.row, &self.content.settings, &self.around.values)?;
            self.look_back.extend(cancels.iter().cloned());
            self.changes.waits.extend(cancels);
            return Ok(false);
        }
        let left = std::mem::take(&mut self.left);
        if left.iter().any(|wait| wait.token < 0 && wait.arrived.is_some()) {
            return Ok(true);
        }
        if self.row.status == FlowRunStatus::Running {
            // The worker before died before it had looked back.
            let missed = left.iter().filter(|wait| wait.looks_back() && wait.arrived.is_none());
            self.look_back.extend(missed.cloned());
        }
        let busy: Vec<u32> = self.state.busy().map(|(token, _)| token).collect();
        let now = self.engine.now();
        for token in self.open.keys().copied().collect::<Vec<_>>() {
            let wait = left.iter().find(|wait| wait.token == i64::from(token));
            match wait {
                Some(wait) => {
                    let arrival = match &wait.arrived {
                        Some(arrived) => Arrival::Came(arrived.parse()?),
                        None if wait.due_at.is_some_and(|due| due <= now) => Arrival::TimedOut,
                        None => continue,
                    };
                    self.wake(token, wait.clone(), arrival, at_work).await?;
                }
                None if busy.contains(&token) => self.recover(token, at_work).await?,
                None => self.drop_step(token),
            }
        }
        Ok(false)
    }

    /// A wait has ended.
    async fn wake(
        &mut self,
        token: u32,
        wait: WaitRow,
        arrival: Arrival,
        at_work: &mut AtWork,
    ) -> Result<()> {
        let Some(step) = self.open.get(&token) else { return Ok(()) };
        let kind = step.task.kind;
        if kind == NodeType::Join {
            self.changes.over.push(wait.token);
            let outcome = Outcome::Done { port: "timeout".to_owned(), output: Value::Null };
            return self.settle(token, outcome, at_work).await;
        }
        if wait.kind == FlowWaitType::Retry {
            self.changes.over.push(wait.token);
            self.set_running(token);
            self.act(token, at_work);
            return Ok(());
        }
        let call = self.call(step);
        at_work.push(Box::pin(async move { (token, call.go_on(&wait, arrival).await) }));
        Ok(())
    }

    /// A node was left in the middle: its worker died, or the run paused.
    async fn recover(&mut self, token: u32, at_work: &mut AtWork) -> Result<()> {
        let Some(step) = self.open.get(&token) else { return Ok(()) };
        let was_begun = step.row.status == FlowStepStatus::Running;
        let remembered_since = self.engine.now().plus_seconds(-KEYS_REMEMBERED_SECONDS);
        let is_forgotten = step.row.started_at < remembered_since;
        if was_begun && (is_forgotten || has_foreign_effect(&step.task)) {
            return self.settle(token, Outcome::Unknown, at_work).await;
        }
        self.set_running(token);
        self.act(token, at_work);
        Ok(())
    }
}

/// Returns whether a node that is executed again may have its effect twice. A function may not: its call is found by its key.
fn has_foreign_effect(task: &Task) -> bool {
    let config = task.config.as_object();
    task.kind != NodeType::Function && !config.is_some_and(|config| is_repeatable(task.kind, config))
}

impl OpenStep {
    /// A step that the worker before has left, with its task.
    fn stored(row: StepRow) -> Result<Option<Self>> {
        let (Some(kind), Ok(token)) = (NodeType::parse(&row.node_type), u32::try_from(row.token)) else {
            return Ok(None);
        };
        let task = Task {
            token,
            node: row.node_id.clone(),
            kind,
            path: row.path.clone(),
            config: row.input.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default(),
            attempt: u32::try_from(row.attempt).unwrap_or(1),
            delay_seconds: 0,
        };
        Ok(Some(Self { row, task }))
    }

    /// Returns whether it waits for something.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.row.status, FlowStepStatus::Waiting | FlowStepStatus::Pending)
    }
}

impl Drive {
    /// The call of a node.
    pub(super) fn call(&self, step: &OpenStep) -> NodeCall {
        NodeCall {
            engine: self.engine.clone(),
            run: self.row.clone(),
            content: self.content.clone(),
            task: step.task.clone(),
            caller: self.caller.clone(),
            secrets: self.around.secrets.clone(),
            zone: self.around.values.zone,
            key: format!("flow:{}:{}:{}", self.row.id, step.task.node, step.task.token),
            step_id: step.row.id.clone(),
            position: step.row.position,
            began_at: step.row.started_at,
        }
    }
}
