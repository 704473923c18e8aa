//! Test runs: nothing acts, and nobody waits.

use crate::program::Program;
use crate::state::{Ending, Outcome, Task};
use crate::values::Values;
use flow_answers::{Fitting, Locale, Reply, answer};
use flow_graphs::config::{Ask, FlowExpectedAnswer};
use flow_graphs::{Edge, NodeType, Role};
use model::MessageId;
use serde::{Deserialize, Serialize};
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
            // Nobody waits in a test run, so the branches of a join come before its time is over.
            if task.kind == NodeType::Join {
                continue;
            }
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
            NodeType::Ask => self.ask(task),
            NodeType::WaitForReply => match self.replies.pop_front() {
                Some(reply) => (next(), json!({ "text": reply, "messages": [reply] })),
                None => ("timeout".to_owned(), Value::Null),
            },
            NodeType::Approval => {
                ("approved".to_owned(), json!({ "decision": "approved", "simulated": true }))
            }
            NodeType::WaitForEvent => ("timeout".to_owned(), Value::Null),
            NodeType::Classify => ("other".to_owned(), json!({ "class": "other", "simulated": true })),
            kind if kind.role() == Role::Waits => (next(), json!({ "skipped": true })),
            _ => (next(), json!({ "simulated": true })),
        }
    }

    /// Asks a question, again after an answer that does not fit, as often as it says.
    fn ask(&mut self, task: &Task) -> (String, Value) {
        let Ok(ask) = Ask::deserialize(&task.config) else { return ("invalid".to_owned(), Value::Null) };
        let mut misses = 0;
        while let Some(reply) = self.replies.pop_front() {
            if let Some(fitting) = answered(&ask, reply.clone()) {
                return fitting;
            }
            if misses >= ask.retries || self.replies.is_empty() {
                return ("invalid".to_owned(), json!({ "value": null, "raw": reply }));
            }
            misses += 1;
        }
        ("timeout".to_owned(), Value::Null)
    }
}

/// Returns the answer in a reply, checked as that of a contact would be. A file cannot be fed: any text stands for one.
fn answered(ask: &Ask, text: String) -> Option<(String, Value)> {
    if ask.expects == FlowExpectedAnswer::File {
        return Some((Edge::NEXT.to_owned(), json!({ "value": text, "raw": text })));
    }
    let locale = Locale { month_first: false, phone: &phone };
    let reply = Reply { id: MessageId(0), text, reply_id: None, file_ids: Vec::new() };
    let Fitting { port, value, raw } = answer(ask, &[], &[reply], &locale)?;
    Some((port, json!({ "value": value, "raw": raw })))
}

/// Reads a telephone number in international form. Without the business, the country of any other number is unknown.
fn phone(said: &str) -> Option<String> {
    let digits: String = said.chars().filter(|c| !matches!(c, ' ' | '-' | '(' | ')')).collect();
    let bare = digits.strip_prefix('+')?;
    let is_number = (7..=15).contains(&bare.len()) && bare.chars().all(|c| c.is_ascii_digit());
    is_number.then_some(digits)
}
