//! Executing the rows of one request, each by itself, and reporting the outcome of each.

use super::model::{BulkMode, BulkReport, BulkResult, BulkStatus, BulkSummary};
use crate::rows::Editor;
use model::{Code, Error, FieldError, ItemId, Result};
use serde_json::{Map, Value};
use std::collections::HashMap;
use store::Tx;

/// What became of a row that could be done.
pub type Done = (BulkStatus, ItemId);

/// Does `rows` one after the other. Each is done in full or not at all. `work` may be asked to do a row again whose
/// effects were undone, so it keeps nothing of its own in mind.
///
/// # Errors
/// In atomic mode `validation_error` with all mistakes. Failures of the service end the call in both.
pub fn each_row<R>(
    tx: &mut Tx,
    editor: &Editor<'_>,
    mode: BulkMode,
    rows: &[R],
    work: impl Fn(&mut Tx, usize, &R) -> Result<Done>,
) -> Result<BulkReport> {
    let all = |tx: &mut Tx| rows.iter().enumerate().map(|(index, row)| work(tx, index, row)).collect();
    together(tx, editor, mode, rows, all, &work)
}

/// Does `rows` by `all`, which ends at the first mistake. Where there is one, each is done by `work` instead, as by
/// [`each_row`].
pub(super) fn together<R>(
    tx: &mut Tx,
    editor: &Editor<'_>,
    mode: BulkMode,
    rows: &[R],
    all: impl FnOnce(&mut Tx) -> Result<Vec<Done>>,
    work: impl Fn(&mut Tx, usize, &R) -> Result<Done>,
) -> Result<BulkReport> {
    // A savepoint for each row costs SQLite more than the row. Most requests have no mistake and do without.
    match tx.savepoint(all) {
        Ok(done) => {
            let mut outcomes = Outcomes::default();
            done.into_iter().enumerate().for_each(|(index, done)| outcomes.done(index, done));
            outcomes.report(editor, mode)
        }
        Err(error) if error.code() == Code::InternalError => Err(error),
        Err(_) => row_by_row(tx, editor, mode, rows, work),
    }
}

/// As [`each_row`], where `work` remembers what it did: no row is done twice.
pub(super) fn row_by_row<R>(
    tx: &mut Tx,
    editor: &Editor<'_>,
    mode: BulkMode,
    rows: &[R],
    mut work: impl FnMut(&mut Tx, usize, &R) -> Result<Done>,
) -> Result<BulkReport> {
    let mut outcomes = Outcomes::default();
    for (index, row) in rows.iter().enumerate() {
        match tx.savepoint(|tx| work(tx, index, row)) {
            Ok(done) => outcomes.done(index, done),
            Err(error) if error.code() == Code::InternalError => return Err(error),
            Err(error) => outcomes.failed(index, &error),
        }
    }
    outcomes.report(editor, mode)
}

/// What became of the rows so far.
#[derive(Default)]
struct Outcomes {
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

    fn failed(&mut self, index: usize, error: &Error) {
        self.mistakes.extend(error.parts().into_iter().map(|part| below_row(index, part)));
        let error = Some(described(index, error));
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

/// `data.price` as `rows[3].data.price`.
fn below(index: usize, param: &str) -> String {
    match param {
        "" => format!("rows[{index}]"),
        full if full.starts_with("rows[") || full.starts_with("ids[") => full.to_owned(),
        part => format!("rows[{index}].{part}"),
    }
}

fn below_row(index: usize, part: FieldError) -> FieldError {
    FieldError { param: below(index, &part.param), ..part }
}

/// An error as a row's result shows it.
fn described(index: usize, error: &Error) -> Value {
    let mut described = Map::new();
    described.insert("code".into(), error.code().as_str().into());
    described.insert("message".into(), error.message().into());
    described.insert("param".into(), below(index, error.param_name().unwrap_or_default()).into());
    let mut body = error.body();
    if let Some(parts) = body.get_mut("errors").and_then(Value::as_array_mut) {
        for part in parts.iter_mut() {
            let param = part.get("param").and_then(Value::as_str).map(|param| below(index, param));
            if let (Some(param), Some(part)) = (param, part.as_object_mut()) {
                part.insert("param".into(), param.into());
            }
        }
    }
    for name in ["errors", "details"] {
        if let Some(value) = body.get_mut(name) {
            described.insert(name.into(), value.take());
        }
    }
    Value::Object(described)
}
