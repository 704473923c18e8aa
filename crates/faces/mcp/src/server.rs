//! What the methods need of the service, and how they answer.

use crate::catalog::Catalog;
use crate::challenge::Challenges;
use crate::message::RpcError;
use bytes::Bytes;
use operation::{Admitted, Pipeline, RawAnswer, RawBody, Reply, Response, ResponseBody};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The parts of the MCP server.
pub(crate) struct McpServer {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) tools: Arc<dyn Catalog>,
    pub(crate) version: &'static str,
    pub(crate) patience: Duration,
    pub(crate) challenges: Challenges,
}

impl McpServer {
    /// Answers with a JSON-RPC error.
    pub(crate) async fn refuse(&self, admitted: Admitted, error: &RpcError, id: Option<&Value>) -> RawAnswer {
        self.reply(admitted, error.status, error.text(id)).await
    }

    /// Answers with text that the protocol composed. It is one of the key's requests.
    pub(crate) async fn reply(&self, admitted: Admitted, status: u16, text: String) -> RawAnswer {
        to_raw(self.pipeline.answer(admitted, Ok(Reply::new(status, text))).await)
    }
}

/// Converts a response of the pipeline.
pub(crate) fn to_raw(response: Response) -> RawAnswer {
    let headers = response.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let answer = RawAnswer { status: response.status, headers, body: RawBody::Whole(Bytes::new()) };
    match response.body {
        ResponseBody::Json(text) if text.is_empty() => answer,
        ResponseBody::Json(text) => answer.body("application/json", text),
        ResponseBody::Events(chunks) => answer.chunks("text/event-stream", chunks),
    }
}
