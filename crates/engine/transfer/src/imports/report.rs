//! Faulty rows: stored with their original values, and written to an error file that can be corrected and imported.

use super::model::{ImportSource, RowError};
use super::printed::written;
use super::queries::{self, FaultyRow};
use super::reader::Record;
use bytes::Bytes;
use futures::Stream;
use model::{Error, ImportId, JsonText, Result};
use records::shape::Kind;
use store::Db;

/// The number of rejected rows read at a time.
const PAGE: i64 = 500;

/// Returns the values of a record in the order of the columns.
pub(super) fn kept(kind: &Kind, source: &ImportSource, record: &Record) -> JsonText {
    match record {
        Record::Cells(cells) => JsonText::of(&cells.iter().collect::<Vec<_>>()),
        Record::Line(line) => {
            let mut values = written(kind, line);
            let cells = source.columns.iter().map(|column| values.remove(&column.name).unwrap_or_default());
            JsonText::of(&cells.collect::<Vec<_>>())
        }
        Record::TooLong | Record::Fault(_) => JsonText::of(&Vec::<String>::new()),
    }
}

/// Streams the error file: CSV with the original columns and `_error`.
pub(super) fn file(
    db: Db,
    id: ImportId,
    columns: Vec<String>,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    let width = columns.len();
    futures::stream::try_unfold(Some((0, Some(columns))), move |state| {
        let (db, id) = (db.clone(), id.clone());
        async move {
            let Some((after, header)) = state else { return Ok(None) };
            let page = db.read(move |read| queries::rejected(read, &id, after, PAGE)).await;
            let text = page.and_then(|page| Ok((print(header, width, &page)?, page)));
            let (text, page) = text.map_err(|error| std::io::Error::other(format!("{error:?}")))?;
            let next = page.last().map(|last| (last.row_number, None));
            Ok(Some((Bytes::from(text), next)))
        }
    })
}

fn print(header: Option<Vec<String>>, width: usize, page: &[FaultyRow]) -> Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    if let Some(mut names) = header {
        names.push("_error".to_owned());
        writer.write_record(&names).map_err(Error::internal)?;
    }
    for rejected in page {
        let cells: Vec<String> = rejected.record.parse()?;
        let errors: Vec<RowError> = rejected.errors.parse()?;
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        let messages = messages.join(" ");
        let empty = width.saturating_sub(cells.len());
        // Write extra cells after the error, so that the columns keep their positions.
        let (own, more) = cells.split_at(cells.len().min(width));
        let row = own.iter().map(String::as_str).chain(std::iter::repeat_n("", empty));
        writer
            .write_record(row.chain([messages.as_str()]).chain(more.iter().map(String::as_str)))
            .map_err(Error::internal)?;
    }
    writer.into_inner().map_err(|error| model::Error::internal(error.to_string()))
}
