//! Responses to senders.

use model::{Error, RequestId};
use operation::RawAnswer;
use serde::Serialize;
use serde_json::json;

/// JSON.
pub(crate) fn json(status: u16, body: &impl Serialize) -> RawAnswer {
    RawAnswer::status(status).body("application/json", serde_json::to_vec(body).unwrap_or_default())
}

/// Plain text, which no browser takes for anything else.
pub(crate) fn text(status: u16, body: String) -> RawAnswer {
    RawAnswer::status(status)
        .body("text/plain; charset=utf-8", body)
        .header("x-content-type-options", "nosniff")
}

/// An error in the API's envelope.
pub(crate) fn refusal(error: &Error, request: &RequestId) -> RawAnswer {
    let body = json!({ "success": false, "error": error.body(), "request_id": request });
    let answer = json(error.code().status(), &body).header("x-request-id", request.as_str());
    match error.retry_after_seconds() {
        Some(seconds) => answer.header("retry-after", seconds.to_string()),
        None => answer,
    }
}
