//! Loops: their bodies are executed once for each element, or while a condition holds.

use crate::program::Program;
use crate::state::{Fault, Iteration, Loop, Phase, Running, State};
use crate::values::{Reading, Values};
use flow_graphs::config::{FlowItemError, ForEach, While};
use flow_graphs::{Edge, Node, NodeType};
use serde::Deserialize;
use serde_json::{Value, json};

impl Program {
    /// Begins a loop at a token. A `while` comes here again after each iteration.
    pub(crate) fn begin_loop(
        &self,
        state: &mut State,
        id: u32,
        elements: Option<Vec<Value>>,
        values: &Values,
    ) {
        let is_new = state.loop_of(id).is_none();
        if is_new {
            let elements = elements.clone().unwrap_or_default();
            state.loops.push(Loop {
                token: id,
                elements,
                next: 0,
                running: Vec::new(),
                results: Vec::new(),
                failed: Vec::new(),
            });
        }
        if let Some(token) = state.token_mut(id) {
            token.phase = Phase::Looping;
        }
        if elements.is_some() {
            self.begin_iterations(state, id);
        } else {
            self.turn_while(state, id, values);
        }
    }

    /// Begins as many iterations of a `for_each` as may run at a time.
    fn begin_iterations(&self, state: &mut State, id: u32) {
        let Some(node) = state.token(id).and_then(|token| self.node(&token.node)) else { return };
        let parallel =
            ForEach::deserialize(Value::Object(node.config.clone())).map_or(1, |loops| loops.parallel);
        let parallel = usize::try_from(parallel).unwrap_or(1);
        while let Some(one) = state.loop_of(id) {
            let has_more = usize::try_from(one.next).is_ok_and(|next| next < one.elements.len());
            if !has_more || one.running.len() >= parallel {
                break;
            }
            self.begin_iteration(state, id, node);
        }
    }

    fn begin_iteration(&self, state: &mut State, id: u32, node: &Node) {
        let Some(one) = state.loop_mut(id) else { return };
        let index = one.next;
        one.next += 1;
        one.running.push(Running { index, ..Running::default() });
        let iteration = Iteration { of: id, index };
        for first in self.behind(&node.id, "each") {
            state.add(first, Some(iteration), None);
        }
    }

    /// Begins the next iteration of a `while`, or leaves it.
    fn turn_while(&self, state: &mut State, id: u32, values: &Values) {
        let Some(token) = state.token(id).cloned() else { return };
        let Some(node) = self.node(&token.node) else { return };
        let most =
            While::deserialize(Value::Object(node.config.clone())).map_or(100, |loops| loops.max_iterations);
        let done = state.loop_of(id).map_or(0, |one| one.next);
        let reading = Reading::new(values, state, &token);
        match self.holds(node, "if", &reading) {
            Ok(true) if i64::from(done) < most => self.begin_iteration(state, id, node),
            Ok(holds) => {
                let output = json!({ "iterations": done });
                state.loops.retain(|one| one.token != id);
                let port = if holds { "limit" } else { Edge::NEXT };
                self.leave(state, id, port, &output);
            }
            Err(failure) => self.fail(state, id, failure.code(), &failure.to_string()),
        }
    }

    /// Ends an iteration that has no token any more. Returns whether there was one.
    pub(crate) fn end_iteration(&self, state: &mut State) -> bool {
        let ended = state.loops.iter().find_map(|one| {
            let running = one.running.iter().find(|running| {
                let iteration = Some(Iteration { of: one.token, index: running.index });
                !state.tokens.iter().any(|token| state.is_within(token, iteration))
            })?;
            Some((one.token, running.index))
        });
        let Some((token, index)) = ended else { return self.end_loop(state) };
        if let Some(one) = state.loop_mut(token)
            && let Some(place) = one.running.iter().position(|running| running.index == index)
        {
            let running = one.running.swap_remove(place);
            let has_failed = one.failed.iter().any(|(failed, _)| *failed == index);
            if !has_failed {
                one.results.push((index, running.last));
            }
        }
        self.go_on(state, token);
        true
    }

    /// After an iteration: the next one begins.
    fn go_on(&self, state: &mut State, token: u32) {
        let kind = state.token(token).and_then(|token| self.node(&token.node)).map(|node| node.kind);
        match kind {
            Some(NodeType::ForEach) => self.begin_iterations(state, token),
            // The condition reads values that the outside gives: it is evaluated with the next advance.
            Some(NodeType::While) => {
                if let Some(token) = state.token_mut(token) {
                    token.phase = Phase::Ready;
                }
            }
            _ => {}
        }
    }

    /// Leaves a `for_each` all of whose elements are done.
    fn end_loop(&self, state: &mut State) -> bool {
        let done = state.loops.iter().position(|one| {
            let is_looping = state.token(one.token).is_some_and(|token| token.phase == Phase::Looping);
            is_looping && one.running.is_empty()
        });
        let Some(place) = done else { return false };
        let mut one = state.loops.remove(place);
        one.results.sort_by_key(|(index, _)| *index);
        one.failed.sort_by_key(|(index, _)| *index);
        let results: Vec<Value> = one.results.into_iter().map(|(_, result)| result).collect();
        let failed: Vec<Value> = one
            .failed
            .into_iter()
            .map(|(index, fault)| json!({ "index": index, "code": fault.code, "message": fault.message }))
            .collect();
        self.leave(state, one.token, Edge::NEXT, &json!({ "results": results, "failed": failed }));
        true
    }

    /// Lets an iteration fail, if its loop goes on without it. Returns whether it does.
    pub(crate) fn fail_iteration(&self, state: &mut State, iteration: Iteration, fault: &Fault) -> bool {
        let node = state.token(iteration.of).and_then(|token| self.node(&token.node));
        let Some(node) = node.filter(|node| node.kind == NodeType::ForEach) else { return false };
        let policy =
            ForEach::deserialize(Value::Object(node.config.clone())).map(|loops| loops.on_item_error);
        let policy = policy.unwrap_or_default();
        if policy == FlowItemError::Stop {
            return false;
        }
        let inside: Vec<u32> = state
            .tokens
            .iter()
            .filter(|token| state.is_within(token, Some(iteration)))
            .map(|token| token.id)
            .collect();
        state.remove_all(inside);
        if let Some(one) = state.loop_mut(iteration.of) {
            one.failed.push((iteration.index, fault.clone()));
            if policy == FlowItemError::Null {
                one.results.push((iteration.index, Value::Null));
            }
        }
        true
    }
}
