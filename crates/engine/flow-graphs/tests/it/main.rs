//! The checks of flows, from JSON as owners send it.
#![expect(
    clippy::unwrap_used,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod checks;
mod cycles;
mod expressions;

use flow_graphs::{Anything, Graph, Issue, Severity, check};
use serde_json::{Value, json};

/// A graph of these nodes and edges. An edge is written `from>to` or `from.port>to`.
pub fn graph(nodes: Value, edges: &[&str]) -> Graph {
    let edges: Vec<Value> = edges
        .iter()
        .map(|edge| {
            let (from, to) = edge.split_once('>').unwrap();
            match from.split_once('.') {
                Some((from, port)) => json!({ "from": from, "port": port, "to": to }),
                None => json!({ "from": from, "to": to }),
            }
        })
        .collect();
    serde_json::from_value(json!({ "nodes": nodes, "edges": edges })).unwrap()
}

/// The issues as `severity code param`.
pub fn issues(graph: &Graph) -> Vec<String> {
    check(graph, &Anything).iter().map(short).collect()
}

/// The same, without warnings.
pub fn errors(graph: &Graph) -> Vec<String> {
    check(graph, &Anything).iter().filter(|issue| issue.severity == Severity::Error).map(short).collect()
}

fn short(issue: &Issue) -> String {
    format!("{} {} {}", issue.severity.as_str(), issue.code.as_str(), issue.param)
}

/// A node with settings.
pub fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({ "id": id, "type": kind, "config": config })
}

/// The trigger.
pub fn start() -> Value {
    json!({ "id": "start", "type": "trigger" })
}
