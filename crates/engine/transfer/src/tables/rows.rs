//! A reader of CSV (RFC 4180) that tolerates the deviations of spreadsheets and hand-written exports.
//!
//! A quote within a value that does not begin with one is part of the value, and so is text after a closing quote on
//! the same line. A quote without an end would swallow the following rows, so it is a [`Fault`].

use super::LONGEST;
use csv::{ByteRecord, StringRecord};
use std::io::{BufRead, Result};

/// The maximum length of a value in a message, in characters.
const SHOWN: usize = 40;

/// The result of reading a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// The cells of the row.
    Cells(StringRecord),
    /// The row exceeds the maximum length.
    TooLong,
    /// The rest of the file is unreadable.
    Fault(Fault),
}

/// A quoted value without an end, or with more text after its last quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The beginning of the value.
    pub value: String,
}

/// A reader of rows. Skips rows without values, including those with only delimiters and white space.
#[derive(Debug)]
pub struct Rows<R> {
    reader: R,
    delimiter: u8,
    read: u64,
    is_over: bool,
}

/// The state of the parser within a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a value.
    Start,
    /// In an unquoted value.
    Plain,
    /// Within quotes.
    Quoted,
    /// After a quote that ends a value or is the first of two.
    Closed,
}

/// A row that is being read.
struct Partial {
    cells: ByteRecord,
    cell: Vec<u8>,
    state: State,
    /// Whether the value contains a line break.
    is_broken: bool,
    length: usize,
    delimiter: u8,
}

/// The effect of a byte on the row.
enum Step {
    On,
    End,
    Fault,
}

impl<R: BufRead> Rows<R> {
    /// Creates a reader of UTF-8 text with this delimiter.
    pub fn new(reader: R, delimiter: u8) -> Self {
        Self { reader, delimiter, read: 0, is_over: false }
    }

    /// Returns the number of bytes up to the end of the last row.
    pub fn place(&self) -> u64 {
        self.read
    }

    /// Reads the next row. Returns `None` at the end of the file or after a fault.
    ///
    /// # Errors
    /// Errors of the reader.
    pub fn next_row(&mut self) -> Result<Option<Row>> {
        while !self.is_over {
            let row = self.row()?;
            if let Some(Row::Cells(cells)) = &row
                && cells.iter().all(|cell| cell.trim().is_empty())
            {
                continue;
            }
            self.is_over = !matches!(row, Some(Row::Cells(_) | Row::TooLong));
            return Ok(row);
        }
        Ok(None)
    }

    fn row(&mut self) -> Result<Option<Row>> {
        let mut row = Partial::new(self.delimiter);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(row.at_end_of_file());
            }
            let mut used = 0;
            let mut step = Step::On;
            let mut last = 0;
            for byte in buffer {
                used += 1;
                last = *byte;
                step = row.take(*byte);
                if !matches!(step, Step::On) {
                    break;
                }
            }
            self.consume(used);
            match step {
                Step::On => {}
                Step::Fault => return Ok(Some(row.fault())),
                Step::End => {
                    if last == b'\r' && self.reader.fill_buf()?.first() == Some(&b'\n') {
                        self.consume(1);
                    }
                    return Ok(Some(row.end()));
                }
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
        self.read += bytes as u64;
    }
}

impl Partial {
    fn new(delimiter: u8) -> Self {
        Self {
            cells: ByteRecord::new(),
            cell: Vec::new(),
            state: State::Start,
            is_broken: false,
            length: 0,
            delimiter,
        }
    }

    fn take(&mut self, byte: u8) -> Step {
        self.length += 1;
        if self.state == State::Quoted {
            return self.take_quoted(byte);
        }
        match (self.state, byte) {
            (_, b'\n' | b'\r') => return Step::End,
            (_, byte) if byte == self.delimiter => self.end_cell(),
            (State::Start, b'"') => self.state = State::Quoted,
            (State::Closed, b'"') => {
                self.keep(byte);
                self.state = State::Quoted;
            }
            // This quote begins another value, so the current value has no end.
            (State::Closed, byte) if self.is_broken && !byte.is_ascii_whitespace() => return Step::Fault,
            _ => {
                self.keep(byte);
                self.state = State::Plain;
            }
        }
        Step::On
    }

    fn take_quoted(&mut self, byte: u8) -> Step {
        match byte {
            b'"' => self.state = State::Closed,
            _ if self.length > LONGEST => return Step::Fault,
            _ => {
                self.is_broken |= matches!(byte, b'\n' | b'\r');
                self.keep(byte);
            }
        }
        Step::On
    }

    /// Appends a byte to the value, unless the row is already too long.
    fn keep(&mut self, byte: u8) {
        if self.length <= LONGEST {
            self.cell.push(byte);
        }
    }

    fn end_cell(&mut self) {
        self.cells.push_field(&self.cell);
        self.cell.clear();
        (self.state, self.is_broken) = (State::Start, false);
    }

    fn end(mut self) -> Row {
        if self.length > LONGEST {
            return Row::TooLong;
        }
        self.end_cell();
        Row::Cells(StringRecord::from_byte_record_lossy(self.cells))
    }

    fn at_end_of_file(self) -> Option<Row> {
        match self.state {
            State::Quoted => Some(self.fault()),
            _ if self.length == 0 => None,
            _ => Some(self.end()),
        }
    }

    fn fault(&self) -> Row {
        let value = String::from_utf8_lossy(&self.cell);
        let line = value.split(['\n', '\r']).next().unwrap_or_default();
        Row::Fault(Fault { value: line.chars().take(SHOWN).collect() })
    }
}

/// Returns whether a quoted value seems to span several rows because of a missing quote: each of its lines has as
/// many values as a row. In prose, which a value may contain, a space follows a comma.
pub fn is_short_of_a_quote(cells: &StringRecord, delimiter: u8) -> bool {
    let delimiter = char::from(delimiter);
    let width = cells.len();
    let is_data = |cell: &str| {
        !cell
            .match_indices(delimiter)
            .any(|(place, _)| cell.get(place + 1..).is_some_and(|rest| rest.starts_with(' ')))
    };
    let mut of_lines = cells.iter().filter(|cell| cell.contains(['\n', '\r'])).peekable();
    if width < 2 || of_lines.peek().is_none() || !of_lines.all(is_data) {
        return false;
    }
    let row = cells.iter().collect::<Vec<_>>().join(&delimiter.to_string());
    let mut lines = row.lines();
    let count = lines.clone().count();
    (count > 2 || (count == 2 && width > 2)) && lines.all(|line| line.matches(delimiter).count() + 1 == width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{BufReader, Cursor};

    /// Reads all rows of a text through a buffer of this size, and returns them with their positions.
    fn rows(text: &str, buffer: usize) -> (Vec<Row>, Vec<u64>) {
        let mut rows = Rows::new(BufReader::with_capacity(buffer, Cursor::new(text)), b',');
        let (mut found, mut places) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next_row().unwrap() {
            found.push(row);
            places.push(rows.place());
        }
        (found, places)
    }

    fn cells(text: &str) -> Vec<Vec<String>> {
        let (found, _) = rows(text, 3);
        let cells = |row| match row {
            Row::Cells(cells) => cells.iter().map(str::to_owned).collect(),
            other => panic!("{text:?} has {other:?}"),
        };
        found.into_iter().map(cells).collect()
    }

    #[test]
    fn rows_are_read_as_spreadsheets_write_them() {
        assert_eq!(
            cells("a,b\r\n\r\n1,\"x, \"\"y\"\"\r\nz\"\r3,\n"),
            [vec!["a", "b"], vec!["1", "x, \"y\"\r\nz"], vec!["3", ""]]
        );
        assert_eq!(cells("a,6\" b\n\"c\"d,\"e\" \n"), [vec!["a", "6\" b"], vec!["cd", "e "]]);
        assert_eq!(cells(",,\n \t,\n\"\"\nx"), [vec!["x"]]);
        assert_eq!(cells(""), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_quote_that_is_not_closed_is_a_fault() {
        for (text, value) in [
            ("a,b\nq,\"6 inch\nr,s\n", "6 inch"),
            ("a,b\n\"\n", ""),
            ("q,\"6 inch\nr,\"s\"\n", "6 inch"),
            ("q,\"6 \"\"inch\nr,s", "6 \"inch"),
        ] {
            let (found, _) = rows(text, 4);
            assert_eq!(found.last(), Some(&Row::Fault(Fault { value: value.to_owned() })), "{text:?}");
        }
        let endless = format!("a,\"{}\"\n", "x\n".repeat(LONGEST));
        assert!(matches!(rows(&endless, 9_999).0[..], [Row::Fault(_)]));
    }

    #[test]
    fn a_row_that_is_too_long_is_passed_over() {
        let text = format!("a,b\n{},c\nd,e\n", "x".repeat(LONGEST + 1));
        let (found, places) = rows(&text, 9_999);
        assert_eq!((found.len(), &found[1], places[2]), (3, &Row::TooLong, text.len() as u64));
    }

    #[test]
    fn swallowed_rows_are_told_from_prose() {
        let row = |cells: &[&str]| is_short_of_a_quote(&StringRecord::from(cells.to_vec()), b',');
        assert!(row(&["q1", "Ana", "6 inch\nq2,Bob,x\nq3,Cid,8"]));
        assert!(row(&["q1", "Ana", "6 inch\nq2,Bob,8"]));
        assert!(row(&["q1", "6 inch,x\nq2,Bob", "y"]));
        assert!(row(&["q1", "6 inch\nq2,b\nq3,8"]));
        assert!(!row(&["1", "Ana", "Main Street 1\nMadrid, Spain, EU"]));
        assert!(!row(&["1", "Ana", "Hello,\nhow are you?\nBye"]));
        assert!(!row(&["1", "Hello\nBye,Ana"]));
        assert!(!row(&["a\nb"]) && !row(&["a", "b", "c"]));
    }

    proptest! {
        #[test]
        fn what_the_csv_crate_writes_is_read(
            table in proptest::collection::vec(proptest::collection::vec("[a, \"\n\ré]{0,6}", 3), 1..6),
            buffer in 1_usize..9,
        ) {
            let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
            for row in &table {
                writer.write_record(row).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let (found, places) = rows(&text, buffer);
            let is_full = |row: &&Vec<String>| row.iter().any(|cell| !cell.trim().is_empty());
            let expected: Vec<Row> = table.iter().filter(is_full)
                .map(|row| Row::Cells(StringRecord::from(row.clone()))).collect();
            prop_assert_eq!(&found, &expected);
            for (number, place) in places.iter().enumerate() {
                let (rest, _) = rows(&text[usize::try_from(*place).unwrap()..], buffer);
                prop_assert_eq!(&rest[..], &found[number + 1..]);
            }
        }
    }
}
