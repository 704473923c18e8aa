//! Test runs: nothing acts, and nobody waits.

use crate::program::Program;
use crate::state::{Ending, Outcome, Task};
use crate::values::Values;
use flow_graphs::{NodeType, Role};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// What a test run feeds to its nodes.
#[derive(Debug, Clone, Default)]
pub struct Simulation {
    /// What the contact answers, in order. A question without an answer runs into its timeout.
    pub replies: VecDeque<String>,
}

/// A node of a test run that would have acted or waited.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulatedStep {
    /// The id of the node.
    pub node_id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// The iterations of loops to which it belongs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Its settings, with the values of their templates.
    pub input: Value,
    /// The port by which the run went on.
    pub port: String,
    /// Its output.
    pub output: Value,
}

impl Simulation {
    /// Carries out a run in memory.
    pub fn run(
        mut self,
        program: &Program,
        payload: &Value,
        values: &Values,
    ) -> (Vec<SimulatedStep>, Option<Ending>) {
        let mut state = program.start(payload);
        let mut steps = Vec::new();
        let mut open: VecDeque<Task> = program.advance(&mut state, values).into();
        while let Some(task) = open.pop_front() {
            let (port, output) = self.outcome(program, &task);
            steps.push(SimulatedStep {
                node_id: task.node,
                kind: task.kind,
                path: task.path,
                input: task.config,
                port: port.clone(),
                output: output.clone(),
            });
            program.finish(&mut state, task.token, Outcome::Done { port, output }, values);
            open.extend(program.advance(&mut state, values));
        }
        (steps, state.ending)
    }

    /// Returns the port and the output of a node: the pinned one, an answer of the contact, or a note that nothing was done.
    pub fn outcome(&mut self, program: &Program, task: &Task) -> (String, Value) {
        let next = || "next".to_owned();
        if let Some(pinned) = program.node(&task.node).and_then(|node| node.pinned_output.clone()) {
            return (next(), pinned);
        }
        match task.kind {
            NodeType::Ask | NodeType::WaitForReply => match self.replies.pop_front() {
                Some(reply) => answered(task, &reply),
                None => ("timeout".to_owned(), Value::Null),
            },
            NodeType::Approval => {
                ("approved".to_owned(), json!({ "decision": "approved", "simulated": true }))
            }
            NodeType::WaitForEvent | NodeType::Join => ("timeout".to_owned(), Value::Null),
            NodeType::Classify => ("other".to_owned(), json!({ "class": "other", "simulated": true })),
            kind if kind.role() == Role::Waits => (next(), json!({ "skipped": true })),
            _ => (next(), json!({ "simulated": true })),
        }
    }
}

/// An answer to a question: the port of the choice that it names, if the question has choices.
fn answered(task: &Task, reply: &str) -> (String, Value) {
    if task.kind == NodeType::WaitForReply {
        return ("next".to_owned(), json!({ "text": reply, "messages": [reply] }));
    }
    let choices = task.config.get("choices").and_then(Value::as_array).into_iter().flatten();
    let text =
        |choice: &Value, name: &str| choice.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let chosen = choices
        .map(|choice| (text(choice, "id"), text(choice, "title")))
        .find(|(id, title)| id == reply || title.eq_ignore_ascii_case(reply))
        .map(|(id, _)| id);
    match (chosen, task.config.get("expects").and_then(Value::as_str)) {
        (Some(id), _) => (id.clone(), json!({ "value": id, "raw": reply })),
        (None, Some("choice")) => ("invalid".to_owned(), json!({ "value": null, "raw": reply })),
        (None, _) => ("next".to_owned(), json!({ "value": reply, "raw": reply })),
    }
}
