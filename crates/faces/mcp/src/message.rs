//! Reading JSON-RPC messages.
//!
//! The rules are stricter than JSON-RPC's where MCP is: one object, no batches, ids that are strings or integers, and
//! parameters by name.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The body is not JSON.
pub(crate) const PARSE_ERROR: i32 = -32700;
/// The message is not a request of MCP.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// The method does not exist.
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are wrong, or the tool does not exist.
pub(crate) const INVALID_PARAMS: i32 = -32602;
/// The service failed.
pub(crate) const INTERNAL_ERROR: i32 = -32603;
/// A header is missing or differs from the body.
pub(crate) const HEADER_MISMATCH: i32 = -32020;
/// The client must declare a capability.
pub(crate) const MISSING_CAPABILITY: i32 = -32021;
/// The revision of the protocol is unknown.
pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;

/// A message that a client sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// It wants a response.
    Request(Request),
    /// It wants none: a notification, or a response to a request that this server never sends.
    Other(Params),
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// A string or an integer.
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Params,
    /// The text of `params.arguments`, in which numbers have all their digits.
    pub(crate) arguments: Option<String>,
}

/// The parameters of a message.
pub(crate) type Params = Map<String, Value>;

/// A JSON-RPC error with its HTTP status.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) status: u16,
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(status: u16, code: i32, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }

    /// Returns the text of the response. MCP has no `null` ids, so a message whose id is unusable gets none.
    pub(crate) fn text(&self, id: Option<&Value>) -> String {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let (Some(data), Some(error)) = (&self.data, error.as_object_mut()) {
            error.insert("data".to_owned(), data.clone());
        }
        match id {
            Some(id) => json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string(),
            None => json!({ "jsonrpc": "2.0", "error": error }).to_string(),
        }
    }
}

/// A body that is not a message, or not a valid one.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The answer.
    pub(crate) error: RpcError,
    /// The id of the message, where it has a usable one.
    pub(crate) id: Option<Value>,
}

impl Unreadable {
    fn new(code: i32, message: &str, id: Option<Value>) -> Box<Self> {
        Box::new(Self { error: RpcError::new(400, code, message), id })
    }
}

/// Reads a body.
///
/// # Errors
/// With the id of the message, where it has a usable one.
pub(crate) fn read(body: &[u8]) -> Result<Message, Box<Unreadable>> {
    let refused = |code, message: &str| Unreadable::new(code, message, None);
    // serde_json limits the depth to 128 and refuses lone surrogates.
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let message = format!("The body is not valid JSON; see line {line}, column {column}.");
        Unreadable::new(PARSE_ERROR, &message, None)
    })?;
    let mut message = match value {
        Value::Object(message) => message,
        Value::Array(_) => {
            return Err(refused(INVALID_REQUEST, "Batches are not supported. Send one message a request."));
        }
        _ => return Err(refused(INVALID_REQUEST, "The message must be an object.")),
    };
    let id = message.remove("id");
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        return Err(refused(INVALID_REQUEST, "`id` must be a string or an integer."));
    }
    let invalid = |code, message: &str, id: &Option<Value>| Unreadable::new(code, message, id.clone());
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(INVALID_REQUEST, "`jsonrpc` must be `2.0`.", &id));
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        None if id.is_some() && (message.contains_key("result") || message.contains_key("error")) => {
            return Ok(Message::Other(Params::new()));
        }
        _ => return Err(invalid(INVALID_REQUEST, "`method` must be a string.", &id)),
    };
    let params = match message.remove("params") {
        None => Params::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(invalid(INVALID_PARAMS, "`params` must be an object.", &id)),
    };
    Ok(match id {
        Some(id) => {
            let arguments = params.contains_key("arguments").then(|| arguments(body)).flatten();
            Message::Request(Request { id, method, params, arguments })
        }
        None => Message::Other(params),
    })
}

/// Returns the text of `params.arguments` of a body that was read.
fn arguments(body: &[u8]) -> Option<String> {
    let message: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    let params: BTreeMap<String, &RawValue> = serde_json::from_str(message.get("params")?.get()).ok()?;
    params.get("arguments").map(|text| text.get().to_owned())
}

fn is_id(id: &Value) -> bool {
    match id {
        Value::String(_) => true,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    }
}

/// Returns the text of a response with a result, whose JSON text is given.
pub(crate) fn result(id: &Value, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_are_no_message_have_exact_answers() {
        let deep = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}1{}}}",
            "[".repeat(200),
            "]".repeat(200)
        );
        let cases: [(&str, i32, Option<Value>); 19] = [
            ("", PARSE_ERROR, None),
            ("nothing", PARSE_ERROR, None),
            ("\u{feff}{}", PARSE_ERROR, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", PARSE_ERROR, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}", PARSE_ERROR, None),
            (&deep, PARSE_ERROR, None),
            ("[]", INVALID_REQUEST, None),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", INVALID_REQUEST, None),
            ("\"ping\"", INVALID_REQUEST, None),
            ("null", INVALID_REQUEST, None),
            ("{}", INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", INVALID_REQUEST, None),
            ("{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", INVALID_REQUEST, Some(json!(7))),
            ("{\"id\":\"a\",\"method\":\"ping\"}", INVALID_REQUEST, Some(json!("a"))),
            ("{\"jsonrpc\":\"2.0\",\"id\":7}", INVALID_REQUEST, Some(json!(7))),
            ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":1}", INVALID_REQUEST, Some(json!(7))),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":[1]}",
                INVALID_PARAMS,
                Some(json!(7)),
            ),
        ];
        for (body, code, id) in cases {
            let Unreadable { error, id: seen } = *read(body.as_bytes()).unwrap_err();
            assert_eq!((error.status, error.code, seen), (400, code, id), "{body}");
        }
        assert_eq!(read(b"\xff\xfe{}").unwrap_err().error.code, PARSE_ERROR);
    }

    #[test]
    fn messages_are_read() {
        let body = br#"{"jsonrpc":"2.0","id":"x","method":"a\u0000b","params":{"b":1}}"#;
        let Message::Request(request) = read(body).unwrap() else { panic!("a request") };
        assert_eq!((request.id, request.method.as_str()), (json!("x"), "a\0b"));
        assert_eq!((&request.params["b"], request.arguments), (&json!(1), None));
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":1.10}}}"#;
        let Message::Request(request) = read(body).unwrap() else { panic!("a request") };
        assert_eq!(request.arguments.as_deref(), Some(r#"{"a":1.10}"#));
        for other in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":""}}"#,
        ] {
            assert_eq!(read(other.as_bytes()).unwrap(), Message::Other(Params::new()), "{other}");
        }
    }
}
