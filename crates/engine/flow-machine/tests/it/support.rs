//! A run whose tasks a test carries out.

use ::model::Timestamp;
use flow_graphs::{Anything, Graph, Severity, check};
use flow_machine::{Ending, Outcome, Program, State, Task, Values};
use serde_json::{Value, json};

/// A node with settings.
pub fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({ "id": id, "type": kind, "config": config })
}

/// A program of these nodes and edges, without an error. An edge is written `from>to` or `from.port>to`.
pub fn program(nodes: Value, edges: &[&str], variables: Value) -> Program {
    let edges: Vec<Value> = edges
        .iter()
        .map(|edge| {
            let (from, to) = edge.split_once('>').unwrap();
            let (from, port) = from.split_once('.').unwrap_or((from, "next"));
            json!({ "from": from, "port": port, "to": to })
        })
        .collect();
    let graph = Graph::read(json!({ "nodes": nodes, "edges": edges, "variables": variables })).unwrap();
    let issues = check(&graph, &Anything);
    let errors: Vec<_> = issues.iter().filter(|issue| issue.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}");
    Program::compile(graph).unwrap()
}

pub fn values(input: Value) -> Values {
    let roots = json!({ "input": input, "contact": { "$name": "Ana" } });
    Values {
        roots: roots.as_object().unwrap().clone(),
        now: Timestamp::from_millis(1_700_000_000_000),
        zone: chrono_tz::Tz::UTC,
        run: "frun_1".to_owned(),
        contact: Some("7".to_owned()),
    }
}

/// A run under way. Its state is stored and read back before each change.
pub struct Run<'a> {
    pub program: &'a Program,
    pub state: State,
    pub values: Values,
    pub open: Vec<Task>,
}

impl<'a> Run<'a> {
    pub fn start(program: &'a Program, input: Value) -> Self {
        let state = program.start(&input);
        let mut run = Self { program, state, values: values(input), open: Vec::new() };
        run.advance();
        run
    }

    pub fn advance(&mut self) {
        let stored = serde_json::to_string(&self.state).unwrap();
        self.state = serde_json::from_str(&stored).unwrap();
        let tasks = self.program.advance(&mut self.state, &self.values);
        self.open.extend(tasks);
    }

    /// Carries out the open task of a node.
    pub fn finish(&mut self, node: &str, outcome: Outcome) {
        let place = self.open.iter().position(|task| task.node == node);
        let task = self.open.remove(place.unwrap_or_else(|| panic!("{node} is not open: {:?}", self.open)));
        let again = self.program.finish(&mut self.state, task.token, outcome, &self.values);
        self.open.extend(again);
        self.advance();
    }

    pub fn done(&mut self, node: &str, output: Value) {
        self.finish(node, Outcome::done(output));
    }

    pub fn port(&mut self, node: &str, port: &str, output: Value) {
        self.finish(node, Outcome::Done { port: port.to_owned(), output });
    }

    pub fn fails(&mut self, node: &str, code: &str, is_transient: bool) {
        let (code, message) = (code.to_owned(), "it failed".to_owned());
        self.finish(node, Outcome::Failed { code, message, is_transient, retry_after: None });
    }

    pub fn open(&self) -> Vec<&str> {
        self.open.iter().map(|task| task.node.as_str()).collect()
    }

    pub fn output(&self) -> &Value {
        match &self.state.ending {
            Some(Ending::Completed { output }) => output,
            other => panic!("{other:?}, open: {:?}", self.open()),
        }
    }

    pub fn fault(&self) -> (&str, &str) {
        match &self.state.ending {
            Some(Ending::Fault(fault)) => (&fault.node_id, &fault.code),
            other => panic!("{other:?}"),
        }
    }
}
