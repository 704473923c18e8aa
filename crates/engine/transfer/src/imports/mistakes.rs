//! Errors of rows. All errors of a row are reported at once, so that a file can be corrected in one pass.

use super::model::ImportSource;
use super::plan::{self, RowProblem, RowValues};
use super::prepare::{Task, draft};
use super::reader::Record;
use model::Error;
use records::shape::Shape;

/// The reason why a row was not imported.
pub(super) enum Refusal {
    /// The row is invalid.
    Row(Vec<RowProblem>),
    /// The row is invalid, and a part of it may have been written.
    HalfWritten,
    /// The service failed.
    Service(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Service(error)
    }
}

impl From<RowProblem> for Refusal {
    fn from(wrong: RowProblem) -> Self {
        Self::Row(vec![wrong])
    }
}

/// Converts an error. A client error is the row's fault, any other is the service's.
pub(super) fn refusal(shape: &Shape, source: &ImportSource, record: &Record, error: Error) -> Refusal {
    all(shape, source, record, std::iter::once(error))
}

/// Like [`refusal`], for several errors.
pub(super) fn all(
    shape: &Shape,
    source: &ImportSource,
    record: &Record,
    errors: impl Iterator<Item = Error>,
) -> Refusal {
    let mut problems = Vec::new();
    for error in errors {
        if error.code().status() >= 500 {
            return Refusal::Service(error);
        }
        add(&mut problems, plan::explained(shape, source, record, &error));
    }
    Refusal::Row(problems)
}

/// Collects all errors of a row whose record could not be determined. `unknown` is the reason for that.
pub(super) fn of_row(
    task: &Task,
    shape: &Shape,
    record: &Record,
    said: &RowValues,
    unknown: Option<Error>,
) -> Refusal {
    let stated = task.target.check(shape, &said.statements);
    let drafted = draft(shape, &task.settings, None, said);
    let errors = unknown.into_iter().chain(drafted.err()).chain(stated.err());
    match all(shape, &task.source, record, errors) {
        Refusal::Row(found) => {
            let mut problems = said.problems.clone();
            // The record may exist and have the required values that the row lacks, so errors about missing values
            // are not certain.
            let has_value =
                |problem: &RowProblem| problem.value.as_ref().is_some_and(|value| !value.is_empty());
            let is_certain = |problem: &RowProblem| has_value(problem) || problem.code != "required";
            let (certain, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_certain);
            add(&mut problems, certain);
            if problems.is_empty() {
                problems = others;
            }
            Refusal::Row(problems)
        }
        refusal => refusal,
    }
}

/// Adds errors, but only one per column.
fn add(problems: &mut Vec<RowProblem>, more: Vec<RowProblem>) {
    for problem in more {
        let is_known = |known: &RowProblem| known.column.is_some() && known.column == problem.column;
        if !problems.iter().any(is_known) {
            problems.push(problem);
        }
    }
}
