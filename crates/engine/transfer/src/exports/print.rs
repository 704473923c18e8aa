//! Formatting of items as lines of CSV or JSON.

use super::{Export, ExportFormat};
use crate::guard::guarded;
use fields::{ColumnValue, Columns, Data, Family, Field, Subject, SystemColumn};
use model::{Error, Result, Timestamp};
use records::rows::ItemRow;
use records::shape::{Shape, Shown};
use serde_json::Value;
use serde_json::value::to_raw_value;

/// A writer of items.
pub(super) struct Lines<'a> {
    columns: Vec<Column<'a>>,
    /// Whether only some of the stored values are exported.
    picks: bool,
    shape: &'a Shape,
    text: Text,
}

/// The source of a column.
#[derive(Clone, Copy)]
enum Column<'a> {
    Field(&'a Field),
    System(SystemColumn),
}

impl<'a> Column<'a> {
    /// Returns the source for a name. `None` for the columns that every line begins with, and for deleted fields.
    fn named(shape: &'a Shape, name: &str) -> Option<Self> {
        match Subject::named(shape, name)? {
            Subject::Field(id) => shape.field_by_id(id).map(Self::Field),
            Subject::System(SystemColumn::Id | SystemColumn::ExternalKey) => None,
            Subject::System(column) => Some(Self::System(column)),
        }
    }

    fn name(self, shape: &Shape) -> &'a str {
        match self {
            Self::Field(field) => &field.key,
            Self::System(column) => shape.name_of_column(column),
        }
    }

    fn field(self) -> Option<&'a Field> {
        match self {
            Self::Field(field) => Some(field),
            Self::System(_) => None,
        }
    }
}

/// The output.
enum Text {
    Csv(Box<csv::Writer<Vec<u8>>>),
    Jsonl(Vec<u8>),
}

impl<'a> Lines<'a> {
    /// Creates a writer for the fields of the link, or else of its view. At the beginning of an export, writes the
    /// header.
    pub(super) fn new(
        shape: &'a Shape,
        export: &Export,
        visible: Option<&[String]>,
        begins: bool,
    ) -> Result<Self> {
        let named = export.fields.as_deref().or(visible);
        let columns: Vec<Column<'_>> = match named {
            Some(names) => names.iter().filter_map(|name| Column::named(shape, name)).collect(),
            None => shape.fields.iter().filter(|field| !field.hidden).map(Column::Field).collect(),
        };
        let text = match export.format {
            ExportFormat::Csv => Text::Csv(Box::new(csv(shape, &columns, begins, export.bom)?)),
            ExportFormat::Jsonl => Text::Jsonl(Vec::new()),
        };
        let picks = named.is_some() || !shape.leaving.is_empty();
        Ok(Self { columns, picks, shape, text })
    }

    /// Returns the approximate number of bytes written.
    pub(super) fn len(&self) -> usize {
        match &self.text {
            Text::Csv(writer) => writer.get_ref().len(),
            Text::Jsonl(text) => text.len(),
        }
    }

    /// Returns the output.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>> {
        match self.text {
            Text::Csv(writer) => writer.into_inner().map_err(|error| Error::internal(error.to_string())),
            Text::Jsonl(text) => Ok(text),
        }
    }

    /// Writes an item. `more` returns all ids of a relation field whose stored copy in the item is truncated.
    ///
    /// # Errors
    /// `internal_error` for corrupt values.
    pub(super) fn print(
        &mut self,
        row: &ItemRow,
        mut more: impl FnMut(&ItemRow, &Field) -> Result<Vec<i64>>,
    ) -> Result<()> {
        if let Text::Jsonl(out) = &mut self.text
            && !self.picks
            && row.more.is_none()
        {
            let mut line = String::with_capacity(row.data.as_str().len() + 512);
            (self.shape.kind.print)(Shown { row, data: row.data.raw()?, expanded: None }, &mut line)?;
            end_line(out, &line);
            return Ok(());
        }
        let data = self.values(row, &mut more)?;
        self.write(row, data)
    }

    /// Returns the exported fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &'a Field> {
        self.columns.iter().filter_map(|column| column.field())
    }

    /// Returns the values of an item. `more` returns all ids of a relation field whose stored copy in the item is
    /// truncated.
    ///
    /// # Errors
    /// `internal_error` for corrupt values.
    pub(super) fn values(
        &self,
        row: &ItemRow,
        mut more: impl FnMut(&ItemRow, &Field) -> Result<Vec<i64>>,
    ) -> Result<Data> {
        let mut data = row.values()?;
        if row.more.is_some() {
            for field in self.fields().filter(|field| field.kind == fields::FieldType::Relation) {
                if data.contains_key(&field.key) {
                    data.insert(field.key.clone(), more(row, field)?.into());
                }
            }
        }
        Ok(data)
    }

    /// Writes an item with these values.
    pub(super) fn write(&mut self, row: &ItemRow, mut data: Data) -> Result<()> {
        match &mut self.text {
            Text::Jsonl(out) => {
                let fields = || self.columns.iter().filter_map(|column| column.field());
                data.retain(|key, _| fields().any(|field| field.key == *key));
                let mut line = String::new();
                let data = to_raw_value(&data).map_err(Error::internal)?;
                (self.shape.kind.print)(Shown { row, data: &data, expanded: None }, &mut line)?;
                end_line(out, &line);
            }
            Text::Csv(writer) => {
                writer.write_field(row.id.to_string()).map_err(Error::internal)?;
                writer
                    .write_field(guarded(row.external_key.as_deref().unwrap_or_default()).as_bytes())
                    .map_err(Error::internal)?;
                for column in &self.columns {
                    let cell = match column {
                        Column::Field(field) => cell(field, data.get(&field.key)),
                        Column::System(column) => system_cell(*column, row),
                    };
                    writer.write_field(cell.as_bytes()).map_err(Error::internal)?;
                }
                writer.write_record(None::<&[u8]>).map_err(Error::internal)?;
            }
        }
        Ok(())
    }
}

/// Creates a CSV writer. At the beginning of an export, writes the byte order mark and the header.
fn csv(shape: &Shape, columns: &[Column<'_>], begins: bool, bom: bool) -> Result<csv::Writer<Vec<u8>>> {
    let start = if begins && bom { "\u{feff}".as_bytes().to_vec() } else { Vec::new() };
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(start);
    if begins {
        let always = [SystemColumn::Id, SystemColumn::ExternalKey].map(|column| shape.name_of_column(column));
        let names = always.into_iter().chain(columns.iter().map(|column| column.name(shape)));
        writer.write_record(names).map_err(Error::internal)?;
    }
    Ok(writer)
}

fn end_line(out: &mut Vec<u8>, line: &str) {
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// Returns the text of a system column.
fn system_cell(column: SystemColumn, row: &ItemRow) -> String {
    match (row.column(column), column.family()) {
        (ColumnValue::Integer(millis), Family::Datetime) => Timestamp::from_millis(millis).rfc3339(),
        (ColumnValue::Integer(number), _) => number.to_string(),
        (ColumnValue::Text(text), _) => guarded(&text).into_owned(),
        (ColumnValue::Empty, _) => String::new(),
    }
}

/// Returns the text of a value. An import of this text results in the same value.
fn cell(field: &Field, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        // Quote a text that would otherwise be parsed as another JSON value.
        Some(Value::String(text)) if field.family() == Family::Json && reads_as_other(text) => {
            Value::from(text.as_str()).to_string()
        }
        Some(Value::String(text)) => guarded(text).into_owned(),
        Some(Value::Array(items)) if field.family() != Family::Json => {
            let text = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            guarded(&items.iter().map(text).collect::<Vec<_>>().join(", ")).into_owned()
        }
        // Spreadsheets treat numbers as numbers, so a leading `-` needs no guard.
        Some(other) => other.to_string(),
    }
}

/// Returns whether an import would read a text in a `json` field as another value, or as none.
fn reads_as_other(text: &str) -> bool {
    text.trim().is_empty() || serde_json::from_str::<Value>(text).is_ok()
}
