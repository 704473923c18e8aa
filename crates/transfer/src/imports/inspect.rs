//! Looking a file through: what it is, what its columns are called and look like, how much there is.

use super::detect::{self, ValueTypes};
use super::model::{FileSummary, Format, ImportError, ImportSettings, ImportSource};
use super::plan;
use super::printed::flattened;
use super::reader::{Opening, Record, Records};
use encoding_rs::Encoding;
use fields::FieldType;
use model::Result;
use records::shape::{Kind, Shape};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read;

/// How many rows show what a column looks like.
const SHOWN: i64 = 1_000;

/// The most columns of a file.
const MOST_COLUMNS: usize = 1_000;

/// Reads a file through. Blocks. The inner error is the caller's to mend.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn inspect(
    opening: &Opening,
    settings: &ImportSettings,
    shape: &Shape,
) -> Result<Result<FileSummary, ImportError>> {
    let encoding = match settings.encoding.as_deref().and_then(|label| Encoding::for_label(label.as_bytes()))
    {
        Some(encoding) => encoding,
        None => detect::encoding(opening.bytes()?)?,
    };
    let mut sample = vec![0; detect::SAMPLE];
    let filled = detect::fill(&mut opening.text(encoding, 0)?, &mut sample)?;
    let sample = String::from_utf8_lossy(sample.get(..filled).unwrap_or_default());
    if sample.trim().is_empty() {
        return Ok(Err(ImportError::new("empty_file", "The file is empty.")));
    }
    let format = match settings.format {
        Format::Auto => detect::format(&sample),
        format => format,
    };
    let mut source = ImportSource {
        format,
        encoding: encoding.name().to_owned(),
        delimiter: None,
        has_header: false,
        columns: Vec::new(),
        data_start: 0,
    };
    if plan::is_csv(&source) {
        let given = settings.delimiter.as_ref().and_then(|text| text.chars().next());
        source.delimiter = Some(given.unwrap_or_else(|| char::from(detect::delimiter(&sample))));
    }
    let text = opening.text(encoding, 0)?;
    let summary = read_through(Box::new(text), source, settings, shape)?;
    if summary.columns.len() > MOST_COLUMNS {
        let message = format!("The file has more than {MOST_COLUMNS} columns.");
        return Ok(Err(ImportError::new("too_many_columns", message)));
    }
    Ok(Ok(summary))
}

/// Counts, and finds out what the columns are called and look like.
fn read_through(
    text: Box<dyn Read + Send>,
    mut source: ImportSource,
    settings: &ImportSettings,
    shape: &Shape,
) -> Result<FileSummary> {
    let mut records = Records::new(text, &source, 0);
    let mut columns = Columns::default();
    // A field that is made for a column must fit all of its values, not those of the first rows only.
    let shown = if settings.create_fields { i64::MAX } else { SHOWN };
    let mut rows = 0_i64;
    while let Some(record) = records.next()? {
        if let Record::Cells(first) = &record
            && rows == 0
            && columns.is_empty()
        {
            let is_field =
                |cell: &str| settings.mapping.contains_key(cell) || plan::named(shape, cell).is_some();
            source.has_header = settings.has_header.unwrap_or_else(|| detect::is_header(first, is_field));
            columns.name(first, source.has_header);
            if source.has_header {
                source.data_start = records.place();
                continue;
            }
        }
        rows += 1;
        if rows <= shown {
            columns.show(shape.kind, &record);
        }
    }
    Ok(FileSummary { source, columns: columns.found(), bytes: records.place(), rows })
}

/// The columns that were met so far: as many as a file may have, and one more to tell that there are too many.
#[derive(Debug, Default)]
struct Columns {
    all: Vec<(String, ValueTypes)>,
    places: HashMap<String, usize>,
}

impl Columns {
    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes the names from the first row of a file: those of its header, each made one of its own, or their numbers.
    fn name(&mut self, first: &csv::StringRecord, has_header: bool) {
        for (place, cell) in first.iter().enumerate().take(MOST_COLUMNS + 1) {
            let (cell, number) = (cell.trim(), place + 1);
            let mut name =
                if has_header && !cell.is_empty() { cell.to_owned() } else { format!("column_{number}") };
            while self.places.contains_key(&name) {
                name = format!("{name} ({number})");
            }
            self.looks(name);
        }
    }

    /// What is known of the column with this name; `None` where there are too many.
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

    /// Takes a row into account. Each object of JSON Lines may bring new columns.
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
                        Value::String(text) => looks.at(&text),
                        Value::Bool(_) | Value::Number(_) => looks.at(&value.to_string()),
                        Value::Array(_) | Value::Object(_) => looks.at_structure(),
                    }
                }
            }
            Record::TooLong => {}
        }
    }

    fn found(self) -> Vec<(String, Option<FieldType>)> {
        self.all.into_iter().map(|(name, looks)| (name, looks.like())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        print: |_, _, data, out| out.push_str(data),
        complete: |_, _, _| Ok(()),
        match_keys: |_| Vec::new(),
        publish: |_, _, _| Ok(()),
    };

    #[test]
    fn columns_have_names_of_their_own() {
        let mut columns = Columns::default();
        columns.name(&csv::StringRecord::from(vec!["a", "a (3)", "a", "", "column_4", " b "]), true);
        let names: Vec<String> = columns.found().into_iter().map(|(name, _)| name).collect();
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
        assert_eq!(columns.found().len(), MOST_COLUMNS + 1);
        let mut columns = Columns::default();
        columns.name(&csv::StringRecord::from(vec![""; 5_000]), true);
        assert_eq!(columns.found().len(), MOST_COLUMNS + 1);
    }
}
