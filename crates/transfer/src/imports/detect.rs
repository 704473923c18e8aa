//! What a file is: its encoding, its format, what stands between its values, and what types they fit.

use super::model::Format;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use fields::FieldType;
use fields::decimal;
use fields::value;
use std::io::Read;

/// How much of a file is looked at to tell its format.
pub(super) const SAMPLE: usize = 64 * 1024;

/// How the text of a file is encoded: by its first bytes where they say it, else by all of it.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn encoding(mut reader: impl Read) -> std::io::Result<&'static Encoding> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let mut buffer = vec![0; SAMPLE];
    let mut is_first = true;
    loop {
        let filled = fill(&mut reader, &mut buffer)?;
        let bytes = buffer.get(..filled).unwrap_or_default();
        if is_first && let Some(known) = by_first_bytes(bytes) {
            return Ok(known);
        }
        is_first = false;
        detector.feed(bytes, filled < SAMPLE);
        if filled < SAMPLE {
            return Ok(detector.guess(None, Utf8Detection::Allow));
        }
    }
}

/// Reads until the buffer is full or the file ends.
pub(super) fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A byte order mark, or the zeros that every second byte of UTF-16 is in most languages.
fn by_first_bytes(bytes: &[u8]) -> Option<&'static Encoding> {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return Some(encoding);
    }
    let zeros = |odd: usize| bytes.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, enough) = (zeros(0), zeros(1), bytes.len() / 8);
    match () {
        () if bytes.len() < 4 => None,
        () if odd > enough && odd > even * 4 => Some(UTF_16LE),
        () if even > enough && even > odd * 4 => Some(UTF_16BE),
        () => None,
    }
}

/// Whether a text is JSON Lines or CSV, by its first line.
pub(super) fn format(sample: &str) -> Format {
    let line = sample.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let is_object = |line: &str| serde_json::from_str::<serde_json::Map<_, _>>(line).is_ok();
    // A line that is longer than the sample cannot be parsed, but no CSV begins like that.
    let is_cut = line.len() + 4 >= sample.trim().len() && sample.len() >= SAMPLE - 4;
    if line.starts_with('{') && (is_object(line) || (is_cut && line.starts_with("{\""))) {
        Format::Jsonl
    } else {
        Format::Csv
    }
}

/// What stands between values: the candidate that cuts most rows into the same number of values, and more than one.
pub(super) fn delimiter(sample: &str) -> u8 {
    let mut best = (0, b',');
    for candidate in [b',', b';', b'\t', b'|'] {
        let widths: Vec<usize> = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(candidate)
            .from_reader(sample.as_bytes())
            .records()
            .take(50)
            .map_while(Result::ok)
            .map(|record| record.len())
            .collect();
        let first = widths.first().copied().unwrap_or_default();
        let alike = widths.iter().filter(|width| **width == first).count();
        let score = if first > 1 { alike * 1_000 / widths.len().max(1) * 100 + first.min(99) } else { 0 };
        if score > best.0 {
            best = (score, candidate);
        }
    }
    best.1
}

/// Whether a first row names the columns: it names a field, or consists of different words, none of them a value of
/// another type than text.
pub(super) fn is_header(first: &csv::StringRecord, is_field: impl Fn(&str) -> bool) -> bool {
    let cells: Vec<&str> = first.iter().map(str::trim).collect();
    if cells.iter().any(|cell| is_field(cell)) {
        return true;
    }
    let mut seen = std::collections::HashSet::new();
    let is_name = |cell: &&str| {
        let mut looks = ValueTypes::default();
        looks.at(cell);
        !cell.is_empty() && cell.len() <= 120 && looks.like() == Some(FieldType::Text)
    };
    cells.iter().all(|cell| is_name(cell) && seen.insert(cell.to_lowercase()))
}

/// The types that all values of a column fit so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueTypes {
    left: Option<Vec<FieldType>>,
    /// Whether a value is a list or an object of JSON.
    has_structure: bool,
}

/// What a value may be, the narrowest first. Long text fits everything.
const CANDIDATES: [FieldType; 8] = [
    FieldType::Integer,
    FieldType::Number,
    FieldType::Boolean,
    FieldType::Date,
    FieldType::Datetime,
    FieldType::Email,
    FieldType::Url,
    FieldType::Text,
];

/// The most characters of a value that is no long text.
const MOST_TEXT: usize = 1_000;

impl ValueTypes {
    /// Takes a value into account; an empty one says nothing.
    pub(super) fn at(&mut self, cell: &str) {
        if cell.trim().is_empty() {
            return;
        }
        let left = self.left.get_or_insert_with(|| CANDIDATES.to_vec());
        left.retain(|kind| fits(*kind, cell));
    }

    /// Takes a list or an object of JSON into account.
    pub(super) fn at_structure(&mut self) {
        self.has_structure = true;
    }

    /// The narrowest type that all values fit; `None` where there were none.
    pub(super) fn like(&self) -> Option<FieldType> {
        if self.has_structure {
            return Some(FieldType::Json);
        }
        self.left.as_ref().map(|left| left.first().copied().unwrap_or(FieldType::LongText))
    }
}

/// Whether a field of a type takes a value, and nobody would mean another by it.
fn fits(kind: FieldType, cell: &str) -> bool {
    // Space around a number or a date is not looked at, around a text it is part of it.
    let word = cell.trim();
    let is_short = || cell.chars().nth(MOST_TEXT).is_none();
    match kind {
        FieldType::Integer => {
            word.parse::<i64>().is_ok_and(|number| number.abs() <= decimal::MOST_INTEGER)
                && decimal::parse(word).is_some()
        }
        // More digits than a number keeps are a code, not an amount.
        FieldType::Number => {
            let is_kept = |number| decimal::kept(&number).is_ok();
            decimal::parse(word).is_some_and(|number| number.is_ok_and(is_kept))
                && word.bytes().filter(u8::is_ascii_digit).count() <= 15
        }
        FieldType::Boolean => {
            matches!(word.to_ascii_lowercase().as_str(), "true" | "false" | "yes" | "no")
        }
        FieldType::Date => value::date(word).is_some(),
        FieldType::Datetime => value::datetime(word, None).is_some(),
        FieldType::Email => value::is_email(cell) && is_short(),
        FieldType::Url => value::is_url(cell) && is_short(),
        FieldType::Text => is_short(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn encodings_are_distinguished() {
        let utf16: Vec<u8> = "name;größe\n1;2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16be: Vec<u8> = "name;größe\n1;2\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let with_mark = [&[0xff, 0xfe][..], &utf16].concat();
        let windows = b"name,stadt\nM\xfcller,K\xf6ln\nJ\xe4ger,M\xfcnchen\n";
        let late = [vec![b'a'; SAMPLE + 10], "é".into()].concat();
        for (bytes, expected) in [
            (&b"a,b\n1,2\n"[..], "UTF-8"),
            ("name\né\n".as_bytes(), "UTF-8"),
            (&late, "UTF-8"),
            (&utf16, "UTF-16LE"),
            (&utf16be, "UTF-16BE"),
            (&with_mark, "UTF-16LE"),
            (windows, "windows-1252"),
            (b"", "UTF-8"),
        ] {
            let found = encoding(bytes).unwrap();
            assert_eq!(found.name(), expected, "{:?}", String::from_utf8_lossy(bytes).get(..20));
        }
    }

    #[test]
    fn formats_and_delimiters_are_distinguished() {
        assert_eq!(format("\n{\"a\": 1}\n"), Format::Jsonl);
        assert_eq!(format("{a},b\n"), Format::Csv);
        assert_eq!(format(""), Format::Csv);
        for (sample, expected) in [
            ("a,b,c\n1,2,3\n", b','),
            ("a;b\n\"1,5\";2,5\n", b';'),
            ("a\tb\n1,5\t2\n", b'\t'),
            ("a|b|c\n1|2|3\n", b'|'),
            ("just one column\nof text\n", b','),
            ("name;note\nx;a, b, c\ny;d\n", b';'),
        ] {
            assert_eq!(char::from(delimiter(sample)), char::from(expected), "{sample:?}");
        }
    }

    #[test]
    fn values_say_what_a_column_is() {
        for (cells, expected) in [
            (&["1", "-20", ""][..], Some(FieldType::Integer)),
            (&["1", "2.5"], Some(FieldType::Number)),
            (&["007", "1"], Some(FieldType::Text)),
            (&["1234567890123456", "1.5"], Some(FieldType::Text)),
            (&["a@example.com", "b@example.com "], Some(FieldType::Text)),
            (&["yes", "No"], Some(FieldType::Boolean)),
            (&["2026-01-02"], Some(FieldType::Date)),
            (&["2026-01-02T10:00:00Z"], Some(FieldType::Datetime)),
            (&["a@example.com"], Some(FieldType::Email)),
            (&["https://example.com/a"], Some(FieldType::Url)),
            (&["1", "x"], Some(FieldType::Text)),
            (&["", "  "], None),
        ] {
            let mut looks = ValueTypes::default();
            cells.iter().for_each(|cell| looks.at(cell));
            assert_eq!(looks.like(), expected, "{cells:?}");
        }
        let like = |cell: &str| {
            let mut looks = ValueTypes::default();
            looks.at(cell);
            looks.like()
        };
        assert_eq!(like(&"x".repeat(1_001)), Some(FieldType::LongText));
        assert_eq!(like(&format!("https://example.com/{}", "x".repeat(1_000))), Some(FieldType::LongText));
        let mut list = ValueTypes::default();
        list.at("text");
        list.at_structure();
        assert_eq!(list.like(), Some(FieldType::Json));
    }

    proptest! {
        #[test]
        fn a_field_of_the_type_that_was_found_takes_the_value(
            cell in prop_oneof![
                "[0-9.eE+-]{1,20}", " ?[0-9]{4}-[0-9]{2}-[0-9]{2} ?", "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-9:]{8}(Z|[.][0-9]{1,4}Z)",
                " ?[a-z]{1,5}@[a-z.]{1,8} ?", " ?https?://[a-z.]{1,9}/? ?", "(true|No|YES) ?", "\\PC{1,30}",
            ],
        ) {
            let mut looks = ValueTypes::default();
            looks.at(&cell);
            if let Some(kind) = looks.like() {
                let field = fields::Field::draft("f", kind, Default::default());
                let taken = value::check(&field, &cell.as_str().into(), value::Mode::Typecast);
                prop_assert!(taken.is_ok(), "{kind:?} {cell:?} {taken:?}");
            }
        }
    }

    #[test]
    fn headers_are_distinguished_from_rows() {
        let record = |cells: &[&str]| csv::StringRecord::from(cells.to_vec());
        let is = |cells: &[&str]| is_header(&record(cells), |cell| cell == "price");
        assert!(is(&["name", "cost"]));
        assert!(is(&["price", "2026"]), "it names a field");
        assert!(!is(&["chair", "12.5"]));
        assert!(!is(&["a", "A"]) && !is(&["a", ""]));
    }
}
