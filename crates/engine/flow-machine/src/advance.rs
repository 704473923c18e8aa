//! How a run moves from node to node.

use crate::compute::Computed;
use crate::joins::joined;
use crate::program::Program;
use crate::state::{ComputedStep, Ending, Fault, Iteration, Outcome, Phase, State, Task, Token};
use crate::values::{Reading, Values};
use flow_graphs::{Edge, Node, NodeType, Role};
use serde_json::{Map, Value};

/// The most nodes that a run executes.
const MAX_STEPS: u32 = 10_000;

impl Program {
    /// Begins a run at the trigger, whose output is the payload.
    pub fn start(&self, payload: &Value) -> State {
        let mut state = State::default();
        for variable in &self.graph.variables {
            state.variables.insert(variable.name.clone(), variable.default.clone().unwrap_or_default());
        }
        if let Some(trigger) = self.trigger() {
            let token = state.add(&trigger.id, None, None);
            state.steps = 1;
            self.leave(&mut state, token, Edge::NEXT, payload);
        }
        self.settle(&mut state);
        state
    }

    /// Executes everything that only computes, until each place waits for the outside or the run has ended. Returns the new
    /// tasks.
    pub fn advance(&self, state: &mut State, values: &Values) -> Vec<Task> {
        self.advance_traced(state, values, &mut Vec::new())
    }

    /// The same, and adds the nodes that only computed to a trace.
    pub fn advance_traced(
        &self,
        state: &mut State,
        values: &Values,
        trace: &mut Vec<ComputedStep>,
    ) -> Vec<Task> {
        let mut tasks = Vec::new();
        while state.ending.is_none() {
            let Some(token) = state.tokens.iter().find(|token| token.phase == Phase::Ready) else { break };
            let id = token.id;
            if state.steps >= MAX_STEPS {
                let message = format!("The run has executed {MAX_STEPS} nodes.");
                self.end_by_fault(state, id, "step_limit", &message);
                break;
            }
            state.steps += 1;
            tasks.extend(self.execute(state, id, values, trace));
            self.settle(state);
        }
        // The end of a branch may have made tasks of others needless.
        tasks.retain(|task| state.token(task.token).is_some());
        tasks
    }

    /// Puts in the outcome of a task. What follows from it is computed by [`advance`](Self::advance). Returns the same task for
    /// another attempt, if there is one. An outcome that nobody waits for changes nothing.
    pub fn finish(&self, state: &mut State, token: u32, outcome: Outcome, values: &Values) -> Option<Task> {
        let is_expected = |phase| matches!(phase, Phase::Busy | Phase::Joining { .. });
        if state.ending.is_some() || !state.token(token).is_some_and(|token| is_expected(token.phase)) {
            return None;
        }
        let again = match outcome {
            Outcome::Done { port, output } => {
                self.end_late_branches(state, token);
                let output = joined(state, token).unwrap_or(output);
                self.save_answer(state, token, &output);
                self.leave(state, token, &port, &output);
                None
            }
            failed => self.fail_task(state, token, failed, values),
        };
        self.settle(state);
        again
    }

    /// Continues a run that pauses, that a node has failed, or that was ended from outside: the nodes at which it stopped are
    /// executed once more.
    ///
    /// A node that failed for a known reason has had no effect, so its next effect has a key of its own: under the old one, the
    /// refusal would be remembered.
    pub fn resume(&self, state: &mut State) {
        let ended_by = match state.ending.take() {
            Some(Ending::Fault(fault)) => Some(fault),
            _ => None,
        };
        let is_known = |token: &Token| {
            let fault = token.error.as_ref().or(ended_by.as_ref());
            token.phase == Phase::Paused && fault.is_none_or(|fault| fault.code != "outcome_unknown")
        };
        let failed: Vec<u32> =
            state.tokens.iter().filter(|token| is_known(token)).map(|token| token.id).collect();
        state.renew_keys(&failed);
        for token in &mut state.tokens {
            if matches!(token.phase, Phase::Paused | Phase::Busy) {
                token.phase = Phase::Ready;
                token.attempt = 1;
                token.error = None;
            }
        }
    }

    /// Lets a run go on at a node outside loops, and nowhere else. What nodes gave before stays. Returns whether there is such a
    /// node.
    pub fn restart_at(&self, state: &mut State, node: &str) -> bool {
        if self.node(node).is_none_or(|node| node.kind == NodeType::Trigger) {
            return false;
        }
        state.ending = None;
        state.tokens.clear();
        state.loops.clear();
        state.add(node, None, None);
        true
    }

    /// Gives a node other settings for the next time that it is executed.
    pub fn edit(&self, state: &mut State, node: &str, config: Value) {
        state.edited.insert(node.to_owned(), config);
    }

    fn execute(
        &self,
        state: &mut State,
        id: u32,
        values: &Values,
        trace: &mut Vec<ComputedStep>,
    ) -> Option<Task> {
        let token = state.token(id)?.clone();
        let node = self.node(&token.node)?;
        let step = |state: &State, config: Option<Value>, result| ComputedStep {
            node: node.id.clone(),
            kind: node.kind,
            path: self.path(state, token.iteration),
            config,
            result,
            is_skipped: node.disabled,
        };
        if node.disabled {
            trace.push(step(state, None, Ok((vec![Edge::NEXT.to_owned()], Value::Null))));
            self.leave(state, id, Edge::NEXT, &Value::Null);
            return None;
        }
        let edited = state.edited.remove(&node.id);
        let reading = Reading::new(values, state, &token);
        let config = edited.map_or_else(|| self.settings(&node.id, &reading.context()), Ok);
        let config = match config {
            Ok(config) => config,
            Err(failure) => {
                let fault = self.fault_at(node, failure.code(), &failure.to_string());
                trace.push(step(state, None, Err(fault)));
                self.fail(state, id, failure.code(), &failure.to_string());
                return None;
            }
        };
        if node.kind.role() != Role::Computes {
            return self.task(state, id, node, config);
        }
        let shown = config.clone();
        let computed = self.compute(state, &token, node, config, values);
        let result = match &computed {
            Computed::Leaves { ports, output } => Ok((ports.clone(), output.clone())),
            Computed::Begins(elements) => {
                let count = elements.as_ref().map(Vec::len);
                Ok((vec!["each".to_owned()], serde_json::json!({ "elements": count })))
            }
            Computed::Arrives => Ok((Vec::new(), Value::Null)),
            Computed::Ends(Ending::Completed { output } | Ending::Failed { output }) => {
                Ok((Vec::new(), output.clone()))
            }
            Computed::Ends(Ending::Fault(fault)) => Err(fault.clone()),
            Computed::Fails { code, message } => Err(self.fault_at(node, code, message)),
        };
        // A `while` comes to its node again after each iteration.
        if !(node.kind == NodeType::While && state.loop_of(id).is_some()) {
            trace.push(step(state, Some(shown), result));
        }
        match computed {
            Computed::Leaves { ports, output } => self.leave_by(state, id, &ports, &output),
            Computed::Begins(elements) => self.begin_loop(state, id, elements, values),
            Computed::Arrives => return self.arrive(state, id, node),
            Computed::Ends(ending) => end(state, ending),
            Computed::Fails { code, message } => self.fail(state, id, &code, &message),
        }
        None
    }

    fn fault_at(&self, node: &Node, code: &str, message: &str) -> Fault {
        Fault { node_id: node.id.clone(), code: code.to_owned(), message: message.to_owned() }
    }

    /// Hands a node to the outside.
    pub(crate) fn task(&self, state: &mut State, id: u32, node: &Node, config: Value) -> Option<Task> {
        let path = self.path(state, state.token(id)?.iteration);
        let token = state.token_mut(id)?;
        token.phase = Phase::Busy;
        Some(Task {
            token: id,
            node: node.id.clone(),
            kind: node.kind,
            path,
            config,
            attempt: token.attempt,
            delay_seconds: 0,
        })
    }

    /// Returns the iterations that contain a place, such as `each[3].inner[0]`.
    pub(crate) fn path(&self, state: &State, iteration: Option<Iteration>) -> String {
        let mut parts = Vec::new();
        let mut at = iteration;
        while let Some(iteration) = at {
            let node = state.token(iteration.of).map_or("", |token| token.node.as_str());
            parts.push(format!("{node}[{}]", iteration.index));
            at = state.around(iteration);
        }
        parts.reverse();
        parts.join(".")
    }

    /// Goes on by a port: the output is kept, and the token stands at what follows. Where nothing follows, the branch ends.
    pub(crate) fn leave(&self, state: &mut State, id: u32, port: &str, output: &Value) {
        self.leave_by(state, id, &[port.to_owned()], output);
    }

    pub(crate) fn leave_by(&self, state: &mut State, id: u32, ports: &[String], output: &Value) {
        let Some(token) = state.token(id).cloned() else { return };
        state.keep(&token.node, token.iteration, output);
        state.remove(id);
        for port in ports {
            for next in self.behind(&token.node, port) {
                let added = state.add(next, token.iteration, token.error.clone());
                if self.node(next).is_some_and(|node| node.kind == NodeType::Join)
                    && let Some(added) = state.token_mut(added)
                {
                    added.branches.push(token.node.clone());
                }
            }
        }
    }

    /// After each move: joins that nothing can reach any more go on, iterations without tokens end, and so does a run.
    pub(crate) fn settle(&self, state: &mut State) {
        while state.ending.is_none() {
            if self.release_join(state) || self.end_iteration(state) {
                continue;
            }
            if state.tokens.is_empty() {
                let output = std::mem::take(&mut state.last);
                state.ending = Some(Ending::Completed { output });
            }
            return;
        }
    }

    /// Saves the answer of a question in the variable that it names.
    fn save_answer(&self, state: &mut State, id: u32, output: &Value) {
        let node = state.token(id).and_then(|token| self.node(&token.node));
        let Some(node) = node.filter(|node| node.kind == NodeType::Ask) else { return };
        let name = node.config.get("save_to").and_then(Value::as_str);
        if let (Some(name), Some(answer)) = (name, output.get("value")) {
            state.variables.insert(name.to_owned(), answer.clone());
        }
    }

    fn end_by_fault(&self, state: &mut State, id: u32, code: &str, message: &str) {
        let node_id = state.token(id).map(|token| token.node.clone()).unwrap_or_default();
        let fault = Fault { node_id, code: code.to_owned(), message: message.to_owned() };
        end_at(state, id, fault);
    }
}

/// Ends a run with all its branches.
pub(crate) fn end(state: &mut State, ending: Ending) {
    state.ending = Some(ending);
    state.tokens.clear();
    state.loops.clear();
    state.outputs = Map::new();
}

/// Ends a run by the failure of a node. The run keeps its places and what its nodes gave, so that it can be
/// [resumed](Program::resume).
pub(crate) fn end_at(state: &mut State, id: u32, fault: Fault) {
    if let Some(token) = state.token_mut(id) {
        token.phase = Phase::Paused;
    }
    state.ending = Some(Ending::Fault(fault));
}
