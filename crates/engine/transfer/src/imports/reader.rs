//! Reading of a file record by record, from any position. Blocks the thread.

use super::model::{Format, ImportSource};
use crate::tables::{Fault, JsonValue, LONGEST, Row, Rows, SAMPLE, Values};
use bytes::Bytes;
use encoding_rs::Encoding;
use encoding_rs_io::DecodeReaderBytesBuilder;
use files::{FileRow, Files};
use model::{Error, Result};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::io::SyncIoBridge;

/// A file that can be opened repeatedly.
#[derive(Clone)]
pub(super) struct Opening {
    pub(super) files: Arc<Files>,
    pub(super) row: FileRow,
    pub(super) handle: Handle,
}

impl Opening {
    /// Opens the file and returns its bytes.
    pub(super) fn bytes(&self) -> Result<impl Read + use<>> {
        let reader = self.handle.block_on(self.files.reader(&self.row))?;
        Ok(SyncIoBridge::new_with_handle(reader, self.handle.clone()))
    }

    /// Opens the file and returns its text as UTF-8, from a position in that text.
    pub(super) fn text(&self, encoding: &'static Encoding, from: i64) -> Result<impl Read + use<>> {
        let mut text = DecodeReaderBytesBuilder::new()
            .encoding(Some(encoding))
            .bom_override(true)
            .strip_bom(true)
            .build(self.bytes()?);
        let from = u64::try_from(from).unwrap_or_default();
        let skipped = std::io::copy(&mut (&mut text).take(from), &mut std::io::sink())?;
        if skipped < from {
            return Err(Error::internal("an import's file is shorter than it was"));
        }
        Ok(text)
    }
}

/// A record of a file.
#[derive(Debug, Clone)]
pub(super) enum Record {
    /// Cells, in the order of the columns.
    Cells(csv::StringRecord),
    /// A JSON object.
    Line(Bytes),
    /// A record that exceeds the maximum length.
    TooLong,
    /// A fault that makes the rest of the file unreadable.
    Fault(FileFault),
}

/// The reason why a file cannot be read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileFault {
    /// A quote without an end.
    Quote(Fault),
    /// A truncated JSON array.
    Json,
}

/// An iterator of records with their positions.
pub(super) struct Records {
    kind: Kind,
    /// The position of the reader's first byte.
    base: i64,
}

/// The text of a file from some position on.
type Text = BufReader<Box<dyn Read + Send>>;

enum Kind {
    Csv(Rows<Text>),
    Json(Values<Text>),
    Lines { reader: Text, read: i64 },
}

impl Records {
    /// Creates a reader of `text`, which begins at position `base`.
    pub(super) fn new(text: Box<dyn Read + Send>, source: &ImportSource, base: i64) -> Self {
        let reader = BufReader::with_capacity(SAMPLE, text);
        let kind = match source.format {
            Format::Jsonl => Kind::Lines { reader, read: 0 },
            Format::Json => Kind::Json(Values::new(reader, base == 0)),
            Format::Csv | Format::Auto => Kind::Csv(Rows::new(reader, source.delimiter_byte())),
        };
        Self { kind, base }
    }

    /// Returns the next record, or `None` at the end. Skips empty lines.
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        Ok(match &mut self.kind {
            Kind::Csv(rows) => rows.next_row()?.map(|row| match row {
                Row::Cells(cells) => Record::Cells(cells),
                Row::TooLong => Record::TooLong,
                Row::Fault(fault) => Record::Fault(FileFault::Quote(fault)),
            }),
            Kind::Json(values) => values.next_value()?.map(|value| match value {
                JsonValue::Text(text) => Record::Line(text),
                JsonValue::TooLong => Record::TooLong,
                JsonValue::Fault => Record::Fault(FileFault::Json),
            }),
            Kind::Lines { reader, read } => next_line(reader, read)?,
        })
    }

    /// Returns the position after the last record.
    pub(super) fn place(&self) -> i64 {
        let whole = |read: u64| i64::try_from(read).unwrap_or(i64::MAX);
        let read = match &self.kind {
            Kind::Csv(rows) => whole(rows.place()),
            Kind::Json(values) => whole(values.place()),
            Kind::Lines { read, .. } => *read,
        };
        self.base.saturating_add(read)
    }
}

fn next_line(reader: &mut impl BufRead, read: &mut i64) -> Result<Option<Record>> {
    loop {
        let mut line = Vec::new();
        let most = u64::try_from(LONGEST + 1).unwrap_or(u64::MAX);
        let mut taken = reader.by_ref().take(most).read_until(b'\n', &mut line)?;
        let too_long = line.len() > LONGEST && line.last() != Some(&b'\n');
        if too_long {
            taken += skip_line(reader)?;
        }
        *read = read.saturating_add(i64::try_from(taken).unwrap_or(i64::MAX));
        if taken == 0 {
            return Ok(None);
        }
        if too_long {
            return Ok(Some(Record::TooLong));
        }
        let line = line.trim_ascii();
        if !line.is_empty() {
            return Ok(Some(Record::Line(Bytes::copy_from_slice(line))));
        }
    }
}

fn skip_line(reader: &mut impl BufRead) -> Result<usize> {
    let mut skipped = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let (taken, is_over) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(place) => (place + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        reader.consume(taken);
        skipped += taken;
        if is_over {
            return Ok(skipped);
        }
    }
}

/// A batch of records that are written together.
#[derive(Debug)]
pub(super) struct ReadBatch {
    /// The position before the first record. The batch applies only if the import is at this position.
    pub(super) from: i64,
    /// The records.
    pub(super) records: Vec<Record>,
    /// The position after the last record.
    pub(super) to: i64,
}

/// Reads batches of up to `rows` records and about `bytes` bytes, until the file ends or `take` returns `false`.
/// Blocks the thread.
pub(super) fn batches(
    mut records: Records,
    rows: usize,
    bytes: i64,
    mut take: impl FnMut(ReadBatch) -> bool,
) -> Result<()> {
    loop {
        let from = records.place();
        let mut batch = Vec::with_capacity(rows);
        while batch.len() < rows && records.place() - from < bytes {
            match records.next()? {
                Some(record) => batch.push(record),
                None => break,
            }
        }
        let is_last = batch.is_empty();
        let to = records.place();
        if is_last || !take(ReadBatch { from, records: batch, to }) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(format: Format) -> ImportSource {
        ImportSource {
            format,
            encoding: "UTF-8".to_owned(),
            delimiter: Some(','),
            has_header: false,
            columns: Vec::new(),
            warnings: Vec::new(),
            data_start: 0,
        }
    }

    fn all(text: &str, format: Format, from: usize) -> (Vec<String>, Vec<i64>) {
        let base = i64::try_from(from).unwrap();
        let rest = Box::new(std::io::Cursor::new(text.as_bytes()[from..].to_vec()));
        let mut records = Records::new(rest, &source(format), base);
        let (mut found, mut places) = (Vec::new(), Vec::new());
        while let Some(record) = records.next().unwrap() {
            found.push(match record {
                Record::Cells(cells) => cells.iter().collect::<Vec<_>>().join("|"),
                Record::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
                Record::TooLong => "too long".to_owned(),
                Record::Fault(fault) => format!("{fault:?}"),
            });
            places.push(records.place());
        }
        (found, places)
    }

    #[test]
    fn reading_goes_on_behind_any_record() {
        let csv = "a,\"b\r\nc\"\r\n\r\n\r\nd,\"e \"\"f\"\"\"\ng,é,\nlast,one";
        let json = "{\"a\":1}\r\n\n  {\"b\":\"é\"}  \n{}";
        let array = "[{\"a\":1},\r\n {\"b\":[\"é\"]} ,{}\n]\n";
        for (text, format) in [(csv, Format::Csv), (json, Format::Jsonl), (array, Format::Json)] {
            let (whole, places) = all(text, format, 0);
            assert!(whole.len() >= 3, "{whole:?}");
            for (number, place) in places.iter().enumerate() {
                let (rest, _) = all(text, format, usize::try_from(*place).unwrap());
                assert_eq!(rest, whole[number + 1..], "behind record {number}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_no_reason_to_keep_it() {
        let text = format!("{{\"a\":1}}\n{}\n{{\"b\":2}}", "x".repeat(LONGEST + 5));
        let (found, places) = all(&text, Format::Jsonl, 0);
        assert_eq!(found, ["{\"a\":1}", "too long", "{\"b\":2}"]);
        assert_eq!(places.last().copied(), i64::try_from(text.len()).ok());
    }

    #[test]
    fn batches_join_to_the_whole() {
        let text: String = (0..1_000).map(|number| format!("{number},x\n")).collect();
        let records = Records::new(Box::new(std::io::Cursor::new(text.clone())), &source(Format::Csv), 0);
        let (mut rows, mut place) = (0, 0);
        batches(records, 300, 1_000, |batch| {
            assert_eq!(batch.from, place);
            (rows, place) = (rows + batch.records.len(), batch.to);
            true
        })
        .unwrap();
        assert_eq!((rows, place), (1_000, i64::try_from(text.len()).unwrap()));
    }
}
