//! Validation of `verify_with`: what checks the outcome of a call must be there, and only read.

use super::callable::Callable;
use super::tool::ToolRow;
use input::nearest;
use model::{Error, Result};

/// Checks `verify_with` of a tool. `others` has the tools of the agent before the change.
///
/// # Errors
/// `validation_error`.
pub(crate) fn check(tool: &ToolRow, others: &[ToolRow]) -> Result<()> {
    let Some(wanted) = tool.settings()?.verify_with else { return Ok(()) };
    let wrong = |rule: String| Err(Error::invalid("verify_with", rule));
    let own = tool.callables(false)?;
    if !own.iter().any(Callable::writes) {
        return wrong("cannot be sent for a tool that only reads: its calls are made once more".to_owned());
    }
    let others = others.iter().filter(|other| other.name != tool.name).map(|other| other.callables(false));
    let others = others.collect::<Result<Vec<_>>>()?.into_iter().flatten();
    let all: Vec<Callable> = own.into_iter().chain(others).collect();
    match all.iter().find(|callable| callable.spec.name == wanted) {
        Some(callable) if callable.writes() => {
            wrong(format!("names `{wanted}`, which has side effects itself"))
        }
        Some(_) => Ok(()),
        None => {
            let reading = all.iter().filter(|callable| !callable.writes());
            let near = nearest(&wanted, reading.map(|callable| callable.spec.name.as_str()));
            let near = near.map(|near| format!("; `{near}` is")).unwrap_or_default();
            wrong(format!("is not something that the agent can call{near}"))
        }
    }
}
