//! The area MCP of the contract: one operation, which the protocol answers.

use model::{Error, Result};
use operation::{Body, Domain, JsonRpc, Operations, operation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use utoipa::ToSchema;

/// The area MCP.
pub struct Mcp;

impl Domain for Mcp {
    const AREA: &'static str = "MCP";
    const DESCRIPTION: &'static str = "The Model Context Protocol: operations as tools of chat assistants and other programs. One address \
         speaks the revisions 2025-03-26 to 2025-11-25, which begin with `initialize`, and 2026-07-28, which has no \
         sessions.";
    const ORDER: u16 = 900;

    fn operations() -> Operations {
        vec![Box::new(PostMcp)]
    }
}

/// The id of a JSON-RPC request.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(example = json!(1))]
pub enum JsonRpcId {
    /// An integer.
    Number(i64),
    /// A text.
    Text(String),
}

/// A JSON-RPC request or notification.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(example = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }))]
pub struct JsonRpcRequest {
    /// Always `2.0`.
    #[expect(dead_code, reason = "the type states the schema; the protocol reads the message")]
    jsonrpc: String,
    /// A string or an integer. A message without it is a notification.
    #[schema(nullable = false)]
    #[expect(dead_code, reason = "as above")]
    id: Option<JsonRpcId>,
    /// The method, such as `tools/list` or `tools/call`.
    #[expect(dead_code, reason = "as above")]
    method: String,
    /// The parameters. In the revision 2026-07-28 `_meta` is required.
    #[schema(value_type = Option<Object>)]
    #[expect(dead_code, reason = "as above")]
    params: Option<Map<String, Value>>,
    /// Other members, which are ignored.
    #[serde(flatten)]
    #[expect(dead_code, reason = "as above")]
    other: HashMap<String, Value>,
}

/// A JSON-RPC response, with either `result` or `error`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [] } }))]
pub struct JsonRpcResponse {
    /// Always `2.0`.
    jsonrpc: &'static str,
    /// The id of the request. Absent in an error about a message whose id could not be read.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<JsonRpcId>,
    /// The result of the method.
    #[schema(value_type = Object, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Map<String, Value>>,
    /// The error.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonRpcError>,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct JsonRpcError {
    /// The code, such as -32602.
    code: i32,
    /// An explanation for people. Its wording can change.
    message: String,
    /// More about the error.
    #[schema(value_type = Object, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Map<String, Value>>,
}

/// JSON-RPC messages of the Model Context Protocol (Streamable HTTP)
///
/// Takes one JSON-RPC message and answers with one. Failures of tools are results with `isError`; only refusals before
/// the message is read have the API's error format. Responses to 401 and 403 have a `WWW-Authenticate` header that
/// names the authorization server and the scopes.
#[operation(post "/mcp", scope = "mcp:use", body_mib = 4, json_rpc)]
pub fn post_mcp(Body(_message): Body<JsonRpcRequest>) -> Result<JsonRpc<JsonRpcResponse>> {
    // Over HTTP the endpoint answers (see `Endpoint`). Only a program that contains the service comes here.
    Err(Error::invalid("operation", "is not available within the service; send MCP messages over HTTP"))
}
