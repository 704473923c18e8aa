//! Stored errors of failed runs.

use super::object::RunFailure;
use model::{Code, Error, JsonText};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Stored error of a failed run: the part that the run shows, and the fields that only the response to its request has.
#[derive(Serialize, Deserialize)]
struct Failure {
    #[serde(flatten)]
    shown: RunFailure,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    param: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recharge_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
}

/// Returns the stored form of an error.
pub(crate) fn failure_of(error: &Error) -> JsonText {
    let shown = RunFailure { code: error.code().as_str().to_owned(), message: error.message().to_owned() };
    let body = error.body();
    JsonText::of(&Failure {
        shown,
        param: error.param_name().map(str::to_owned),
        recharge_url: body.get("recharge_url").and_then(Value::as_str).map(str::to_owned),
        details: body.get("details").cloned(),
    })
}

/// Returns the error for the response to the request of the run.
pub(crate) fn refusal_of(stored: Option<&JsonText>) -> Error {
    let Some(failure) = stored.and_then(|stored| stored.parse::<Failure>().ok()) else {
        return Error::new(Code::AgentFailed, "The agent failed.");
    };
    let code = Code::ALL.iter().find(|code| code.as_str() == failure.shown.code);
    let mut error = Error::new(code.copied().unwrap_or(Code::AgentFailed), failure.shown.message);
    if let Some(param) = failure.param {
        error = error.param(param);
    }
    if let Some(url) = failure.recharge_url {
        error = error.with("recharge_url", url);
    }
    match failure.details {
        Some(details) => error.with("details", details),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    #[test]
    fn errors_come_back_as_they_went() {
        for error in [
            Error::new(Code::AgentTimeout, "Too slow."),
            Error::new(Code::EnergyDepleted, "Empty.").param("energy_limit_monthly"),
            Error::new(Code::EnergyDepleted, "Empty.").with("recharge_url", "https://svc.test/billing"),
            Error::new(Code::BudgetExceeded, "Over.").resets_at(Timestamp::from_millis(0)),
        ] {
            let repeated = refusal_of(Some(&failure_of(&error)));
            assert_eq!(repeated.body(), error.body());
        }
        assert_eq!(refusal_of(None).code(), Code::AgentFailed);
    }
}
