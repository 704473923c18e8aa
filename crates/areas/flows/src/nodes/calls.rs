//! Calls of operations by nodes, and what their answers mean.

use super::{NodeCall, NodeFailure, Work};
use flow_machine::Outcome;
use input::read_json;
use operation::{LocalAnswer, LocalCall};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The parts of a call of an operation.
#[derive(Debug, Default)]
pub(super) struct Request {
    path: Vec<(&'static str, String)>,
    query: Vec<(String, String)>,
    body: Option<Value>,
}

impl Request {
    /// A request with a body.
    pub(super) fn with_body(body: Value) -> Self {
        Self { body: Some(body), ..Self::default() }
    }

    /// Sets a parameter of the path.
    pub(super) fn at(mut self, name: &'static str, value: impl ToString) -> Self {
        self.path.push((name, value.to_string()));
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
        let mut path = request.path;
        path.push(("workspaceId", self.run.workspace_id.to_string()));
        let answer = self.engine.0.operations.call(LocalCall {
            caller: self.caller.clone(),
            operation,
            path,
            query: request.query,
            body: request.body,
            if_match: None,
            idempotency_key: Some(self.key.clone()),
        });
        data_of(answer.await?)
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
    let message = text("param").map_or_else(|| message.to_owned(), |param| format!("`{param}`: {message}"));
    Err(NodeFailure {
        code: text("code").unwrap_or("internal_error").to_owned(),
        message,
        is_transient: matches!(status, 408 | 425 | 429 | 500..),
        retry_after: error.get("retry_after").and_then(Value::as_u64),
    })
}

/// A node that has ended at `next` with an output.
pub(super) fn done(output: Value) -> Work {
    Work::Ended(Outcome::done(output))
}

/// A node that has ended at a port with an output.
pub(super) fn done_at(port: &str, output: Value) -> Work {
    Work::Ended(Outcome::Done { port: port.to_owned(), output })
}

/// The output of a node whose effect outside was simulated, because the run is that of a test key.
pub(super) fn simulated(request: Value) -> Work {
    done(json!({ "simulated": true, "request": request }))
}
