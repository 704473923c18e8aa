//! Which column goes to which field, and what a record says of an item.

use super::decimals;
use super::model::{
    Column, FieldToMake, FileSummary, Format, FoundColumn, IgnoredReason, ImportError, ImportSettings,
    ImportSource, ImportWarning, RowError,
};
use super::printed::{flattened, written};
use super::reader::{FileFault, Record};
use super::target::Target;
use crate::exports::unguarded;
use crate::tables::is_short_of_a_quote;
use fields::Data;
use fields::Subject;
use fields::field_keys::free_key;
use fields::numbers;
use fields::text;
use fields::usual_names;
use fields::{Field, FieldType};
use model::{Error, FieldError, Result};
use records::definitions::{has_key, refuse_many};
use records::rows::matching::IDENTITY;
use records::shape::{Kind, Shape};
use serde_json::{Map, Value};

/// The longest external key, in characters.
const LONGEST_KEY: usize = 200;

/// The longest label of a field, in characters.
const LONGEST_LABEL: usize = 120;

/// The same settings with the keys of the fields that they name.
pub(super) fn with_keys(shape: &Shape, mut settings: ImportSettings) -> ImportSettings {
    let targets = settings.mapping.values_mut().flatten();
    for name in targets.chain(&mut settings.match_on).filter(|name| *name != shape.kind.external_key) {
        if let Some(field) = shape.named(name) {
            name.clone_from(&field.key);
        }
    }
    settings
}

/// Checks what was asked for against the collection, as far as that can be done without the file.
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
            // It goes to the records' kind, and not to the field.
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
            // Whether the file has a column that makes this field is known when it was looked through.
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

/// Whether a column of this name finds a field by itself, and which. `takes` names the fields of the service that can be
/// imported.
pub(super) fn named<'a>(shape: &'a Shape, takes: &[&str], name: &str) -> Option<&'a str> {
    let name = readable(name);
    if name == shape.kind.external_key {
        return Some(shape.kind.external_key);
    }
    let is_writable = |field: &&Field| !field.is_read_only() || takes.contains(&field.key.as_str());
    let writable = || shape.fields.iter().filter(is_writable).filter(|field| !field.archived);
    let folded = text::fold(&name);
    let found = writable()
        .find(|field| field.key == folded)
        .or_else(|| writable().find(|field| text::fold(&field.label) == folded))
        .or_else(|| writable().find(|field| field.key.strip_prefix('$') == Some(&folded)));
    if let Some(field) = found {
        return Some(&field.key);
    }
    // Spreadsheets and other systems spell `external_id` as `External ID`.
    let bare = bare(&folded);
    if bare.is_empty() {
        return None;
    }
    let is_called = |field: &&Field| {
        [&field.key, &text::fold(&field.label)].into_iter().any(|own| self::bare(own) == bare)
    };
    let is_own_key = self::bare(shape.kind.external_key) == bare;
    is_own_key
        .then_some(shape.kind.external_key)
        .or_else(|| writable().find(is_called).map(|field| field.key.as_str()))
}

/// The system field that a column with such a name usually has, unless another column is called like it or has it already.
fn usual(
    shape: &Shape,
    takes: &[&str],
    name: &str,
    found: &[FoundColumn],
    taken: &[String],
) -> Option<&'static str> {
    let key = usual_names::contact_field(&readable(name))?;
    let is_there = shape.field(key).is_some_and(|field| field.is_built_in() && !field.is_read_only());
    let is_called = |column: &FoundColumn| named(shape, takes, &column.name) == Some(key);
    (is_there && !taken.iter().any(|one| one == key) && !found.iter().any(is_called)).then_some(key)
}

/// The letters and digits of a folded name.
fn bare(folded: &str) -> String {
    folded.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

/// Whether a column is called like a field, also like one that takes no values.
fn is_known(shape: &Shape, takes: &[&str], name: &str) -> bool {
    let folded = text::fold(&readable(name));
    let is_called = |field: &Field| {
        let bare = field.key.strip_prefix('$').unwrap_or(&field.key);
        [&field.key, bare].contains(&folded.as_str()) || text::fold(&field.label) == folded
    };
    named(shape, takes, name).is_some() || shape.fields.iter().any(|field| !field.hidden && is_called(field))
}

/// Whether a column is called like a value that only the service sets.
fn is_set_by_service(shape: &Shape, name: &str) -> bool {
    let folded = text::fold(&readable(name));
    let is_called = |field: &Field| {
        field.is_read_only() && !field.hidden && (field.key == folded || text::fold(&field.label) == folded)
    };
    match Subject::named(shape, &folded) {
        Some(Subject::System(_)) => true,
        Some(Subject::Field(id)) => shape.field_by_id(id).is_some_and(Field::is_read_only),
        None => shape.fields.iter().any(is_called),
    }
}

/// What becomes of the columns of a file.
///
/// # Errors
/// Why the file cannot be imported as it was asked for.
pub(super) fn columns(
    shape: &Shape,
    takes: &[&str],
    settings: &ImportSettings,
    summary: &FileSummary,
) -> Result<Vec<Column>, ImportError> {
    let found = &summary.columns;
    if let Some(missing) =
        settings.mapping.keys().find(|name| !found.iter().any(|column| column.name == **name))
    {
        let message = format!("The file has no column `{missing}`, which is in `mapping`.");
        return Err(ImportError::new("unknown_column", message));
    }
    let mut taken: Vec<String> = settings.mapping.values().flatten().cloned().collect();
    let mut columns = Vec::with_capacity(found.len());
    for column in found {
        let name = &column.name;
        let (field_key, ignored) = match settings.mapping.get(name) {
            Some(Some(key)) => (Some(key.clone()), None),
            Some(None) => (None, Some(IgnoredReason::Mapping)),
            None => match named(shape, takes, name).or_else(|| usual(shape, takes, name, found, &taken)) {
                Some(key) if taken.iter().any(|one| one == key) => (None, Some(IgnoredReason::Duplicate)),
                Some(key) => {
                    taken.push(key.to_owned());
                    (Some(key.to_owned()), None)
                }
                None if is_set_by_service(shape, name) => (None, Some(IgnoredReason::ReadOnly)),
                None => (None, Some(IgnoredReason::NoField)),
            },
        };
        let looks_like = column.looks_like;
        let decimal_separator = column.decimal_separator;
        columns.push(Column {
            name: name.clone(),
            field_key,
            creates: None,
            looks_like,
            ignored,
            decimal_separator,
        });
    }
    if settings.create_fields {
        add_fields(shape, takes, settings, &mut columns)?;
    }
    for column in &mut columns {
        let kind = match (&column.creates, &column.field_key) {
            (Some(made), _) => Some(made.kind),
            (None, Some(key)) => shape.field(key).map(|field| field.kind),
            (None, None) => None,
        };
        column.decimal_separator =
            column.decimal_separator.filter(|_| kind.is_some_and(decimals::is_numeric));
    }
    if columns.iter().all(|column| column.field_key.is_none()) {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).take(20).collect();
        let message = format!("No column matches a field. The file has: {}.", names.join(", "));
        return Err(ImportError::new("no_column_mapped", message));
    }
    check_match(shape, settings, &columns)?;
    Ok(columns)
}

/// What is to be told of columns that are not imported although they seem to be meant.
pub(super) fn warnings(columns: &[Column]) -> impl Iterator<Item = ImportWarning> {
    columns.iter().filter_map(|column| {
        let name = &column.name;
        let message = match column.ignored? {
            IgnoredReason::ReadOnly => {
                format!("The column `{name}` is not imported: only the service sets its value.")
            }
            IgnoredReason::Duplicate => {
                format!("The column `{name}` is not imported: another column has the field's values.")
            }
            IgnoredReason::Mapping | IgnoredReason::NoField => return None,
        };
        Some(ImportWarning { code: "column_ignored".to_owned(), message, column: Some(name.clone()) })
    })
}

/// Gives each column that nothing was said of, and that is called like no field, one that is to be made. A column without a
/// name and without values, such as behind a delimiter at the end of each line, needs none.
fn add_fields(
    shape: &Shape,
    takes: &[&str],
    settings: &ImportSettings,
    columns: &mut [Column],
) -> Result<(), ImportError> {
    let mut keys: Vec<String> = Vec::new();
    for (place, column) in columns.iter_mut().enumerate() {
        let is_nothing = column.looks_like.is_none() && column.name == format!("column_{}", place + 1);
        if is_nothing || settings.mapping.contains_key(&column.name) || is_known(shape, takes, &column.name) {
            continue;
        }
        let more = i64::try_from(keys.len()).unwrap_or(i64::MAX).saturating_add(1);
        refuse_many(shape, more).map_err(|error| ImportError::new(error.code().as_str(), error.message()))?;
        let mut label = readable(&column.name);
        if label.is_empty() {
            label = format!("column_{}", place + 1);
        }
        let key = free_key(&label, "field", |key| has_key(shape, key) || keys.iter().any(|one| one == key));
        keys.push(key.clone());
        (column.field_key, column.ignored) = (Some(key.clone()), None);
        let kind = column.looks_like.unwrap_or(FieldType::Text);
        column.creates = Some(FieldToMake { field_key: key, label, kind });
    }
    Ok(())
}

/// The name of a column as far as it can be the label of a field.
fn readable(name: &str) -> String {
    let letters = name.trim().chars().filter(|letter| !letter.is_control());
    letters.take(LONGEST_LABEL).collect::<String>().trim().to_owned()
}

/// Whether the file says what items are found by.
fn check_match(shape: &Shape, settings: &ImportSettings, columns: &[Column]) -> Result<(), ImportError> {
    let named = settings.match_on.iter().filter(|key| *key != IDENTITY || shape.field(key).is_some());
    for key in named {
        let Some(column) = columns.iter().find(|column| column.field_key.as_deref() == Some(key.as_str()))
        else {
            let message = format!("No column is mapped to `{key}`, which is in `match_on`.");
            return Err(ImportError::new("match_column_missing", message));
        };
        if column.creates.as_ref().is_some_and(|made| made.kind == FieldType::Json) {
            let message = format!("The values of `{key}`, which is in `match_on`, cannot be matched.");
            return Err(ImportError::new("not_matchable", message));
        }
    }
    Ok(())
}

/// What a record says of an item.
#[derive(Debug, Default)]
pub(super) struct RowValues {
    /// Values by field. Fields that the record says nothing of are absent.
    pub(super) data: Data,
    /// The caller's own key.
    pub(super) external_key: Option<String>,
    /// Values of fields of the service that the records' kind takes.
    pub(super) statements: Data,
    /// Whether values have the types of JSON, so that a text is not to be read as another value.
    pub(super) is_typed: bool,
}

impl RowValues {
    fn add(&mut self, takes: &[&str], key: &str, value: Value) {
        let data = if takes.contains(&key) { &mut self.statements } else { &mut self.data };
        data.insert(key.to_owned(), value);
    }
}

/// Something that is wrong with a record.
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

    /// As it is told of a row.
    pub(super) fn at(self, row: i64) -> RowError {
        RowError { row, column: self.column, code: self.code, message: self.message, value: self.value }
    }
}

/// Reads a record.
///
/// # Errors
/// What is wrong with it whatever the collection holds.
pub(super) fn said(
    target: &dyn Target,
    source: &ImportSource,
    record: &Record,
) -> Result<RowValues, RowProblem> {
    match record {
        Record::Cells(cells) => cells_say(target, source, cells),
        Record::Line(line) => line_says(target, source, line),
        Record::TooLong => Err(RowProblem::row("too_long", "The row has more than 2 MiB.")),
        // The file was read to its end before the first row was taken.
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
    // Spreadsheets leave out delimiters at the end of a row, or write more than there are columns.
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
        // An empty cell says nothing: a new item gets the default, one that is there keeps its value.
        if cell.is_empty() {
            continue;
        }
        if cell.contains('\0') {
            return Err(nul(&column.name));
        }
        let cell = unguarded(cell);
        if key == target.kind().external_key {
            said.external_key = Some(external_key(&column.name, cell)?);
        } else {
            let number = column.decimal_separator.and_then(|separator| decimals::plain(cell, separator));
            said.add(target.takes(), key, number.map_or_else(|| cell.into(), Value::from));
        }
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
        if has_nul(&value) {
            return Err(nul(&column.name));
        }
        if key != kind.external_key {
            said.add(target.takes(), key, value);
            continue;
        }
        match value {
            Value::Null => {}
            Value::String(text) => said.external_key = Some(external_key(&column.name, &text)?),
            other => said.external_key = Some(external_key(&column.name, &other.to_string())?),
        }
    }
    Ok(said)
}

/// A number that would not be kept as it was written.
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

fn external_key(column: &str, text: &str) -> Result<String, RowProblem> {
    if text.is_empty() || text.chars().nth(LONGEST_KEY).is_some() {
        return Err(RowProblem {
            column: Some(column.to_owned()),
            code: "invalid_external_key".to_owned(),
            message: format!("An external key has 1 to {LONGEST_KEY} characters."),
            value: Some(cut(text)),
        });
    }
    Ok(text.to_owned())
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

/// Enough of a value to be recognised.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// A refusal of the collection, with the columns that it is about.
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

/// What stands in a column of a record.
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

/// Whether a file has rows of cells, and no objects of JSON.
pub(super) fn is_csv(source: &ImportSource) -> bool {
    !matches!(source.format, Format::Jsonl | Format::Json)
}
