//! The trace of a run: what a drive writes of the nodes that it executes.

use super::Drive;
use crate::runs::row::RunError;
use crate::runs::steps::{FlowStepStatus, StepRow};
use flow_graphs::{Edge, NodeType};
use flow_machine::{ComputedStep, Outcome, Task};
use model::{JsonText, StepId, Timestamp};
use serde_json::Value;

impl Drive {
    pub(super) fn new_step(&mut self, task: &Task, status: FlowStepStatus) -> StepRow {
        let row = self.step_of(&task.node, task.kind, &task.path, status, Some(&task.config));
        StepRow { token: i64::from(task.token), attempt: i64::from(task.attempt), ..row }
    }

    fn step_of(
        &mut self,
        node: &str,
        kind: NodeType,
        path: &str,
        status: FlowStepStatus,
        input: Option<&Value>,
    ) -> StepRow {
        let now = self.engine.now();
        let position = self.row.step_count;
        self.row.step_count += 1;
        StepRow {
            run_id: self.row.id.clone(),
            position,
            id: StepId::new(now, &*self.engine.db().random()),
            workspace_id: self.row.workspace_id,
            token: 0,
            node_id: node.to_owned(),
            node_type: kind.as_str().to_owned(),
            path: path.to_owned(),
            attempt: 1,
            status,
            input: input.map(JsonText::of),
            output: None,
            error: None,
            port: None,
            energy: 0,
            started_at: now,
            ended_at: None,
        }
    }

    pub(super) fn note_trigger(&mut self, payload: &Value) {
        let Some(node) = self.content.graph.nodes.iter().find(|node| node.kind == NodeType::Trigger) else {
            return;
        };
        let id = node.id.clone();
        let row = self.step_of(&id, NodeType::Trigger, "", FlowStepStatus::Completed, None);
        let (output, port) = (Some(JsonText::of(payload)), Some(Edge::NEXT.to_owned()));
        self.changes.begun.push(StepRow { output, port, ended_at: Some(row.started_at), ..row });
    }

    pub(super) fn note_computed(&mut self, step: ComputedStep) {
        let status = match &step.result {
            Err(_) => FlowStepStatus::Failed,
            Ok(_) if step.is_skipped => FlowStepStatus::Skipped,
            Ok(_) => FlowStepStatus::Completed,
        };
        let row = self.step_of(&step.node, step.kind, &step.path, status, step.config.as_ref());
        let row = match step.result {
            Ok((ports, output)) => StepRow {
                output: (!output.is_null()).then(|| JsonText::of(&output)),
                port: (!ports.is_empty()).then(|| ports.join(",")),
                ..row
            },
            Err(fault) => StepRow { error: Some(JsonText::of(&RunError::of(&fault))), ..row },
        };
        self.changes.begun.push(StepRow { ended_at: Some(row.started_at), ..row });
    }

    /// Writes a step with the next transaction, as new or as changed.
    pub(super) fn note_changed(&mut self, row: StepRow) {
        let position = row.position;
        if let Some(begun) = self.changes.begun.iter_mut().find(|begun| begun.position == position) {
            *begun = row;
        } else {
            self.changes.changed.retain(|changed| changed.position != position);
            self.changes.changed.push(row);
        }
    }
}

/// A step that has ended.
pub(super) fn ended(row: StepRow, outcome: &Outcome, now: Timestamp) -> StepRow {
    let row = StepRow { ended_at: Some(now), ..row };
    match outcome {
        Outcome::Done { port, output } => {
            let energy = output.get("energy").and_then(Value::as_i64).unwrap_or_default();
            let output = (!output.is_null()).then(|| JsonText::of(output));
            StepRow { status: FlowStepStatus::Completed, port: Some(port.clone()), output, energy, ..row }
        }
        Outcome::Failed { code, message, .. } => {
            let error =
                RunError { node_id: Some(row.node_id.clone()), code: code.clone(), message: message.clone() };
            StepRow { status: FlowStepStatus::Failed, error: Some(JsonText::of(&error)), ..row }
        }
        Outcome::Unknown => StepRow { status: FlowStepStatus::Unknown, ..row },
    }
}
