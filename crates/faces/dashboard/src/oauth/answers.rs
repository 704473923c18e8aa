//! Answers of the endpoints for programs: JSON, the errors of the standards, and the headers that they demand.

use model::{Code, Error};
use operation::RawAnswer;
use serde_json::{Map, Value, json};

/// An error of the token endpoint and its siblings (RFC 6749, 5.2).
#[derive(Debug)]
pub(super) struct OauthError {
    code: &'static str,
    status: u16,
    description: String,
    /// Whether the client tried the header `Authorization`, which then must be answered with a challenge.
    challenge: bool,
    retry_after: Option<i64>,
}

impl OauthError {
    /// Creates an error with the status 400.
    pub(super) fn new(code: &'static str, description: impl Into<String>) -> Self {
        Self { code, status: 400, description: description.into(), challenge: false, retry_after: None }
    }

    /// Returns the error of a malformed request.
    pub(super) fn request(description: impl Into<String>) -> Self {
        Self::new("invalid_request", description)
    }

    /// Returns the error of a client that does not prove who it is.
    pub(super) fn client(description: impl Into<String>, challenge: bool) -> Self {
        Self { status: 401, challenge, ..Self::new("invalid_client", description) }
    }

    /// Sets the status.
    pub(super) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Returns the answer.
    pub(super) fn answer(self) -> RawAnswer {
        let body = json!({ "error": self.code, "error_description": describable(&self.description) });
        let mut answer = json_answer(self.status, body.to_string());
        if self.challenge {
            answer = answer.header("www-authenticate", "Basic realm=\"svc\", charset=\"UTF-8\"");
        }
        match self.retry_after {
            Some(seconds) => answer.header("retry-after", seconds.to_string()),
            None => answer,
        }
    }
}

/// A failure of the service. The log has its cause.
impl From<Error> for OauthError {
    fn from(error: Error) -> Self {
        if let Some(cause) = error.cause() {
            tracing::error!(%cause, "an OAuth endpoint failed");
        }
        let (code, status) = match error.code() {
            Code::InternalError => ("server_error", 500),
            _ if error.code().status() >= 500 => ("temporarily_unavailable", 503),
            _ => ("invalid_request", 400),
        };
        let retry_after = error.retry_after_seconds();
        Self { retry_after, ..Self::new(code, error.message()).with_status(status) }
    }
}

/// Returns a description with the characters that RFC 6749 allows in it.
pub(super) fn describable(text: &str) -> String {
    let text = text.replace(['"', '`'], "'").replace('\\', "/");
    text.chars().map(|character| if matches!(character, ' '..='~') { character } else { '?' }).collect()
}

/// Returns JSON that no cache may keep, because it has tokens in it or belongs to one request.
pub(super) fn json_answer(status: u16, body: String) -> RawAnswer {
    RawAnswer::status(status)
        .header("cache-control", "no-store")
        .header("pragma", "no-cache")
        .header("x-content-type-options", "nosniff")
        .body("application/json", body)
}

/// Returns the members that have a value.
pub(super) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

/// Allows pages of all origins to read an answer. The endpoints read no cookies.
pub(super) fn shared(answer: RawAnswer) -> RawAnswer {
    answer
        .header("access-control-allow-origin", "*")
        .header("access-control-expose-headers", "WWW-Authenticate, X-Request-Id, Retry-After")
}

/// Answers the question of a browser whether a page may send a request.
pub(super) fn preflight(methods: &str) -> RawAnswer {
    let answer = RawAnswer::status(204)
        .header("access-control-allow-methods", methods)
        .header("access-control-allow-headers", "Authorization, Content-Type, Accept, MCP-Protocol-Version")
        .header("access-control-max-age", "7200");
    shared(answer)
}

/// Returns the answer to a method that an endpoint does not have.
pub(super) fn wrong_method(allowed: &'static str) -> RawAnswer {
    OauthError::request(format!("send {allowed}")).with_status(405).answer().header("allow", allowed)
}
