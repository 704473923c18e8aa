//! Transport types: what an interface hands to the pipeline, and what it is given to send.

use crate::raw_route::Chunks;
use model::{Code, Error, RequestId};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// A request without its body.
pub struct Head<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The path below `/api/v1`, not decoded.
    pub path: &'a str,
    /// The query, not decoded.
    pub query: &'a str,
    /// Who is connected.
    pub peer: IpAddr,
    /// Gives a header's bytes by its lower-case name.
    pub headers: &'a dyn Fn(&str) -> Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    /// A header as text; an error where it is not UTF-8.
    pub(crate) fn header(&self, name: &str) -> Option<std::result::Result<&'a str, std::str::Utf8Error>> {
        (self.headers)(name).map(std::str::from_utf8)
    }

    /// A header as text, for one whose reader refuses what is not UTF-8 anyway.
    pub(crate) fn lossy_header(&self, name: &str) -> Option<String> {
        (self.headers)(name).map(|value| String::from_utf8_lossy(value).into_owned())
    }
}

/// The method of a request as spans have it: callers may send any word.
pub fn known_method(method: &str) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|known| *known == method).unwrap_or("_OTHER")
}

/// What an installation may set.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests per minute of a key whose workspace is not known.
    pub default_rpm: i64,
    /// Failed requests per minute of an address without a valid key.
    pub anonymous_rpm: i64,
    /// How long a duplicate waits for the first request with its `Idempotency-Key`.
    pub duplicate_wait: Duration,
    /// How long a stream of events is silent before it sends a comment to be kept alive.
    pub keep_alive: Duration,
    /// How often an open stream of events looks whether its key may still be used.
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

/// An answer for an interface to send.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Headers beside the content type.
    pub headers: Vec<(&'static str, String)>,
    /// What follows them.
    pub body: ResponseBody,
}

/// The body of a [`Response`].
pub enum ResponseBody {
    /// The whole JSON.
    Json(String),
    /// Server-sent events, made as they happen. Dropping them ends nothing but the telling.
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

/// The error for a body that exceeds the limit of its operation.
pub fn body_too_large(limit: impl fmt::Display) -> Error {
    Error::new(Code::PayloadTooLarge, format!("The body exceeds the limit of {limit} bytes."))
}

/// The status and the body of an error's answer.
pub(crate) fn error_reply(error: &Error, request: &RequestId) -> (u16, String) {
    let body = serde_json::json!({ "success": false, "error": error.body(), "request_id": request });
    (error.code().status(), body.to_string())
}
