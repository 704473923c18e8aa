//! Requests by which the demo makes what needs the composed service.

use anyhow::{Context, ensure};
use operation::{Audience, Head, Pipeline, ResponseBody};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

/// Requests to the service from within, with a key.
pub(super) struct Requests<'a> {
    service: &'a Pipeline,
    authorization: String,
}

impl<'a> Requests<'a> {
    pub(super) fn new(service: &'a Pipeline, key: &str) -> Self {
        Self { service, authorization: format!("Bearer {key}") }
    }

    /// Creates an object and returns its id.
    pub(super) async fn create(&self, path: &str, body: &Value) -> anyhow::Result<i64> {
        let answer = self.send("POST", path, body).await?;
        answer
            .pointer("/data/id")
            .and_then(Value::as_i64)
            .with_context(|| format!("{path} answers without an id"))
    }

    /// Sends a request and returns the body of the answer.
    pub(super) async fn send(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let headers = |name: &str| match name {
            "authorization" => Some(self.authorization.as_bytes()),
            "content-type" => Some(&b"application/json"[..]),
            _ => None,
        };
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let head = Head { method, path, query: "", peer, audience: Audience::Rest, headers: &headers };
        let response = match self.service.admit(&head).await {
            Ok(admitted) => self.service.run(admitted, body.to_string().as_bytes()).await,
            Err(refusal) => refusal,
        };
        let ResponseBody::Json(text) = response.body else { anyhow::bail!("{path} answers with a stream") };
        ensure!(response.status < 300, "{method} {path}: {text}");
        serde_json::from_str(&text).context("an answer without JSON")
    }
}
