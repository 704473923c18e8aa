//! The scripts of skills: JavaScript that the sandbox can run.

use model::{Code, Error, Result, WorkspaceId};
use sandbox::{Failure, Program, Sandbox};
use serde_json::json;

/// Whether a file is a script that agents can run: JavaScript in `scripts/`.
pub(crate) fn runs(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    path.starts_with("scripts/") && ending.is_some_and(|ending| ["js", "mjs"].contains(&ending.as_str()))
}

/// Why a script cannot run.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The source cannot be read as a program, or imports something.
    Source(Error),
    /// It is a program that agents cannot call.
    Program(String),
}

/// Compiles a script.
///
/// # Errors
/// `service_unavailable`.
pub(crate) async fn check(
    sandbox: &Sandbox,
    workspace: WorkspaceId,
    param: &str,
    path: &str,
    bytes: &[u8],
) -> Result<Option<Fault>> {
    let Ok(source) = std::str::from_utf8(bytes) else {
        return Ok(Some(Fault::Source(
            Error::invalid(param, "must be a script in UTF-8")
                .with("details", json!({ "file": path, "line": null, "column": null })),
        )));
    };
    match sandbox.compile(&workspace.to_string(), &Program::new(source)).await {
        Ok(Ok(())) => Ok(None),
        Ok(Err(failure)) => Ok(Some(fault(param, path, &failure))),
        Err(sandbox::Error::Given { why, .. }) => Ok(Some(Fault::Source(Error::invalid(
            param,
            format!("has a script `{path}` that cannot run: {why}"),
        )))),
        Err(error) => Err(unavailable(error)),
    }
}

fn fault(param: &str, path: &str, failure: &Failure) -> Fault {
    match failure {
        Failure::Compile { message, line, column } => {
            let known = |place: u32| Some(place).filter(|place| *place > 0);
            let text = format!("The script `{path}` does not compile: {message}");
            let details = json!({ "file": path, "line": known(*line), "column": known(*column) });
            Fault::Source(Error::new(Code::ValidationError, text).param(param).with("details", details))
        }
        failure => Fault::Program(failure.to_string()),
    }
}

/// The error for a sandbox that cannot run anything now.
pub(crate) fn unavailable(error: sandbox::Error) -> Error {
    if error == sandbox::Error::Off {
        return Error::new(Code::ServiceUnavailable, "This installation does not run code.");
    }
    let message = "Scripts cannot be run at the moment. Try again later.";
    Error::new(Code::ServiceUnavailable, message).retry_after(5).caused_by(error)
}
