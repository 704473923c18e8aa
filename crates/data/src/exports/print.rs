//! Items as lines of CSV or JSON.

use super::guard::guarded;
use super::{Export, ExportFormat};
use crate::items::ItemRow;
use crate::shape::{Family, Field, Shape};
use model::{Error, Result};
use serde_json::Value;

/// Writes items one after the other.
pub(super) struct Lines<'a> {
    format: ExportFormat,
    fields: Vec<&'a Field>,
    /// Whether values must be picked from what is stored.
    picks: bool,
    writer: csv::Writer<Vec<u8>>,
}

impl<'a> Lines<'a> {
    /// A writer for what a link gives, with the fields that its view or its own list names.
    pub(super) fn new(shape: &'a Shape, export: &Export, visible: Option<&[String]>) -> Self {
        let named = export.fields.as_deref().or(visible);
        let fields = match named {
            Some(keys) => keys.iter().filter_map(|key| shape.field(key)).collect(),
            None => shape.fields.iter().collect(),
        };
        let writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        let picks = named.is_some() || !shape.leaving.is_empty();
        Self { format: export.format, fields, picks, writer }
    }

    /// What stands before the first item.
    ///
    /// # Errors
    /// None that is expected.
    pub(super) fn header(&mut self, bom: bool) -> Result<Vec<u8>> {
        if self.format == ExportFormat::Jsonl {
            return Ok(Vec::new());
        }
        let keys = self.fields.iter().map(|field| field.key.as_str());
        self.writer.write_record(["id", "external_key"].into_iter().chain(keys))?;
        let mut text = if bom { "\u{feff}".as_bytes().to_vec() } else { Vec::new() };
        text.append(&mut self.taken()?);
        Ok(text)
    }

    /// Items as lines. `more` gives all ids of a relation field whose copy in the item is cut.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(super) fn print(
        &mut self,
        row: &ItemRow,
        out: &mut Vec<u8>,
        mut more: impl FnMut(&ItemRow, &Field) -> Result<Vec<i64>>,
    ) -> Result<()> {
        if self.format == ExportFormat::Jsonl && !self.picks && row.more.is_none() {
            let mut text = String::with_capacity(row.data.as_str().len() + 512);
            row.print(&mut text);
            out.extend_from_slice(text.as_bytes());
            out.push(b'\n');
            return Ok(());
        }
        let mut data = row.values()?;
        if row.more.is_some() {
            for field in self.fields.iter().filter(|field| field.kind == crate::shape::FieldType::Relation) {
                if data.contains_key(&field.key) {
                    data.insert(field.key.clone(), more(row, field)?.into());
                }
            }
        }
        if self.format == ExportFormat::Jsonl {
            data.retain(|key, _| self.fields.iter().any(|field| field.key == *key));
            let mut text = String::new();
            row.print_with(&mut text, &serde_json::to_string(&data)?);
            out.extend_from_slice(text.as_bytes());
            out.push(b'\n');
            return Ok(());
        }
        self.writer.write_field(row.id.to_string())?;
        self.writer.write_field(guarded(row.external_key.as_deref().unwrap_or_default()).as_bytes())?;
        for field in &self.fields {
            self.writer.write_field(cell(field, data.get(&field.key)).as_bytes())?;
        }
        self.writer.write_record(None::<&[u8]>)?;
        out.append(&mut self.taken()?);
        Ok(())
    }

    fn taken(&mut self) -> Result<Vec<u8>> {
        let fresh = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        let full = std::mem::replace(&mut self.writer, fresh);
        full.into_inner().map_err(|error| Error::internal(error.to_string()))
    }
}

/// A value as a cell: an import of it gives the same value again.
fn cell(field: &Field, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => guarded(text).into_owned(),
        Some(Value::Array(items)) if field.family() != Family::Json => {
            let text = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            guarded(&items.iter().map(text).collect::<Vec<_>>().join(", ")).into_owned()
        }
        // Numbers are no text to a spreadsheet, whatever they begin with.
        Some(other) => other.to_string(),
    }
}
