//! Error responses and missing responses.

use crate::cloud::codes::meaning;
use crate::{Account, NetworkError, RefusalCode};
use egress::HeaderMap;
use serde_json::Value;
use std::time::Duration;

/// The upper bound of `Retry-After`, in seconds.
const LONGEST_WAIT: u64 = 24 * 3600;

/// The network's description of an error.
pub(super) struct Problem {
    pub(super) code: Option<i64>,
    pub(super) subcode: Option<i64>,
    /// A message for people, without the account's token.
    pub(super) message: String,
}

impl Problem {
    /// Parses the body of an error response. Returns `None` if it is not in the network's format.
    pub(super) fn read(account: &Account, body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let error = body.get("error")?;
        let text = |pointer| error.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let number = |key| error.get(key).and_then(Value::as_i64);
        let code = number("code")?;
        let message =
            text("/error_data/details").or_else(|| text("/error_user_msg")).or_else(|| text("/message"));
        let message = message.unwrap_or("The network did not say why.");
        // The network repeats a malformed token in its message.
        let message = match account.access_token.as_str() {
            "" => message.to_owned(),
            token => message.replace(token, "…"),
        };
        let message = message.chars().take(300).collect();
        Some(Self { code: Some(code), subcode: number("error_subcode"), message })
    }

    pub(super) fn of_status(status: u16) -> Self {
        Self { code: None, subcode: None, message: format!("The network answered with status {status}.") }
    }
}

/// Returns the wait that the network asks for.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(LONGEST_WAIT)))
}

/// Converts an error response.
pub(super) fn refused(account: &Account, status: u16, headers: &HeaderMap, body: &[u8]) -> NetworkError {
    let problem = Problem::read(account, body).unwrap_or_else(|| Problem::of_status(status));
    let (meaning, is_retryable) = meaning(problem.code, Some(status));
    // The code and subcode for an object that does not exist.
    let is_missing = problem.code == Some(100) && problem.subcode == Some(33);
    NetworkError {
        message: problem.message,
        provider_code: problem.code,
        is_retryable,
        is_gone: is_missing || matches!(status, 404 | 410),
        is_unauthorized: meaning == RefusalCode::CredentialsInvalid,
        retry_after: retry_after(headers),
    }
}

/// Converts a failure without a response.
pub(super) fn failed(error: egress::Error) -> NetworkError {
    NetworkError {
        message: no_answer(error),
        provider_code: None,
        is_retryable: !error.is_refusal() && !matches!(error, egress::Error::TooLarge { .. }),
        is_gone: false,
        is_unauthorized: false,
        retry_after: None,
    }
}

pub(super) fn no_answer(error: egress::Error) -> String {
    format!("The network could not be reached: {error}.")
}

/// Returns a temporary error.
pub(super) fn passing(message: &str) -> NetworkError {
    NetworkError {
        message: message.to_owned(),
        provider_code: None,
        is_retryable: true,
        is_gone: false,
        is_unauthorized: false,
        retry_after: None,
    }
}
