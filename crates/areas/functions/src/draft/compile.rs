//! Compilation of code before it is stored.

use model::{Code, Error, Result, WorkspaceId};
use sandbox::{Failure, Program, Sandbox};
use serde_json::json;

/// Compiles code and runs its top level in the sandbox.
///
/// # Errors
/// `validation_error` at `code`, with the line and the column where they are known; `service_unavailable`.
pub(super) async fn check(sandbox: &Sandbox, workspace: WorkspaceId, code: &str) -> Result<()> {
    let most = sandbox.settings().limits.code;
    if code.len() > most {
        return Err(Error::invalid("code", format_args!("must not be larger than {most} bytes")));
    }
    match sandbox.compile(&workspace.to_string(), &Program::new(code)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err(refusal(&failure)),
        Err(error) => Err(refused(&error)),
    }
}

fn refusal(failure: &Failure) -> Error {
    match failure {
        Failure::Compile { line, column, .. } => {
            let error = Error::invalid("code", format_args!("must compile: {failure}"));
            // The engine counts from 1 and gives 0 where it does not know.
            let place = |number: u32| (number > 0).then_some(number);
            error.with("details", json!({ "line": place(*line), "column": place(*column) }))
        }
        Failure::NoDefaultExport | Failure::DefaultIsNoFunction => {
            Error::invalid("code", format_args!("must have a function as its default export: {failure}"))
        }
        _ => Error::invalid("code", format_args!("must load: {failure}")),
    }
}

/// The error for a program that the sandbox did not run.
pub(crate) fn refused(error: &sandbox::Error) -> Error {
    match error {
        sandbox::Error::Given { what: what @ ("input" | "code"), why } => {
            Error::invalid(*what, format_args!("must fit the sandbox: {why}"))
        }
        sandbox::Error::Given { .. } => {
            Error::new(Code::InvalidState, format!("The call does not fit: {error}."))
        }
        sandbox::Error::Busy => {
            let message = "Too many functions are running. Try again.";
            Error::new(Code::ServiceUnavailable, message).retry_after(2)
        }
        sandbox::Error::Off => {
            // Waiting does not help, so there is no `Retry-After`.
            Error::new(Code::ServiceUnavailable, "This installation does not run code.")
        }
        sandbox::Error::Unprotected(_) | sandbox::Error::Unavailable(_) | sandbox::Error::Interrupted => {
            let message = "Code cannot be run at the moment.";
            Error::new(Code::ServiceUnavailable, message).retry_after(5).caused_by(error.clone())
        }
    }
}
