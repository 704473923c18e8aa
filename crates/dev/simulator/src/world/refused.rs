//! Errors in the network's format.

use crate::control_error::ControlError;
use serde_json::{Value, json};

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) code: i64,
    pub(crate) subcode: Option<i64>,
    pub(crate) details: String,
    pub(crate) retry_after: Option<u64>,
}

impl From<Refused> for ControlError {
    fn from(refused: Refused) -> Self {
        Self::invalid(refused.details)
    }
}

impl Refused {
    pub(crate) fn new(code: i64, details: impl Into<String>) -> Self {
        let status = match code {
            190 => 401,
            4 | 80_007 | 130_429 => 429,
            1 | 2 | 131_000 => 500,
            131_016 => 503,
            132_001 => 404,
            _ => 400,
        };
        Self { status, code, subcode: None, details: details.into(), retry_after: None }
    }

    /// Returns the error for an object that does not exist (any more).
    pub(crate) fn missing(id: &str) -> Self {
        let details = format!("Object with ID '{id}' does not exist, or cannot be loaded.");
        Self { subcode: Some(33), ..Self::new(100, details) }
    }

    pub(crate) fn body(&self) -> Value {
        let mut error = json!({
            "message": format!("(#{}) {}", self.code, title(self.code)),
            "type": "OAuthException",
            "code": self.code,
            "error_data": { "messaging_product": "whatsapp", "details": self.details },
            "fbtrace_id": "AsimulatedTrace",
        });
        if let (Some(subcode), Value::Object(error)) = (self.subcode, &mut error) {
            error.insert("error_subcode".to_owned(), json!(subcode));
        }
        json!({ "error": error })
    }

    /// Returns the error in the format of a status.
    pub(crate) fn in_status(&self) -> Value {
        let title = title(self.code);
        json!([{
            "code": self.code,
            "title": title,
            "message": title,
            "error_data": { "details": self.details },
            "href": "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/",
        }])
    }
}

fn title(code: i64) -> &'static str {
    match code {
        100 => "Invalid parameter",
        190 => "Access token has expired",
        130_429 => "Rate limit hit",
        131_000 => "Something went wrong",
        131_008 => "Required parameter is missing",
        131_009 => "Parameter value is not valid",
        131_016 => "Service unavailable",
        131_026 => "Message undeliverable",
        131_047 => "Re-engagement message",
        131_048 => "Spam rate limit hit",
        131_050 => "Unable to deliver the message: the recipient stopped marketing messages",
        131_053 => "Media upload error",
        131_056 => "(Business Account, Consumer Account) pair rate limit hit",
        132_000 => "Number of parameters does not match the expected number of params",
        132_001 => "Template name does not exist in the translation",
        132_012 => "Parameter format does not match format in the created template",
        132_015 => "Template is paused",
        132_016 => "Template is disabled",
        132_018 => "Template parameters are not valid",
        _ => "Error",
    }
}
