//! Inspection of a file before its import: format, columns with their types, and the number of rows.

use super::cells::dates::{self, DateFormat, FoundDates};
use super::cells::decimals;
use super::columns;
use super::detect::{self, UNSUPPORTED, ValueTypes};
use super::header;
use super::model::{
    DecimalSeparator, FileSummary, Format, FoundColumn, ImportError, ImportSettings, ImportSource,
    ImportWarning,
};
use super::plan;
use super::printed::flattened;
use super::reader::{FileFault, Opening, Record, Records};
use crate::tables::{self, Dialect, Row, Rows, SAMPLE};
use encoding_rs::Encoding;
use model::Result;
use records::shape::{Kind, Shape};
use serde_json::Value;
use std::collections::HashMap;

/// The number of rows used to detect the types of columns.
const SHOWN: i64 = 1_000;

/// The maximum number of columns in a file.
const MOST_COLUMNS: usize = 1_000;

/// The replacement character for invalid bytes.
const REPLACEMENT: char = '\u{fffd}';

/// Reads a whole file. Blocks the thread. `takes` lists the service's fields that can be imported, and `country` is
/// that of the business. The inner error is the caller's to fix.
///
/// # Errors
/// `internal_error` if the file cannot be read.
pub(super) fn inspect(
    opening: &Opening,
    settings: &ImportSettings,
    shape: &Shape,
    takes: &[&str],
    country: Option<&str>,
) -> Result<Result<FileSummary, ImportError>> {
    if let Some(rule) = tables::refusal(&opening.row.mime_type) {
        return Ok(Err(ImportError::new(UNSUPPORTED, format!("The file {rule}."))));
    }
    let encoding = match settings.encoding.as_deref().and_then(|label| Encoding::for_label(label.as_bytes()))
    {
        Some(encoding) => encoding,
        None => tables::encoding(opening.bytes()?)?,
    };
    let mut sample = vec![0; SAMPLE];
    let filled = tables::fill(&mut opening.text(encoding, 0)?, &mut sample)?;
    let sample = String::from_utf8_lossy(sample.get(..filled).unwrap_or_default());
    let empty = || ImportError::new("empty_file", "The file is empty.");
    if sample.trim().is_empty() {
        return Ok(Err(empty()));
    }
    if !detect::is_text(&sample) {
        return Ok(Err(ImportError::new(UNSUPPORTED, "The file is no text.")));
    }
    let format = match (settings.format, detect::format(&sample)) {
        (Format::Auto, Ok(format)) => format,
        (Format::Auto, Err(reason)) => return Ok(Err(reason)),
        // No line of a multi-line array is an object by itself.
        (Format::Jsonl, Ok(Format::Json)) => Format::Json,
        (format, _) => format,
    };
    let mut source = ImportSource {
        format,
        encoding: encoding.name().to_owned(),
        delimiter: None,
        has_header: false,
        columns: Vec::new(),
        warnings: Vec::new(),
        data_start: 0,
    };
    let mut found = Columns::default();
    if plan::is_csv(&source) {
        let rows = csv_rows(&sample, settings, &mut source);
        let is_field =
            |cell: &str| settings.mapping.contains_key(cell) || columns::is_name(shape, takes, cell);
        source.has_header = settings.has_header.unwrap_or_else(|| header::is_header(&rows, is_field));
        found.name(&rows, source.has_header);
    }
    let text = opening.text(encoding, source.data_start)?;
    let records = Records::new(Box::new(text), &source, source.data_start);
    let ahead = read_through(records, source, found, settings, shape, dates::of_country(country))?;
    Ok(ahead.and_then(|summary| match () {
        () if summary.columns.len() > MOST_COLUMNS => {
            let message = format!("The file has more than {MOST_COLUMNS} columns.");
            Err(ImportError::new("too_many_columns", message))
        }
        () if summary.columns.is_empty() => Err(empty()),
        () => Ok(summary),
    }))
}

/// Detects the CSV dialect and returns the first rows.
fn csv_rows(sample: &str, settings: &ImportSettings, source: &mut ImportSource) -> Vec<csv::StringRecord> {
    let given = settings.delimiter.as_ref().and_then(|text| u8::try_from(text.chars().next()?).ok());
    let dialect = Dialect::of(sample, given);
    source.delimiter = Some(char::from(dialect.delimiter));
    source.data_start = i64::try_from(dialect.start).unwrap_or_default();
    let text = sample.get(dialect.start..).unwrap_or_default();
    let mut reader = Rows::new(text.as_bytes(), dialect.delimiter);
    let mut rows = Vec::new();
    while let (Ok(Some(Row::Cells(cells))), true) = (reader.next_row(), rows.len() <= header::COMPARED) {
        rows.push(cells);
    }
    // The last row of the sample may be cut off.
    if rows.len() > 2 && sample.len() >= SAMPLE - 4 {
        rows.pop();
    }
    rows
}

/// Counts the rows, and collects the names and types of the columns.
fn read_through(
    mut records: Records,
    mut source: ImportSource,
    mut columns: Columns,
    settings: &ImportSettings,
    shape: &Shape,
    of_country: DateFormat,
) -> Result<Result<FileSummary, ImportError>> {
    // A field that is created for a column must be valid for all of its values, so inspect every row.
    let shown = if settings.create_fields { i64::MAX } else { SHOWN };
    let mut rows = 0_i64;
    let (mut unreadable, mut is_header) = (None, source.has_header);
    while let Some(record) = records.next()? {
        if let Record::Fault(fault) = &record {
            return Ok(Err(broken(fault, if is_header { 0 } else { rows + 1 })));
        }
        if std::mem::take(&mut is_header) {
            source.data_start = records.place();
            continue;
        }
        rows += 1;
        if unreadable.is_none() && has_replacement(&record) {
            unreadable = Some(rows);
        }
        if rows <= shown {
            columns.show(shape.kind, &record);
        } else {
            columns.show_dates(&record);
        }
    }
    source.warnings.extend(unreadable.map(unreadable_bytes));
    let separator = settings.decimal_separator.map(DecimalSeparator::letter);
    let columns = columns.found(separator, settings.date_format, of_country);
    Ok(Ok(FileSummary { source, columns, bytes: records.place(), rows }))
}

/// Returns the error of a file that cannot be read to its end. The header is row 0.
fn broken(fault: &FileFault, row: i64) -> ImportError {
    let place = if row == 0 { "The header".to_owned() } else { format!("Row {row}") };
    match fault {
        FileFault::Quote(quote) => {
            let message = format!(
                "{place} has a quoted value that is never closed: `\"{}`. Nothing was imported. Close the quote, or write \
                 quotes within a value twice.",
                quote.value
            );
            ImportError::new("unclosed_quote", message)
        }
        FileFault::Json => {
            let message = format!("The JSON array cannot be read from row {row} on. Nothing was imported.");
            ImportError::new("invalid_json", message)
        }
    }
}

fn has_replacement(record: &Record) -> bool {
    match record {
        Record::Cells(cells) => cells.as_slice().contains(REPLACEMENT),
        Record::Line(line) => line.windows(3).any(|bytes| bytes == b"\xef\xbf\xbd"),
        Record::TooLong | Record::Fault(_) => false,
    }
}

fn unreadable_bytes(row: i64) -> ImportWarning {
    ImportWarning {
        code: "invalid_characters".to_owned(),
        message: format!(
            "Some bytes are no characters in this encoding and are read as `{REPLACEMENT}`, first in row {row}."
        ),
        column: None,
    }
}

/// The columns found so far: at most one more than allowed, which is enough to detect the excess.
#[derive(Debug, Default)]
struct Columns {
    all: Vec<(String, ValueTypes)>,
    places: HashMap<String, usize>,
}

impl Columns {
    /// Sets the names of the columns from the header, made unique, or numbers the columns. Without a header, the
    /// longest row determines how many there are.
    fn name(&mut self, rows: &[csv::StringRecord], has_header: bool) {
        let header = rows.first().filter(|_| has_header);
        let width = match header {
            Some(header) => header.len(),
            None => rows.iter().map(csv::StringRecord::len).max().unwrap_or_default(),
        };
        for place in 0..width.min(MOST_COLUMNS + 1) {
            let cell = header.and_then(|header| header.get(place)).unwrap_or_default().trim();
            let number = place + 1;
            let mut name = if cell.is_empty() { format!("column_{number}") } else { cell.to_owned() };
            while self.places.contains_key(&name) {
                name = format!("{name} ({number})");
            }
            self.looks(name);
        }
    }

    /// Returns the statistics of a column, or `None` if there are too many columns.
    fn looks(&mut self, name: String) -> Option<&mut ValueTypes> {
        let next = self.all.len();
        let place = match self.places.get(&name) {
            Some(place) => *place,
            None if next > MOST_COLUMNS => return None,
            None => {
                self.places.insert(name.clone(), next);
                self.all.push((name, ValueTypes::default()));
                next
            }
        };
        self.all.get_mut(place).map(|(_, looks)| looks)
    }

    /// Adds a row. Objects of JSON Lines may add columns.
    fn show(&mut self, kind: &Kind, record: &Record) {
        match record {
            Record::Cells(cells) => {
                for ((_, looks), cell) in self.all.iter_mut().zip(cells) {
                    looks.at(cell);
                }
            }
            Record::Line(line) => {
                let Ok(object) = serde_json::from_slice(line) else { return };
                for (name, value) in flattened(kind, object) {
                    let Some(looks) = self.looks(name) else { continue };
                    match value {
                        Value::Null => {}
                        Value::String(text) => looks.at_text(&text),
                        Value::Bool(_) | Value::Number(_) => looks.at(&value.to_string()),
                        Value::Array(_) | Value::Object(_) => looks.at_structure(),
                    }
                }
            }
            Record::TooLong | Record::Fault(_) => {}
        }
    }

    /// Adds only the dates of a row after the first `SHOWN`.
    fn show_dates(&mut self, record: &Record) {
        if let Record::Cells(cells) = record {
            self.all.iter_mut().zip(cells).for_each(|((_, looks), cell)| looks.at_date(cell));
        }
    }

    /// Returns the columns with their types. `separator` and `format` apply to all of them, if given.
    fn found(
        self,
        separator: Option<char>,
        format: Option<DateFormat>,
        of_country: DateFormat,
    ) -> Vec<FoundColumn> {
        let all = || self.all.iter().map(|(_, looks)| looks);
        let separator_of_file = decimals::of_file(all().map(ValueTypes::decimals));
        let format_of_file = dates::of_file(all().map(ValueTypes::dates));
        let given = format.map(|format| FoundDates { format, is_open: false });
        let column = |(name, looks): (String, ValueTypes)| {
            let decimal_separator = separator.or_else(|| looks.decimals().separator(separator_of_file));
            let dates = given.or_else(|| looks.dates().found(format_of_file, of_country));
            let looks_like = looks.like_with(decimal_separator, dates.map(|dates| dates.format));
            FoundColumn { name, looks_like, decimal_separator, dates }
        };
        self.all.into_iter().map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::shape::push_json;

    static THINGS: Kind = Kind {
        number: 30,
        noun: "thing",
        set_noun: "things",
        external_key: "external_key",
        aliases: None,
        referenced_by: None,
        fields: Vec::new,
        param: str::to_owned,
        title: None,
        indexes: &[],
        print: |shown, out| push_json(out, shown.data),
        complete: |_, _, _, _| Ok(()),
        match_keys: |_| Vec::new(),
        publish: |_, _, _| Ok(()),
    };

    #[test]
    fn columns_have_names_of_their_own() {
        let mut columns = Columns::default();
        columns.name(&[vec!["a", "a (3)", "a", "", "column_4", " b "].into()], true);
        let names: Vec<String> =
            columns.found(None, None, DateFormat::Dmy).into_iter().map(|column| column.name).collect();
        assert_eq!(names, ["a", "a (3)", "a (3) (3)", "column_4", "column_4 (5)", "b"]);
    }

    #[test]
    fn too_many_columns_are_not_kept() {
        let mut columns = Columns::default();
        let object: serde_json::Map<String, Value> =
            (0..5_000).map(|number| (format!("k{number}"), number.into())).collect();
        let line = serde_json::to_vec(&object).unwrap();
        for _ in 0..2 {
            columns.show(&THINGS, &Record::Line(line.clone().into()));
        }
        assert_eq!(columns.found(None, None, DateFormat::Dmy).len(), MOST_COLUMNS + 1);
        let mut columns = Columns::default();
        columns.name(&[vec![""; 5_000].into()], true);
        assert_eq!(columns.found(None, None, DateFormat::Dmy).len(), MOST_COLUMNS + 1);
        let mut columns = Columns::default();
        columns.name(&[vec!["1"].into(), vec!["2", "3"].into()], false);
        assert_eq!(columns.found(None, None, DateFormat::Dmy).len(), 2, "the first row lacks delimiters");
    }
}
