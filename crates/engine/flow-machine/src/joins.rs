//! Joins: branches come together.

use crate::program::Program;
use crate::state::{Iteration, Phase, State, Task, Token};
use flow_graphs::config::{FlowJoinMode, Join};
use flow_graphs::{Edge, Node, NodeType};
use serde::Deserialize;
use serde_json::{Map, Value, json};

impl Program {
    /// A branch arrives. The first one waits for the others, and has a task if the join has a timeout.
    pub(crate) fn arrive(&self, state: &mut State, id: u32, node: &Node) -> Option<Task> {
        let Token { iteration, branches, .. } = state.token(id)?.clone();
        let first = state.tokens.iter_mut().find(|other| {
            other.node == node.id
                && other.iteration == iteration
                && matches!(other.phase, Phase::Joining { .. })
        });
        if let Some(first) = first {
            if let Phase::Joining { arrived } = &mut first.phase {
                *arrived += 1;
            }
            first.branches.extend(branches);
            state.remove(id);
            return None;
        }
        let timed = settings(node).timeout_seconds.is_some();
        let task = if timed { self.task(state, id, node, Value::Object(node.config.clone())) } else { None };
        if let Some(token) = state.token_mut(id) {
            token.phase = Phase::Joining { arrived: 1 };
        }
        task
    }

    /// Lets a join go on that has what it waits for, or that no other branch can reach. Returns whether there was one. Branches
    /// that come too late end.
    pub(crate) fn release_join(&self, state: &mut State) -> bool {
        let released = state.tokens.iter().find_map(|token| {
            let Phase::Joining { arrived } = token.phase else { return None };
            let node = self.node(&token.node)?;
            let settings = settings(node);
            let suffices = match settings.mode {
                FlowJoinMode::All => false,
                FlowJoinMode::Any => true,
                FlowJoinMode::Count => i64::from(arrived) >= settings.count.unwrap_or(1),
            };
            let late = self.others(state, token);
            (suffices || late.is_empty()).then_some((token.id, late))
        });
        let Some((id, late)) = released else { return false };
        state.remove_all(late);
        let output = joined(state, id).unwrap_or_default();
        self.leave(state, id, Edge::NEXT, &output);
        true
    }

    /// Ends the branches that have not arrived when the time of a join is over.
    pub(crate) fn end_late_branches(&self, state: &mut State, id: u32) {
        let joining = state.token(id).filter(|token| matches!(token.phase, Phase::Joining { .. }));
        let late = joining.map(|token| self.others(state, token));
        state.remove_all(late.unwrap_or_default());
    }

    /// Returns the tokens that may still come to the join at which a token waits.
    fn others(&self, state: &State, joining: &Token) -> Vec<u32> {
        let others = state.tokens.iter().filter(|other| {
            other.id != joining.id
                && state.is_within(other, joining.iteration)
                && self.can_arrive(state, &other.node, other.iteration, &joining.node, joining.iteration)
        });
        others.map(|other| other.id).collect()
    }

    /// Returns whether a token at a node may still come to a join. One in a loop comes as the loop does.
    fn can_arrive(
        &self,
        state: &State,
        node: &str,
        iteration: Option<Iteration>,
        join: &str,
        of_join: Option<Iteration>,
    ) -> bool {
        let mut at = (node.to_owned(), iteration);
        loop {
            let (node, iteration) = &at;
            if *iteration == of_join {
                return node == join || self.leads(node, join);
            }
            let Some(around) = iteration.and_then(|one| state.token(one.of)) else { return false };
            at = (around.node.clone(), around.iteration);
        }
    }
}

/// Returns the output of a join at which a token waits: the number of the branches that have arrived, and the output of the last
/// node of each. `None` for any other token.
pub(crate) fn joined(state: &State, id: u32) -> Option<Value> {
    let token = state.token(id)?;
    let Phase::Joining { arrived } = token.phase else { return None };
    let last = |node: &String| state.output_in(token.iteration, node).cloned().unwrap_or_default();
    let branches: Map<String, Value> = token.branches.iter().map(|node| (node.clone(), last(node))).collect();
    Some(json!({ "arrived": arrived, "branches": branches }))
}

fn settings(node: &Node) -> Join {
    debug_assert_eq!(node.kind, NodeType::Join, "only joins are asked");
    Join::deserialize(Value::Object(node.config.clone())).unwrap_or_default()
}
