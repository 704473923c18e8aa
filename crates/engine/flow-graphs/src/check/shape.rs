//! Checks of nodes and edges, without their settings.

use super::{Findings, IssueCode, node_param};
use crate::graph::{Edge, Graph, Node};
use crate::index::{Index, Place};
use crate::nodes::{NodeType, Role, config};
use input::nearest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;

/// The most loops that may contain a node.
const DEEPEST_LOOP: usize = 5;

pub(super) fn check(graph: &Graph, index: &Index<'_>, found: &mut Findings) {
    ids(graph, found);
    edges(graph, index, found);
    trigger(graph, index, found);
    cycles(index, found);
    loops(index, found);
}

fn ids(graph: &Graph, found: &mut Findings) {
    let mut seen = HashSet::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        if !seen.insert(node.id.as_str()) {
            let message = format!("Another node has the id `{}`.", node.id);
            found.error_at(IssueCode::DuplicateId, &node.id, format!("{}.id", node_param(place)), message);
        }
    }
    let mut names = HashSet::new();
    for (place, variable) in graph.variables.iter().enumerate() {
        if !names.insert(variable.name.as_str()) {
            let message = format!("Another variable has the name `{}`.", variable.name);
            found.error(IssueCode::DuplicateId, format!("variables[{place}].name"), message);
        }
        if variable.default.as_ref().is_some_and(|value| !value.is_null() && !variable.kind.fits(value)) {
            let message = format!("The default of `{}` is not of its type.", variable.name);
            found.error(IssueCode::InvalidConfig, format!("variables[{place}].default"), message);
        }
    }
}

fn edges(graph: &Graph, index: &Index<'_>, found: &mut Findings) {
    let ids = || graph.nodes.iter().map(|node| node.id.as_str());
    for (number, edge) in graph.edges.iter().enumerate() {
        for (end, id) in [("from", &edge.from), ("to", &edge.to)] {
            if index.place(id).is_none() {
                let near = nearest(id, ids()).map(|near| format!(" Did you mean `{near}`?"));
                let message = format!("There is no node `{id}`.{}", near.unwrap_or_default());
                found.error(IssueCode::UnknownNode, format!("edges[{number}].{end}"), message);
            }
        }
        let node_at = |id: &str| index.place(id).and_then(|place| index.node(place));
        if let Some(node) = node_at(&edge.from) {
            port(node, edge, number, found);
        }
        if let Some(node) = node_at(&edge.to).filter(|node| node.kind == NodeType::Trigger) {
            let message = "An edge cannot lead to the trigger.";
            found.error_at(IssueCode::LeadsToTrigger, &node.id, format!("edges[{number}].to"), message);
        }
    }
}

fn port(node: &Node, edge: &Edge, number: usize, found: &mut Findings) {
    let ports = node.kind.ports(&Value::Object(node.config.clone()));
    if ports.contains(&edge.port) {
        return;
    }
    let known = match ports.as_slice() {
        [] => "A node of this type has no port.".to_owned(),
        ports => format!("It has `{}`.", ports.join("`, `")),
    };
    let message = format!("`{}` has no port `{}`. {known}", node.id, edge.port);
    found.error_at(IssueCode::UnknownPort, &node.id, format!("edges[{number}].port"), message);
}

fn trigger(graph: &Graph, index: &Index<'_>, found: &mut Findings) {
    let mut triggers = graph.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeType::Trigger);
    let Some((first, _)) = triggers.next() else {
        found.error(IssueCode::NoTrigger, "nodes", "The flow has no node of type `trigger`.");
        return;
    };
    for (place, node) in triggers {
        let message = "A flow has one trigger.";
        found.error_at(IssueCode::SeveralTriggers, &node.id, node_param(place), message);
    }
    let reached = index.reachable(&[first], |_| true);
    for (place, node) in graph.nodes.iter().enumerate() {
        if reached.get(place) == Some(&false) && node.kind != NodeType::Trigger {
            let message = format!("No way leads from the trigger to `{}`.", node.id);
            if node.kind == NodeType::Join {
                found.error_at(IssueCode::Unreachable, &node.id, node_param(place), message);
            } else {
                found.warning_at(IssueCode::Unreachable, &node.id, node_param(place), message);
            }
        }
        if node.kind == NodeType::Jump && jumps_nowhere(node, index) {
            let message = format!("`{}` jumps to a node that does not exist.", node.id);
            let param = format!("{}.config.node_id", node_param(place));
            found.error_at(IssueCode::UnknownNode, &node.id, param, message);
        }
        if node.kind.is_loop() && index.behind(place, "each").next().is_none() {
            let message = format!("The loop `{}` has no body: no edge leaves its port `each`.", node.id);
            found.warning_at(IssueCode::OpenPort, &node.id, node_param(place), message);
        }
    }
}

fn jumps_nowhere(node: &Node, index: &Index<'_>) -> bool {
    node.config.get("node_id").and_then(Value::as_str).is_some_and(|id| index.place(id).is_none())
}

/// Every cycle needs a node that waits for time or for a person. Otherwise a run turns in it until its limit of steps.
fn cycles(index: &Index<'_>, found: &mut Findings) {
    let runs_through = |place: Place| index.node(place).is_some_and(|node| node.disabled || !waits(node));
    for cycle in index.cycles(runs_through) {
        let nodes: Vec<&Node> = cycle.iter().filter_map(|place| index.node(*place)).collect();
        let (Some(place), Some(node)) = (cycle.first(), nodes.first()) else { continue };
        let names: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
        let message = format!("The cycle of `{}` has no node that waits.", names.join("`, `"));
        found.error_at(IssueCode::UnboundedCycle, &node.id, node_param(*place), message);
    }
}

fn waits(node: &Node) -> bool {
    let is_empty_delay = || {
        let delay = config::Delay::deserialize(Value::Object(node.config.clone()));
        delay.is_ok_and(|delay| delay.total_seconds() == 0)
    };
    node.kind.role() == Role::Waits && !(node.kind == NodeType::Delay && is_empty_delay())
}

/// The body of a loop is entered through the loop only, and ends where a way ends.
fn loops(index: &Index<'_>, found: &mut Findings) {
    let mut depths = vec![0_usize; index.len()];
    for place in 0..index.len() {
        let Some(node) = index.node(place).filter(|node| node.kind.is_loop()) else { continue };
        let body = index.body(place);
        for inner in (0..index.len()).filter(|inner| body.get(*inner) == Some(&true)) {
            if let Some(depth) = depths.get_mut(inner) {
                *depth += 1;
            }
            let from_outside = index
                .predecessors(inner)
                .iter()
                .any(|(from, port)| body.get(*from) != Some(&true) && !(*from == place && *port == "each"));
            if let Some(entered) = index.node(inner).filter(|_| from_outside) {
                let message = format!(
                    "`{}` belongs to the body of `{}`, and is reached without it.",
                    entered.id, node.id
                );
                found.error_at(IssueCode::CrossesLoop, &entered.id, node_param(inner), message);
            }
        }
    }
    for (place, _) in depths.iter().enumerate().filter(|(_, depth)| **depth > DEEPEST_LOOP) {
        if let Some(node) = index.node(place) {
            let message = format!("`{}` is in more than {DEEPEST_LOOP} loops.", node.id);
            found.error_at(IssueCode::TooDeep, &node.id, node_param(place), message);
        }
    }
}
