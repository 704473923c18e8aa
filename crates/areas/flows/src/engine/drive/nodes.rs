//! How a drive executes nodes and takes what they give.

use super::trace::ended;
use super::{AtWork, Drive, OpenStep};
use crate::nodes::{NodeFailure, Wait, Work};
use crate::runs::row::FlowPauseReason;
use crate::runs::steps::FlowStepStatus;
use crate::runs::waits::{FlowWaitType, WaitRow};
use flow_graphs::NodeType;
use flow_machine::{Outcome, Task};
use model::{ContactId, JsonText, Result};
use serde_json::{Value, json};

/// The largest output of a node, in bytes.
const LARGEST_OUTPUT: usize = 256 * 1024;

impl Drive {
    /// Executes everything that only computes, and hands the nodes behind it to their handlers.
    pub(super) async fn advance(&mut self, at_work: &mut AtWork) -> Result<()> {
        loop {
            let mut trace = Vec::new();
            let tasks = self.content.program.advance_traced(&mut self.state, &self.around.values, &mut trace);
            for step in trace {
                self.note_computed(step);
            }
            let mut has_settled = false;
            for task in tasks {
                has_settled |= self.hand_out(task, at_work).await?;
            }
            self.drop_steps_of_ended_branches();
            if !has_settled {
                return Ok(());
            }
        }
    }

    /// Hands a task to its handler. Returns whether the node has ended already.
    async fn hand_out(&mut self, task: Task, at_work: &mut AtWork) -> Result<bool> {
        let token = task.token;
        let delay = i64::try_from(task.delay_seconds).unwrap_or(i64::MAX);
        let status = if delay > 0 { FlowStepStatus::Pending } else { FlowStepStatus::Running };
        let row = self.new_step(&task, status);
        self.changes.begun.push(row.clone());
        self.open.insert(token, OpenStep { row, task });
        if let Some(simulation) = &mut self.simulation
            && let Some(step) = self.open.get(&token)
            && !matches!(step.task.kind, NodeType::Respond | NodeType::Join)
        {
            let (port, output) = simulation.outcome(&self.content.program, &step.task);
            self.settle(token, Outcome::Done { port, output }, at_work).await?;
            return Ok(true);
        }
        if delay > 0 {
            let due_at = Some(self.engine.now().plus_seconds(delay));
            self.wait(token, Wait { due_at, ..Wait::new(FlowWaitType::Retry) });
            return Ok(false);
        }
        let Some(step) = self.open.get(&token) else { return Ok(false) };
        if self.around.secrets.are_in(&step.task.config) && !may_use_secrets(step.task.kind) {
            let message = "Secrets can be used in the settings of `http_request` and `function` only.";
            let outcome = NodeFailure::new("secret_not_allowed", message).into();
            self.settle(token, outcome, at_work).await?;
            return Ok(true);
        }
        if !has_no_effect(step.task.kind) {
            self.act(token, at_work);
            return Ok(false);
        }
        let call = self.call(step);
        let result = call.execute().await;
        let has_ended = !matches!(result, Ok(Work::Waits(_)));
        self.take(token, result, at_work).await?;
        Ok(has_ended)
    }

    /// Begins to execute a node whose row says that it acts.
    pub(super) fn act(&mut self, token: u32, at_work: &mut AtWork) {
        let Some(step) = self.open.get(&token) else { return };
        let call = self.call(step);
        at_work.push(Box::pin(async move { (token, call.execute().await) }));
    }

    pub(super) fn set_running(&mut self, token: u32) {
        if let Some(step) = self.open.get_mut(&token) {
            step.row.status = FlowStepStatus::Running;
            let row = step.row.clone();
            self.note_changed(row);
        }
    }

    /// Takes what a handler has done.
    pub(super) async fn take(
        &mut self,
        token: u32,
        result: std::result::Result<Work, NodeFailure>,
        at_work: &mut AtWork,
    ) -> Result<()> {
        let outcome = match result {
            Ok(Work::Waits(wait)) => {
                self.wait(token, wait);
                return Ok(());
            }
            Ok(Work::Answers(response)) => {
                let output = json!({ "status": response.status });
                self.response.get_or_insert((response, false));
                Outcome::done(output)
            }
            Ok(Work::Ended(outcome)) => outcome,
            Err(failure) => match pause_of(&failure.code) {
                Some(reason) => {
                    // The node is executed again when the reason is removed.
                    self.pause = Some(reason);
                    self.set_status(token, FlowStepStatus::Pending);
                    return Ok(());
                }
                None => failure.into(),
            },
        };
        self.settle(token, outcome, at_work).await
    }

    /// Puts the outcome of a node into the run. A node that is tried again is handed out again.
    pub(super) async fn settle(&mut self, token: u32, outcome: Outcome, at_work: &mut AtWork) -> Result<()> {
        let outcome = self.checked(token, outcome);
        let Some(step) = self.open.remove(&token) else { return Ok(()) };
        let (kind, is_waiting) = (step.task.kind, step.row.status == FlowStepStatus::Waiting);
        if is_waiting {
            self.changes.over.push(i64::from(token));
        }
        let row = ended(step.row, &outcome, self.engine.now());
        self.row.energy = self.row.energy.saturating_add(row.energy);
        self.note_changed(row);
        if kind.scope().is_some() || is_waiting {
            self.take_contact(kind, &outcome);
            self.engine.refresh(&self.row, &self.content, &mut self.around.values).await?;
        }
        let again = self.content.program.finish(&mut self.state, token, outcome, &self.around.values);
        if let Some(task) = again {
            Box::pin(self.hand_out(task, at_work)).await?;
        }
        Ok(())
    }

    /// A run without a contact gets the one that `update_contact` has created.
    fn take_contact(&mut self, kind: NodeType, outcome: &Outcome) {
        if let (NodeType::UpdateContact, None, Outcome::Done { output, .. }) =
            (kind, self.row.contact_id, outcome)
            && let Some(id) = output.get("id").and_then(Value::as_i64)
        {
            self.row.contact_id = Some(ContactId(id));
        }
    }

    /// An output that is too large is a failure.
    fn checked(&self, token: u32, outcome: Outcome) -> Outcome {
        let Outcome::Done { port, output } = outcome else { return outcome };
        let output = match self.open.get(&token) {
            Some(step) if may_use_secrets(step.task.kind) => self.around.secrets.mask(&output),
            _ => output,
        };
        if serde_json::to_vec(&output).is_ok_and(|bytes| bytes.len() > LARGEST_OUTPUT) {
            let message = format!("The output is larger than {LARGEST_OUTPUT} bytes.");
            return NodeFailure::new("output_too_large", message).into();
        }
        Outcome::Done { port, output }
    }

    /// The run waits for something at a token.
    pub(super) fn wait(&mut self, token: u32, wait: Wait) {
        let is_retry = wait.kind == FlowWaitType::Retry;
        let status = if is_retry { FlowStepStatus::Pending } else { FlowStepStatus::Waiting };
        self.set_status(token, status);
        let Some(step) = self.open.get(&token) else { return };
        self.changes.over.retain(|over| *over != i64::from(token));
        self.changes.waits.retain(|other| other.token != i64::from(token));
        let row = WaitRow {
            run_id: self.row.id.clone(),
            token: i64::from(token),
            workspace_id: self.row.workspace_id,
            livemode: self.row.livemode,
            position: step.row.position,
            kind: wait.kind,
            topic: wait.topic,
            key: wait.key,
            contact_id: wait.contact,
            details: JsonText::of(&wait.details),
            arrived: None,
            since: step.row.started_at,
            due_at: wait.due_at,
        };
        self.look_back.retain(|other| other.token != row.token);
        if row.looks_back() {
            self.look_back.push(row.clone());
        }
        self.changes.waits.push(row);
    }

    fn set_status(&mut self, token: u32, status: FlowStepStatus) {
        if let Some(step) = self.open.get_mut(&token)
            && step.row.status != status
        {
            step.row.status = status;
            let row = step.row.clone();
            self.note_changed(row);
        }
    }

    /// Ends the steps of branches that the machine has ended.
    fn drop_steps_of_ended_branches(&mut self) {
        if self.state.ending.is_some() {
            return;
        }
        let gone: Vec<u32> = self.open.keys().copied().filter(|token| !self.state.has(*token)).collect();
        for token in gone {
            self.drop_step(token);
        }
    }

    /// A step whose branch has ended before it.
    pub(super) fn drop_step(&mut self, token: u32) {
        let Some(step) = self.open.remove(&token) else { return };
        self.changes.over.push(i64::from(token));
        self.changes.waits.retain(|wait| wait.token != i64::from(token));
        let mut row = step.row;
        // A join is left when its branches have come.
        let is_join = step.task.kind == NodeType::Join;
        row.status = if is_join { FlowStepStatus::Completed } else { FlowStepStatus::Cancelled };
        row.ended_at = Some(self.engine.now());
        self.note_changed(row);
    }
}

/// Returns whether executing a node changes nothing, so that no row has to be written before.
fn has_no_effect(kind: NodeType) -> bool {
    matches!(
        kind,
        NodeType::Delay
            | NodeType::WaitUntil
            | NodeType::WaitForEvent
            | NodeType::WaitForReply
            | NodeType::Respond
            | NodeType::Join
    )
}

fn may_use_secrets(kind: NodeType) -> bool {
    matches!(kind, NodeType::HttpRequest | NodeType::Function)
}

/// Why a failure pauses the run instead of failing the node.
fn pause_of(code: &str) -> Option<FlowPauseReason> {
    match code {
        "energy_depleted" => Some(FlowPauseReason::EnergyDepleted),
        "missing_scope" => Some(FlowPauseReason::KeyLost),
        _ => None,
    }
}
