//! Validation of an import's settings, and conversion of records to values.

use super::cells::{dates, decimals};
use super::model::{Column, Format, ImportSettings, ImportSource, RowError};
use super::printed::{flattened, written};
use super::reader::{FileFault, Record};
use super::target::Target;
use crate::guard::unguarded;
use crate::tables::is_short_of_a_quote;
use fields::Data;
use fields::invisible::is_blank;
use fields::usual_names;
use input::numbers;
use model::{Error, FieldError, Result};
use records::rows::matching::IDENTITY;
use records::shape::{Kind, Shape};
use serde_json::{Map, Value};

/// The code of a value that another record has. It is a correct value, so it is never skipped.
const DUPLICATE: &str = "duplicate_value";

/// The maximum length of an external key, in characters.
const LONGEST_KEY: usize = 200;

/// Replaces the names of fields in the settings by their keys.
pub(super) fn with_keys(shape: &Shape, mut settings: ImportSettings) -> ImportSettings {
    let targets = settings.mapping.values_mut().flatten();
    for name in targets.chain(&mut settings.match_on).filter(|name| *name != shape.kind.external_key) {
        if let Some(field) = shape.named(name) {
            name.clone_from(&field.key);
        }
    }
    settings
}

/// Checks the settings against the collection, as far as that is possible without the file.
///
/// # Errors
/// `validation_error`.
pub fn check(target: &dyn Target, shape: &Shape, settings: &ImportSettings) -> Result<()> {
    let settings = &with_keys(shape, settings.clone());
    let mut errors = Vec::new();
    let mut taken: Vec<&str> = Vec::new();
    for (column, key) in &settings.mapping {
        let Some(key) = key else { continue };
        let param = format!("mapping.{column}");
        if target.takes().contains(&key.as_str()) {
            // The target of this column is a field that the record kind imports itself.
        } else if let Err(mistake) = check_target(shape, key, &param) {
            errors.push(mistake);
        } else if taken.contains(&key.as_str()) {
            errors.push(FieldError::new(param, "is the field of another column"));
        }
        taken.push(key);
    }
    let is_alone = settings.match_on.len() == 1;
    let has_identities = shape.identities().next().is_some();
    for (place, key) in settings.match_on.iter().enumerate() {
        let param = format!("match_on[{place}]");
        if settings.match_on.iter().take(place).any(|other| other == key) {
            errors.push(FieldError::new(param, "must not repeat an earlier entry"));
        } else if key == shape.kind.external_key || (key == IDENTITY && has_identities) {
            if !is_alone {
                errors.push(FieldError::new(param, "cannot be combined with fields"));
            }
        } else if settings.create_fields && shape.field(key).is_none() {
            // The file may contain a column that creates this field. That is known after its inspection.
        } else if let Err(mistake) = check_target(shape, key, &param) {
            errors.push(mistake);
        } else if shape.field(key).is_some_and(|field| !field.family().is_ordered()) {
            errors.push(FieldError::new(param, "has a type that cannot be matched"));
        }
    }
    if let Some(label) = &settings.encoding
        && encoding_rs::Encoding::for_label(label.as_bytes()).is_none()
    {
        errors.push(FieldError::new("encoding", "is not a known encoding"));
    }
    if settings.delimiter.as_ref().is_some_and(|text| !text.is_ascii() || text == "\"" || text == "\n") {
        errors.push(FieldError::new("delimiter", "must be one ASCII character other than a quote"));
    }
    Error::all_invalid(errors).map_or(Ok(()), Err)
}

fn check_target(shape: &Shape, key: &str, param: &str) -> std::result::Result<(), FieldError> {
    if key == shape.kind.external_key {
        return Ok(());
    }
    match shape.field(key) {
        Some(field) if field.is_read_only() => {
            Err(FieldError::new(param, "is set by the service and cannot be imported")
                .code("read_only_field"))
        }
        Some(_) => Ok(()),
        None => {
            let hint = shape.nearest(key).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Err(FieldError::new(param, format_args!("is not a field of this collection{hint}"))
                .code("unknown_field"))
        }
    }
}

/// The values of a record.
#[derive(Debug, Clone, Default)]
pub(super) struct RowValues {
    /// Values by field key. Fields without a value in the record are absent.
    pub(super) data: Data,
    /// The external key.
    pub(super) external_key: Option<String>,
    /// Values of the service's fields that the record kind imports.
    pub(super) statements: Data,
    /// Whether values have JSON types, so that a string is not converted to another type.
    pub(super) is_typed: bool,
    /// Errors of values that are invalid for any record.
    pub(super) problems: Vec<RowProblem>,
}

impl RowValues {
    /// Adds the value of a column to a field.
    fn add(&mut self, target: &dyn Target, column: &Column, key: &str, value: Value) {
        if has_nul(&value) {
            self.problems.push(nul(&column.name));
            return;
        }
        if key == target.kind().external_key {
            match value {
                Value::Null => {}
                Value::String(text) => self.name(column, text),
                other => self.name(column, other.to_string()),
            }
            return;
        }
        let value = match (value, column.date_format) {
            (Value::String(text), Some(format)) => dates::plain(&text, format).unwrap_or(text).into(),
            (value, _) => value,
        };
        let data = if target.takes().contains(&key) { &mut self.statements } else { &mut self.data };
        let value = match (data.get(key), &value) {
            // Given names and surnames come from separate columns.
            (Some(Value::String(other)), Value::String(text)) if usual_names::is_surname(&column.name) => {
                format!("{other} {text}").into()
            }
            (Some(Value::String(surname)), Value::String(text)) => format!("{text} {surname}").into(),
            _ => value,
        };
        data.insert(key.to_owned(), value);
    }

    /// Sets the external key from a column.
    fn name(&mut self, column: &Column, key: String) {
        if key.is_empty() || key.chars().nth(LONGEST_KEY).is_some() {
            self.problems.push(RowProblem {
                column: Some(column.name.clone()),
                code: "invalid_external_key".to_owned(),
                message: format!("An external key has 1 to {LONGEST_KEY} characters."),
                value: Some(cut(&key)),
            });
        } else {
            self.external_key = Some(key);
        }
    }

    /// Removes the values with these errors. Returns `false` if the row cannot be imported without them.
    pub(super) fn skip(&mut self, source: &ImportSource, problems: &[RowProblem]) -> bool {
        problems.iter().all(|problem| {
            let Some(name) = problem.column.as_deref().filter(|_| problem.code != DUPLICATE) else {
                return false;
            };
            let before = self.problems.len();
            self.problems.retain(|own| own.column.as_deref() != Some(name));
            let column = source.columns.iter().find(|column| column.name == name);
            let key = column.and_then(|column| column.field_key.as_deref()).unwrap_or_default();
            self.problems.len() < before
                || self.data.remove(key).is_some()
                || self.statements.remove(key).is_some()
        })
    }
}

/// An error of a record.
#[derive(Debug, Clone)]
pub(super) struct RowProblem {
    pub(super) column: Option<String>,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) value: Option<String>,
}

impl RowProblem {
    pub(super) fn row(code: &str, message: impl Into<String>) -> Self {
        Self { column: None, code: code.to_owned(), message: message.into(), value: None }
    }

    /// Returns the error as part of a row's report.
    pub(super) fn at(self, row: i64) -> RowError {
        RowError { row, column: self.column, code: self.code, message: self.message, value: self.value }
    }
}

/// Converts a record to values.
///
/// # Errors
/// Errors that do not depend on the collection.
pub(super) fn said(
    target: &dyn Target,
    source: &ImportSource,
    record: &Record,
) -> Result<RowValues, RowProblem> {
    match record {
        Record::Cells(cells) => cells_say(target, source, cells),
        Record::Line(line) => line_says(target, source, line),
        Record::TooLong => Err(RowProblem::row("too_long", "The row has more than 2 MiB.")),
        // Files with such faults are refused by the inspection, so this is not expected.
        Record::Fault(FileFault::Quote(_)) => {
            Err(RowProblem::row("unclosed_quote", "A quote is never closed."))
        }
        Record::Fault(FileFault::Json) => Err(RowProblem::row("invalid_json", "The JSON array is cut.")),
    }
}

fn cells_say(
    target: &dyn Target,
    source: &ImportSource,
    cells: &csv::StringRecord,
) -> Result<RowValues, RowProblem> {
    // Spreadsheets omit delimiters at the end of a row, or write more than there are columns.
    if cells.iter().skip(source.columns.len()).any(|cell| !cell.trim().is_empty()) {
        let message =
            format!("The row has {} values, but there are {} columns.", cells.len(), source.columns.len());
        return Err(RowProblem::row("wrong_column_count", message));
    }
    if is_short_of_a_quote(cells, source.delimiter_byte()) {
        let message = "The row goes on over several lines that look like rows of their own: a quote is missing, or one too many.";
        return Err(RowProblem::row("unclosed_quote", message));
    }
    let mut said = RowValues::default();
    for (column, cell) in source.columns.iter().zip(cells) {
        let Some(key) = &column.field_key else { continue };
        // An empty cell has no effect: a new item gets the default, an existing one keeps its value.
        if is_blank(cell) {
            continue;
        }
        let cell = unguarded(cell);
        let number = column.decimal_separator.and_then(|separator| decimals::plain(cell, separator));
        said.add(target, column, key, number.map_or_else(|| cell.into(), Value::from));
    }
    Ok(said)
}

fn line_says(target: &dyn Target, source: &ImportSource, line: &[u8]) -> Result<RowValues, RowProblem> {
    let kind = target.kind();
    if let Some(mistake) = numbers::lossy(line, "") {
        return Err(lossy(kind, source, line, &mistake));
    }
    let object: Map<String, Value> = serde_json::from_slice(line).map_err(|error| {
        let place = error.column();
        RowProblem::row("invalid_json", format!("The line is not a JSON object: see column {place}."))
    })?;
    let mut said = RowValues { is_typed: true, ..RowValues::default() };
    for (name, value) in flattened(kind, object) {
        let Some(column) = source.columns.iter().find(|column| column.name == name) else { continue };
        let Some(key) = &column.field_key else { continue };
        said.add(target, column, key, value);
    }
    Ok(said)
}

/// Returns the error for a number that would lose digits.
fn lossy(kind: &Kind, source: &ImportSource, line: &[u8], mistake: &FieldError) -> RowProblem {
    let param = mistake.param.strip_prefix("data.").unwrap_or(&mistake.param);
    let stands_in = |column: &&Column| {
        param
            .strip_prefix(column.name.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let column = source.columns.iter().find(stands_in).map(|column| column.name.clone());
    RowProblem {
        value: column.as_ref().and_then(|column| written(kind, line).remove(column)).map(|text| cut(&text)),
        column,
        code: mistake.code.unwrap_or("too_precise").to_owned(),
        message: format!("`{}` {}", mistake.param, mistake.message),
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields.iter().any(|(key, value)| key.contains('\0') || has_nul(value)),
        _ => false,
    }
}

fn nul(column: &str) -> RowProblem {
    RowProblem {
        column: Some(column.to_owned()),
        code: "invalid_character".to_owned(),
        message: "The value has the NUL character.".to_owned(),
        value: None,
    }
}

/// Truncates a value for an error message.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Converts a client error of the collection to errors of columns.
pub(super) fn explained(
    shape: &Shape,
    source: &ImportSource,
    record: &Record,
    error: &Error,
) -> Vec<RowProblem> {
    let listed = error.errors();
    let one = |param: Option<&str>, code: &str, message: &str| {
        let is_meant = |key: &str| param.is_some_and(|param| param == key || param == shape.param(key));
        let column = source.columns.iter().find(|column| column.field_key.as_deref().is_some_and(is_meant));
        RowProblem {
            column: column.map(|column| column.name.clone()),
            code: code.to_owned(),
            message: message.to_owned(),
            value: column
                .and_then(|column| value_at(shape.kind, source, record, &column.name))
                .map(|text| cut(&text)),
        }
    };
    if listed.is_empty() {
        return vec![one(error.param_name(), error.code().as_str(), error.message())];
    }
    let code = error.code().as_str();
    listed
        .iter()
        .map(|mistake| {
            let message = format!("`{}` {}", mistake.param, mistake.message);
            one(Some(&mistake.param), mistake.code.unwrap_or(code), &message)
        })
        .collect()
}

/// Returns the original text of a column.
fn value_at(kind: &Kind, source: &ImportSource, record: &Record, name: &str) -> Option<String> {
    match record {
        Record::Cells(cells) => {
            let place = source.columns.iter().position(|column| column.name == name)?;
            cells.get(place).map(str::to_owned)
        }
        Record::Line(line) => written(kind, line).remove(name),
        Record::TooLong | Record::Fault(_) => None,
    }
}

/// Returns whether the records of a file are rows of cells.
pub(super) fn is_csv(source: &ImportSource) -> bool {
    !matches!(source.format, Format::Jsonl | Format::Json)
}
