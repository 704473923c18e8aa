//! Requests of a program that contains the service: they pass the same gates as those over HTTP.

use crate::calls::local::{LocalAnswer, address};
use crate::calls::progress::Pipeline;
use crate::transport::{Head, body_too_large};
use auth::Audience;
use model::{Error, Result};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

/// What an operation is given: a key, and the parts of the request.
#[derive(Debug, Clone)]
pub struct OperationInput {
    key: String,
    path: Vec<(&'static str, String)>,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Option<Value>,
}

impl OperationInput {
    /// A request with the secret of an API key.
    pub fn with_key(secret: &str) -> Self {
        Self { key: secret.to_owned(), path: Vec::new(), query: Vec::new(), headers: Vec::new(), body: None }
    }

    /// Sets a parameter of the path, such as `itemId`.
    #[must_use]
    pub fn path(mut self, name: &'static str, value: impl ToString) -> Self {
        self.path.push((name, value.to_string()));
        self
    }

    /// Adds a parameter of the query.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// Sets a header by its lower-case name, such as `idempotency-key`.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// Sets the JSON body.
    #[must_use]
    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
}

impl Pipeline {
    /// Calls an operation by its id, such as `createItem`. A refusal is an answer too, with its status.
    ///
    /// # Errors
    /// For an id that no operation has, a parameter of the path that is missing, and an operation that reads a form or answers
    /// with a stream.
    pub async fn call_operation(&self, operation: &str, input: &OperationInput) -> Result<LocalAnswer> {
        let unknown = || Error::invalid("operation", format!("there is no operation `{operation}`"));
        let meta = self.registry.by_id(operation).ok_or_else(unknown)?.meta();
        let is_given = |name: &str| input.path.iter().any(|(given, _)| *given == name);
        if let Some(missing) = meta.path_parameters().find(|name| !is_given(name)) {
            return Err(Error::invalid(missing, "is required"));
        }
        let path = address(meta, &input.path)?;
        let pairs = input.query.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        let query = pairs.collect::<Vec<_>>().join("&");
        let authorization = format!("Bearer {}", input.key);
        let header = |name: &str| match name {
            "authorization" => Some(authorization.as_bytes()),
            "content-type" => input.body.as_ref().map(|_| &b"application/json"[..]),
            other => {
                let found = input.headers.iter().find(|(name, _)| *name == other);
                found.map(|(_, value)| value.as_bytes())
            }
        };
        let head = Head {
            method: meta.method.as_str(),
            path: &path,
            query: &query,
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            audience: Audience::Rest,
            headers: &header,
        };
        let response = match self.admit(&head).await {
            Err(refused) => refused,
            Ok(admitted) if admitted.is_streamed() => {
                return Err(Error::invalid("operation", format!("`{operation}` reads a form")));
            }
            Ok(admitted) => {
                let body = input.body.as_ref().map(Value::to_string).unwrap_or_default();
                let limit = admitted.body_limit();
                if body.len() > limit {
                    self.reject_body(admitted, body_too_large(limit))
                } else {
                    self.run(admitted, body.as_bytes()).await
                }
            }
        };
        LocalAnswer::of(response)
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
