//! Transport types: the request that an interface passes to the pipeline, and the response that it sends.

use crate::raw_route::Chunks;
use auth::Audience;
use model::{Code, Error, RequestId};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// A request without its body.
pub struct Head<'a> {
    /// The method as it was sent.
    pub method: &'a str,
    /// The path below `/api/v1`, not decoded.
    pub path: &'a str,
    /// The query, not decoded.
    pub query: &'a str,
    /// The address of the peer.
    pub peer: IpAddr,
    /// The interface that the request came to. A token can be bound to one.
    pub audience: Audience,
    /// A function that returns the bytes of a header by its name in lower case.
    pub headers: &'a dyn Fn(&str) -> Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    /// Returns a header as text, or an error if it is not valid UTF-8.
    pub(crate) fn header(&self, name: &str) -> Option<std::result::Result<&'a str, std::str::Utf8Error>> {
        (self.headers)(name).map(std::str::from_utf8)
    }

    /// Returns a header as text, with invalid UTF-8 replaced. It is for headers whose reader refuses such text
    /// anyway.
    pub(crate) fn lossy_header(&self, name: &str) -> Option<String> {
        (self.headers)(name).map(|value| String::from_utf8_lossy(value).into_owned())
    }
}

/// Returns the method of a request for spans. Clients may send any word, so unknown methods become `_OTHER`.
pub fn known_method(method: &str) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|known| *known == method).unwrap_or("_OTHER")
}

/// The limits that an installation may set.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The requests per minute of a key whose workspace is not known.
    pub default_rpm: i64,
    /// The failed requests per minute of an address without a valid key.
    pub anonymous_rpm: i64,
    /// How long a duplicate waits for the first request with its `Idempotency-Key`.
    pub duplicate_wait: Duration,
    /// How long a stream of events may be silent before it sends a keep-alive comment.
    pub keep_alive: Duration,
    /// How often an open stream of events checks whether its key may still be used.
    pub key_check: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            default_rpm: 300,
            anonymous_rpm: 300,
            duplicate_wait: Duration::from_secs(25),
            keep_alive: Duration::from_secs(15),
            key_check: Duration::from_secs(20),
        }
    }
}

/// A response that an interface sends.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Headers other than the content type.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: ResponseBody,
}

/// The body of a [`Response`].
pub enum ResponseBody {
    /// The complete JSON text.
    Json(String),
    /// Server-sent events, created as they happen. Dropping them ends the stream, but not the work that it reports
    /// on.
    Events(Chunks),
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(text) => f.debug_tuple("Json").field(text).finish(),
            Self::Events(_) => f.write_str("Events"),
        }
    }
}

/// Returns the error for a body that exceeds the limit of its operation.
pub fn body_too_large(limit: impl fmt::Display) -> Error {
    Error::new(Code::PayloadTooLarge, format!("The body exceeds the limit of {limit} bytes."))
}

/// Returns the status and the body of an error response.
pub(crate) fn error_reply(error: &Error, request: &RequestId) -> (u16, String) {
    let body = serde_json::json!({ "success": false, "error": error.body(), "request_id": request });
    (error.code().status(), body.to_string())
}
