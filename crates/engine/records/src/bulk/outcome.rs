//! Executing the rows of one request, each by itself, and reporting the outcome of each.

use super::model::{BulkMode, BulkReport, BulkResult, BulkStatus, BulkSummary};
use crate::rows::Editor;
use model::{Code, Error, FieldError, ItemId, Result};
use serde_json::{Map, Value};
use std::collections::HashMap;
use store::Tx;

/// What became of a row that could be done.
pub type Done = (BulkStatus, ItemId);

/// Does `rows`, which the request has in `list`, one after the other. Each is done in full or not at all. `work` may be asked
/// to do a row again whose effects were undone, so it keeps nothing of its own in mind.
///
/// # Errors
/// In atomic mode `validation_error` with all mistakes. Failures of the service end the call in both.
pub fn each_row<R>(
    tx: &mut Tx,
    editor: &Editor<'_>,
    mode: BulkMode,
    list: &'static str,
    rows: &[R],
    work: impl Fn(&mut Tx, &R) -> Result<Done>,
) -> Result<BulkReport> {
    let all = |tx: &mut Tx| rows.iter().map(|row| work(tx, row)).collect();
    together(tx, editor, mode, list, rows, all, &work)
}

/// Does `rows` by `all`, which ends at the first mistake. Where there is one, each is done by `work` instead, as by
/// [`each_row`].
pub(super) fn together<R>(
    tx: &mut Tx,
    editor: &Editor<'_>,
    mode: BulkMode,
    list: &'static str,
    rows: &[R],
    all: impl FnOnce(&mut Tx) -> Result<Vec<Done>>,
    work: impl Fn(&mut Tx, &R) -> Result<Done>,
) -> Result<BulkReport> {
    // A savepoint for each row costs SQLite more than the row. Most requests have no mistake and do without.
    match tx.savepoint(all) {
        Ok(done) => {
            let mut outcomes = Outcomes { list, ..Outcomes::default() };
            done.into_iter().enumerate().for_each(|(index, done)| outcomes.done(index, done));
            outcomes.report(editor, mode)
        }
        Err(error) if error.code() == Code::InternalError => Err(error),
        Err(_) => row_by_row(tx, editor, mode, list, rows, work),
    }
}

/// As [`each_row`], where `work` remembers what it did: no row is done twice.
pub(super) fn row_by_row<R>(
    tx: &mut Tx,
    editor: &Editor<'_>,
    mode: BulkMode,
    list: &'static str,
    rows: &[R],
    mut work: impl FnMut(&mut Tx, &R) -> Result<Done>,
) -> Result<BulkReport> {
    let mut outcomes = Outcomes { list, ..Outcomes::default() };
    for (index, row) in rows.iter().enumerate() {
        match tx.savepoint(|tx| work(tx, row)) {
            Ok(done) => outcomes.done(index, done),
            Err(error) if error.code() == Code::InternalError => return Err(error),
            Err(error) => outcomes.failed(index, error),
        }
    }
    outcomes.report(editor, mode)
}

/// What became of the rows so far.
#[derive(Default)]
struct Outcomes {
    list: &'static str,
    mistakes: Vec<FieldError>,
    summary: BulkSummary,
    results: Vec<BulkResult>,
    first_row_of: HashMap<ItemId, usize>,
}

impl Outcomes {
    fn done(&mut self, index: usize, (status, id): Done) {
        let first = *self.first_row_of.entry(id).or_insert(index);
        let repeats = (first != index).then_some(first);
        self.push(BulkResult { index, status, id: Some(id), repeats, error: None });
    }

    fn failed(&mut self, index: usize, error: Error) {
        let entry = format!("{}[{index}]", self.list);
        let error = if error.param_name().is_some() { error.below(&entry) } else { error.param(entry) };
        self.mistakes.extend(error.parts());
        let error = Some(described(&error));
        self.push(BulkResult { index, status: BulkStatus::Error, id: None, repeats: None, error });
    }

    fn push(&mut self, result: BulkResult) {
        self.summary.count(result.status);
        self.results.push(result);
    }

    /// # Errors
    /// In atomic mode `validation_error` with all mistakes.
    fn report(self, editor: &Editor<'_>, mode: BulkMode) -> Result<BulkReport> {
        if mode == BulkMode::Atomic
            && let Some(error) = Error::all_invalid(self.mistakes)
        {
            return Err(error);
        }
        let operation_id = editor.author.operation.clone().unwrap_or_default();
        let Self { summary, results, .. } = self;
        Ok(BulkReport { object: "bulk_report", operation_id, summary, results })
    }
}

/// An error as a row's result shows it.
fn described(error: &Error) -> Value {
    let mut body = error.body();
    let mut described = Map::new();
    for name in ["code", "message", "param", "errors", "details"] {
        if let Some(part) = body.get_mut(name) {
            described.insert(name.into(), part.take());
        }
    }
    Value::Object(described)
}
