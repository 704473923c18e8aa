//! Validation of guardrails that ask code functions.

use guardrails::Guardrail;
use model::{Caller, Error, FunctionId, Result, Scope};
use ports::{FunctionEffect, Uncallable, WorkspaceFunctions};
use store::Read;

/// Checks that new guardrails name published code functions that only read. `before` has the guardrails so far.
///
/// # Errors
/// `validation_error` for `guardrails[i].function_id`, `missing_scope` if the key may not call functions.
pub(crate) fn check(
    read: &mut Read,
    functions: &WorkspaceFunctions,
    caller: &Caller,
    guardrails: &[Guardrail],
    before: &[Guardrail],
) -> Result<()> {
    for (place, guardrail) in guardrails.iter().enumerate() {
        let Some(id) = guardrail.function_id.filter(|_| !before.contains(guardrail)) else { continue };
        caller.key.expect_scope(Scope::FunctionsWrite)?;
        if let Some(rule) = problem(read, functions, caller, id)? {
            return Err(Error::invalid(format!("guardrails[{place}].function_id"), rule));
        }
    }
    Ok(())
}

fn problem(
    read: &mut Read,
    functions: &WorkspaceFunctions,
    caller: &Caller,
    id: FunctionId,
) -> Result<Option<&'static str>> {
    Ok(match functions.callable(read, caller.workspace_id(), id, None)? {
        Ok(function) if function.effect == FunctionEffect::Write => {
            Some("is a function that may write: set its `effect` to `read`")
        }
        Ok(_) => None,
        Err(Uncallable::Missing) => Some("is not a function of the workspace"),
        Err(Uncallable::NotPublished) => Some("is a function that was never published"),
        Err(Uncallable::Inactive) => Some("is a function that is switched off"),
    })
}
