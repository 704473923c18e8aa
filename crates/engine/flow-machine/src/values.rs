//! What expressions of a run read.

use crate::state::{Iteration, State, Token};
use chrono_tz::Tz;
use expressions::{Context, Failure, Scope, Value};
use model::Timestamp;
use serde_json::{Map, Value as Json, json};

/// The values that the outside gives, and the time.
#[derive(Debug, Clone)]
pub struct Values {
    /// The roots that do not belong to the machine: `contact`, `trigger`, `input`, `vars`, `conversation`, `message`, `agent`,
    /// `run`.
    pub roots: Map<String, Json>,
    /// The moment that `now()` gives.
    pub now: Timestamp,
    /// The time zone of the workspace.
    pub zone: Tz,
    /// What a `split` that is not sticky is decided by: the id of the run.
    pub run: String,
    /// What a sticky `split` is decided by: the id of the contact.
    pub contact: Option<String>,
}

impl Values {
    /// Creates the values of a run without a contact, in UTC.
    pub fn new(run: &str, roots: impl IntoIterator<Item = (String, Json)>, now: Timestamp) -> Self {
        Self { roots: roots.into_iter().collect(), now, zone: Tz::UTC, run: run.to_owned(), contact: None }
    }
}

/// The values that the expressions of one token read.
pub(crate) struct Reading<'a> {
    values: &'a Values,
    state: &'a State,
    iteration: Option<Iteration>,
    error: Option<Json>,
    here: Option<Json>,
    now: Json,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(values: &'a Values, state: &'a State, token: &Token) -> Self {
        Self {
            values,
            state,
            iteration: token.iteration,
            error: token.error.as_ref().map(|fault| json!(fault)),
            here: token.iteration.map(|iteration| position(state, iteration)),
            now: json!(values.now),
        }
    }

    /// The same, where `$loop.item` is an element of a list that the node itself looks at.
    pub(crate) fn at(self, item: &Json, index: usize) -> Self {
        Self { here: Some(json!({ "item": item, "index": index })), ..self }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context::new(self, self.values.now).zone(self.values.zone)
    }

    /// Finds what a node gave: in its iteration, in those around it, or outside loops.
    fn output(&self, node: &str) -> Option<&Json> {
        let mut at = self.iteration;
        while let Some(iteration) = at {
            if let Some(found) = self.state.running(iteration).and_then(|one| one.outputs.get(node)) {
                return Some(found);
            }
            at = self.state.around(iteration);
        }
        self.state.outputs.get(node)
    }
}

/// The value of `$loop`.
fn position(state: &State, iteration: Iteration) -> Json {
    let Some(of) = state.loop_of(iteration.of) else { return Json::Null };
    let index = usize::try_from(iteration.index).unwrap_or(usize::MAX);
    let is_last = !of.elements.is_empty() && index + 1 == of.elements.len();
    json!({ "item": of.elements.get(index), "index": index, "first": index == 0, "last": is_last })
}

impl Scope for Reading<'_> {
    fn root(&self, name: &str) -> Result<Value<'_>, Failure> {
        Ok(match name {
            "flow" => Value::Object(std::borrow::Cow::Borrowed(&self.state.variables)),
            "nodes" => Value::Object(std::borrow::Cow::Borrowed(&self.state.outputs)),
            "loop" => Value::of_option(self.here.as_ref()),
            "error" => Value::of_option(self.error.as_ref()),
            "now" => Value::of(&self.now),
            other => Value::of_option(self.values.roots.get(other)),
        })
    }

    fn member(&self, root: &str, name: &str) -> Result<Value<'_>, Failure> {
        if root == "nodes" {
            return Ok(Value::of_option(self.output(name)));
        }
        Ok(self.root(root)?.member(name))
    }
}
