//! What happens when a node fails.

use crate::advance::end_at;
use crate::program::Program;
use crate::state::{Fault, Outcome, Phase, State, Task};
use crate::values::{Reading, Values};
use flow_graphs::{Edge, FlowBackoff, FlowEffectPolicy, FlowOnError, Node, Retry};
use serde_json::Value;

/// The longest delay that another side may ask for, in seconds.
const LONGEST_DELAY: u64 = 86_400;

impl Program {
    /// A task has failed: it is tried again, or its node fails.
    pub(crate) fn fail_task(
        &self,
        state: &mut State,
        id: u32,
        outcome: Outcome,
        values: &Values,
    ) -> Option<Task> {
        let node = state.token(id).and_then(|token| self.node(&token.node))?;
        let Outcome::Failed { code, message, is_transient, retry_after } = outcome else {
            return self.unknown(state, id, node, values);
        };
        let attempt = state.token(id)?.attempt;
        match delay(node, attempt, &code, is_transient, retry_after) {
            Some(delay) => self.again(state, id, node, values, delay),
            None => {
                self.fail(state, id, &code, &message);
                None
            }
        }
    }

    /// Applies the effect policy of a node whose last attempt may have had its effect. `retry` makes as many attempts as the
    /// settings of the node allow, and then the node fails.
    fn unknown(&self, state: &mut State, id: u32, node: &Node, values: &Values) -> Option<Task> {
        let message = "Nobody knows whether the node has had its effect.";
        match node.effects() {
            FlowEffectPolicy::Retry => {
                let retry = node.retry.clone().unwrap_or_else(standard);
                let attempt = state.token(id)?.attempt;
                if i64::from(attempt) < retry.max_attempts {
                    return self.again(state, id, node, values, pause_before(&retry, attempt, None));
                }
                self.fail(state, id, "outcome_unknown", message);
            }
            FlowEffectPolicy::Once if self.has_edge(&node.id, Edge::ERROR) => {
                let fault = fault(node, "outcome_unknown", message);
                self.leave_with(state, id, Edge::ERROR, fault, &Value::Null);
            }
            FlowEffectPolicy::Once => self.fail(state, id, "outcome_unknown", message),
            FlowEffectPolicy::Pause => pause(state, id, fault(node, "outcome_unknown", message)),
        }
        None
    }

    fn again(&self, state: &mut State, id: u32, node: &Node, values: &Values, delay: u64) -> Option<Task> {
        let token = state.token_mut(id)?;
        token.attempt += 1;
        let token = token.clone();
        let reading = Reading::new(values, state, &token);
        match self.settings(&node.id, &reading.context()) {
            Ok(config) => {
                self.task(state, id, node, config).map(|task| Task { delay_seconds: delay, ..task })
            }
            Err(failure) => {
                self.fail(state, id, failure.code(), &failure.to_string());
                None
            }
        }
    }

    /// A node has failed for the last time.
    pub(crate) fn fail(&self, state: &mut State, id: u32, code: &str, message: &str) {
        let Some(node) = state.token(id).and_then(|token| self.node(&token.node)) else { return };
        // A loop whose condition fails has a body no more.
        state.loops.retain(|one| one.token != id);
        let fault = fault(node, code, message);
        match node.on_error {
            FlowOnError::Continue => self.leave_with(state, id, Edge::NEXT, fault, &Value::Null),
            FlowOnError::Default => {
                let output = node.default_output.clone().unwrap_or_default();
                self.leave_with(state, id, Edge::NEXT, fault, &output);
            }
            FlowOnError::Branch if self.has_edge(&node.id, Edge::ERROR) => {
                self.leave_with(state, id, Edge::ERROR, fault, &Value::Null);
            }
            FlowOnError::Pause => pause(state, id, fault),
            FlowOnError::Branch | FlowOnError::Fail => {
                let mut at = state.token(id).and_then(|token| token.iteration);
                while let Some(iteration) = at {
                    let around = state.around(iteration);
                    if self.fail_iteration(state, iteration, &fault) {
                        return;
                    }
                    at = around;
                }
                end_at(state, id, fault);
            }
        }
    }

    /// Goes on after a failure, which `$error` names from then on.
    fn leave_with(&self, state: &mut State, id: u32, port: &str, fault: Fault, output: &Value) {
        if let Some(token) = state.token_mut(id) {
            token.error = Some(fault);
        }
        self.leave(state, id, port, output);
    }
}

fn fault(node: &Node, code: &str, message: &str) -> Fault {
    Fault { node_id: node.id.clone(), code: code.to_owned(), message: message.to_owned() }
}

fn pause(state: &mut State, id: u32, fault: Fault) {
    if let Some(token) = state.token_mut(id) {
        token.phase = Phase::Paused;
        token.error = Some(fault);
    }
}

/// Returns after how many seconds a failed attempt is followed by another. `None` if it was the last.
fn delay(node: &Node, attempt: u32, code: &str, is_transient: bool, retry_after: Option<u64>) -> Option<u64> {
    let retry = node.retry.clone().unwrap_or_else(standard);
    let is_listed = retry.retry_on.iter().any(|listed| listed == code);
    let is_worth_it = if retry.retry_on.is_empty() { is_transient } else { is_listed };
    if !is_worth_it || i64::from(attempt) >= retry.max_attempts {
        return None;
    }
    Some(pause_before(&retry, attempt, retry_after))
}

/// Returns how a node is tried again that does not say it.
fn standard() -> Retry {
    Retry { max_attempts: 3, ..Retry::default() }
}

/// Returns the seconds between an attempt and the next one.
fn pause_before(retry: &Retry, attempt: u32, retry_after: Option<u64>) -> u64 {
    let first = u64::try_from(retry.delay_seconds).unwrap_or_default();
    let most = u64::try_from(retry.max_delay).unwrap_or(LONGEST_DELAY);
    let factor = u64::try_from(retry.factor).unwrap_or(1);
    let mut own = first;
    if retry.backoff == FlowBackoff::Exponential {
        for _ in 1..attempt {
            own = own.saturating_mul(factor).min(most);
        }
    }
    own.min(most).max(retry_after.unwrap_or_default().min(LONGEST_DELAY))
}
