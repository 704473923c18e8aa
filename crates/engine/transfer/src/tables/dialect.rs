//! Detection of the CSV delimiter, and of files that are not text.

use super::rows::{Row, Rows};

/// The dialect of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The delimiter.
    pub delimiter: u8,
    /// The position of the first row in bytes. A preceding line such as `sep=;` tells Excel the delimiter.
    pub start: usize,
}

impl Dialect {
    /// Detects the dialect from the start of a file. A `given` delimiter takes precedence.
    pub fn of(sample: &str, given: Option<u8>) -> Self {
        let (said, start) = separator_line(sample).map_or((None, 0), |(said, start)| (Some(said), start));
        let rows = sample.get(start..).unwrap_or_default();
        Self { delimiter: given.or(said).unwrap_or_else(|| delimiter(rows)), start }
    }
}

/// Parses a first line such as `sep=;`. Returns the delimiter and the position of the next line.
fn separator_line(sample: &str) -> Option<(u8, usize)> {
    let end = sample.find(['\n', '\r'])?;
    let (line, rest) = sample.split_at_checked(end)?;
    let bare: String = line.chars().filter(|letter| *letter != '"').collect();
    let (name, said) = bare.split_at_checked(4)?;
    let mut letters = said.chars();
    let delimiter = letters.next().filter(|letter| letter.is_ascii() && !letter.is_ascii_alphanumeric())?;
    // Programs that save such a file again may append delimiters to the line.
    let is_filled = letters.all(|letter| letter == delimiter || matches!(letter, ',' | ';' | '\t' | ' '));
    let is_line = name.eq_ignore_ascii_case("sep=") && is_filled;
    let ending = if rest.starts_with("\r\n") { 2 } else { 1 };
    is_line.then_some((u8::try_from(delimiter).ok()?, end + ending))
}

/// Returns the candidate that splits most rows into the same number of values, if that is more than one.
fn delimiter(sample: &str) -> u8 {
    let mut best = (0, b',');
    for candidate in [b',', b';', b'\t', b'|'] {
        let mut rows = Rows::new(sample.as_bytes(), candidate);
        let mut widths = Vec::new();
        while let (Ok(Some(Row::Cells(cells))), true) = (rows.next_row(), widths.len() < 50) {
            widths.push(cells.len());
        }
        let first = widths.first().copied().unwrap_or_default();
        let alike = widths.iter().filter(|width| **width == first).count();
        let score = if first > 1 { alike * 1_000 / widths.len().max(1) * 100 + first.min(99) } else { 0 };
        if score > best.0 {
            best = (score, candidate);
        }
    }
    best.1
}

/// Returns why a file of this media type contains no readable rows, as the end of a sentence. `None` for text.
pub fn refusal(mime_type: &str) -> Option<String> {
    const WORKBOOKS: [&str; 3] = [
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.ms-excel",
        "application/vnd.oasis.opendocument.spreadsheet",
    ];
    let is_text = mime_type.starts_with("text/")
        || ["application/json", "application/x-ndjson", "application/octet-stream", "image/svg+xml"]
            .contains(&mime_type);
    if is_text {
        return None;
    }
    Some(if WORKBOOKS.contains(&mime_type) {
        "is a workbook of a spreadsheet; save its sheet as CSV".to_owned()
    } else {
        format!("is no text but `{mime_type}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_distinguished() {
        for (sample, expected) in [
            ("a,b,c\n1,2,3\n", b','),
            ("a;b\n\"1,5\";2,5\n", b';'),
            ("a\tb\n1,5\t2\n", b'\t'),
            ("a|b|c\n1|2|3\n", b'|'),
            ("just one column\nof text\n", b','),
            ("name;note\nx;a, b, c\ny;d\n", b';'),
            ("\"Name, full\";phone\n\"Souza, Ana\";1\n", b';'),
        ] {
            let found = Dialect::of(sample, None);
            assert_eq!((char::from(found.delimiter), found.start), (char::from(expected), 0), "{sample:?}");
        }
        assert_eq!(Dialect::of("a,b;c\n", Some(b';')).delimiter, b';');
    }

    #[test]
    fn a_line_that_names_the_delimiter_is_no_row() {
        for (sample, delimiter, start) in [
            ("sep=;\r\na;b\r\n", b';', 7),
            ("sep=,\na,b\n", b',', 6),
            ("SEP=\t\na\tb\n", b'\t', 6),
            ("\"sep=;\"\na;b\n", b';', 8),
            ("sep=;;;\ra;b;c\r", b';', 8),
        ] {
            assert_eq!(Dialect::of(sample, None), Dialect { delimiter, start }, "{sample:?}");
        }
        assert_eq!(Dialect::of("sep=;\na;b\n", Some(b'|')), Dialect { delimiter: b'|', start: 6 });
        for sample in ["sep=a\n", "sep;b\n", "separator\n", "sep=;", "sep=;x\n"] {
            assert_eq!(Dialect::of(sample, None).start, 0, "{sample:?}");
        }
    }

    #[test]
    fn only_text_has_rows() {
        for kind in ["text/csv", "text/plain", "application/json", "application/octet-stream"] {
            assert_eq!(refusal(kind), None);
        }
        for kind in ["application/zip", "image/png", "application/pdf"] {
            assert!(refusal(kind).unwrap().contains(kind));
        }
        let xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
        assert!(refusal(xlsx).unwrap().contains("CSV"));
    }
}
