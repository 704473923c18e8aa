//! Calls of operations by nodes, and what their answers mean.

use super::{NodeCall, NodeFailure, Work};
use flow_graphs::Node;
use flow_machine::Outcome;
use input::read_json;
use model::{ContactId, Env};
use operation::{LocalAnswer, LocalCall};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// The parts of a call of an operation.
#[derive(Debug, Default)]
pub(super) struct Request {
    path: Vec<(&'static str, String)>,
    query: Vec<(String, String)>,
    body: Option<Value>,
    /// What names the effect among several of one node.
    part: Option<String>,
}

impl Request {
    /// A request with a body.
    pub(super) fn with_body(body: Value) -> Self {
        Self { body: Some(body), ..Self::default() }
    }

    /// Sets the body.
    pub(super) fn body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Sets a parameter of the path.
    pub(super) fn at(mut self, name: &'static str, value: impl ToString) -> Self {
        self.path.push((name, value.to_string()));
        self
    }

    /// Names the effect, for a node that has several.
    pub(super) fn part(mut self, name: impl ToString) -> Self {
        self.part = Some(name.to_string());
        self
    }

    /// Adds several parameters of the query.
    pub(super) fn queries(mut self, pairs: Vec<(String, String)>) -> Self {
        self.query.extend(pairs);
        self
    }

    /// Adds a parameter of the query.
    pub(super) fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }
}

impl NodeCall {
    /// The settings of the node, with the values of their templates.
    ///
    /// # Errors
    /// `validation_error` for what a template gave.
    pub(super) fn config<T: DeserializeOwned>(&self) -> Result<T, NodeFailure> {
        Ok(read_json(self.task.config.clone(), "", "node")?)
    }

    /// Calls an operation in the name of the flow, and returns the `data` of its answer. A repetition with the same key has no
    /// second effect.
    ///
    /// # Errors
    /// What the operation refuses.
    pub(super) async fn call(&self, operation: &'static str, request: Request) -> Result<Value, NodeFailure> {
        let key = request.part.map_or_else(|| self.key.clone(), |part| format!("{}:{part}", self.key));
        let mut path = request.path;
        path.push(("workspaceId", self.run.workspace_id.to_string()));
        let answer = self.engine.0.operations.call(LocalCall {
            caller: self.caller.clone(),
            operation,
            path,
            query: request.query,
            body: request.body,
            if_match: None,
            idempotency_key: Some(key),
        });
        data_of(answer.await?)
    }
}

impl NodeCall {
    /// The node, as it was drawn.
    fn node(&self) -> Option<&Node> {
        self.content.graph.nodes.iter().find(|node| node.id == self.task.node)
    }

    /// Returns the time limit of the node: its own or `default` seconds, but no more than `most` seconds.
    pub(super) fn patience(&self, default: u64, most: u64) -> Duration {
        let own = self.node().and_then(|node| node.timeout_seconds);
        let seconds = own.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(default);
        Duration::from_secs(seconds.clamp(1, most))
    }

    /// The contact of the run.
    ///
    /// # Errors
    /// `no_contact`.
    pub(super) fn contact(&self) -> Result<ContactId, NodeFailure> {
        let missing = || NodeFailure::new("no_contact", "The run has no contact.");
        self.run.contact_id.ok_or_else(missing)
    }

    /// Returns whether effects outside are simulated, because the run acts for a test key.
    pub(super) fn is_test(&self) -> bool {
        self.caller.key.env == Env::Test
    }
}

/// A value as a text has it: `null` is empty.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The message of an error, with the name of the field that it is about.
pub(super) fn about_param(message: &str, param: Option<&str>) -> String {
    match param {
        Some(_) if message.starts_with('`') => format!("The field {message}"),
        Some(param) if !message.contains(param) => format!("{message} ({param})"),
        _ => message.to_owned(),
    }
}

/// The `data` of an answer.
fn data_of(answer: LocalAnswer) -> Result<Value, NodeFailure> {
    let LocalAnswer { status, mut body } = answer;
    if status < 400 {
        return Ok(body.get_mut("data").map(Value::take).unwrap_or_default());
    }
    let error = body.get("error").cloned().unwrap_or_default();
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let message = text("message").unwrap_or("The operation failed.");
    let message = about_param(message, text("param"));
    let code = text("code").unwrap_or("internal_error");
    // A worker that lost the run may still be at it.
    let is_under_way = code == "idempotency_in_progress";
    Err(NodeFailure {
        code: code.to_owned(),
        message,
        is_transient: is_under_way || matches!(status, 408 | 425 | 429 | 500..),
        retry_after: error.get("retry_after").and_then(Value::as_u64),
    })
}

/// A node that has ended at `next` with an output.
pub(super) fn done(output: Value) -> Work {
    Work::Ended(Outcome::done(output))
}

/// An attempt that may have had its effect. The effect policy of the node says what follows.
pub(super) fn unknown() -> Work {
    Work::Ended(Outcome::Unknown)
}

/// A node that has ended at a port with an output.
pub(super) fn done_at(port: &str, output: Value) -> Work {
    Work::Ended(Outcome::Done { port: port.to_owned(), output })
}

/// The output of a node whose effect outside was simulated, because the run is that of a test key.
pub(super) fn simulated(request: Value) -> Work {
    done(json!({ "simulated": true, "request": request }))
}
