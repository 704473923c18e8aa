//! Detection of a file's format and of the types of its columns.

use super::cells::dates::{DateFormat, Dates};
use super::cells::decimals::Decimals;
use crate::imports::model::{Format, ImportError};
use crate::tables::SAMPLE;
use fields::FieldType;
use fields::decimal;
use fields::value;
use serde_json::{Map, Value};

/// The error code of files that can never be imported.
pub(crate) const UNSUPPORTED: &str = "unsupported_format";

/// Returns whether the start of a file is text. A few control characters are allowed.
pub(crate) fn is_text(sample: &str) -> bool {
    let is_control = |letter: &char| letter.is_control() && !letter.is_whitespace();
    let (all, controls) = (sample.chars().count(), sample.chars().filter(is_control).count());
    controls < 2 || controls * 20 < all
}

/// Detects the format from the start of the text.
///
/// # Errors
/// `unsupported_format` for text that is neither CSV nor JSON objects.
pub(crate) fn format(sample: &str) -> Result<Format, ImportError> {
    let text = sample.trim_start();
    let line = text.lines().next().unwrap_or_default().trim_end();
    let refused = |what: &str| Err(ImportError::new(UNSUPPORTED, format!("The file {what}.")));
    let next = text.get(1..).unwrap_or_default().trim_start();
    if text.starts_with('<')
        && next.starts_with(|letter: char| letter.is_ascii_alphabetic() || "!?".contains(letter))
    {
        return refused("is HTML or XML; export it as CSV or JSON");
    }
    if text.starts_with('[') && is_array(line, next) {
        if next.starts_with(['{', ']']) {
            return Ok(Format::Json);
        }
        return refused("is a JSON array of other values than objects");
    }
    if !text.starts_with('{') || !next.starts_with(['"', '}']) {
        return Ok(Format::Csv);
    }
    let is_object = |line: &str| serde_json::from_str::<Map<String, Value>>(line).is_ok();
    // A line longer than the sample is cut off and cannot be parsed.
    let is_cut = line.len() + 4 >= text.trim_end().len() && sample.len() >= SAMPLE - 4;
    let has_lines = text.lines().skip(1).any(|line| line.starts_with('{'));
    if is_object(line) || is_cut || has_lines {
        return Ok(Format::Jsonl);
    }
    refused("is one JSON object over several lines; send an array of objects, or one object on each line")
}

/// Returns whether text that begins with a bracket is a JSON array, judging by its first line and the text after the
/// bracket.
fn is_array(line: &str, next: &str) -> bool {
    next.starts_with(['{', ']', '[']) || serde_json::from_str::<Vec<Value>>(line).is_ok()
}

/// The types that all values of a column so far are valid for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueTypes {
    left: Option<Vec<FieldType>>,
    /// Whether a value is a JSON list or object.
    has_structure: bool,
    decimals: Decimals,
    dates: Dates,
    /// The number of values.
    values: u64,
}

/// The candidate types, from narrow to wide. Any value is valid as long text.
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

/// The maximum length of a value that is not long text, in characters.
const MOST_TEXT: usize = 1_000;

impl ValueTypes {
    /// Adds a value. Empty values are ignored.
    pub(crate) fn at(&mut self, cell: &str) {
        if cell.trim().is_empty() {
            return;
        }
        let left = self.left.get_or_insert_with(|| CANDIDATES.to_vec());
        left.retain(|kind| fits(*kind, cell));
        self.values += 1;
        self.decimals.at(cell);
        self.dates.at(cell);
    }

    /// Adds only the date of a value. All rows of a column are needed to tell whether the day or the month is first.
    pub(crate) fn at_date(&mut self, cell: &str) {
        self.dates.at(cell);
    }

    /// Returns the statistics about dates.
    pub(crate) fn dates(&self) -> &Dates {
        &self.dates
    }

    /// Adds a JSON string. It excludes numbers and booleans, which JSON would write without quotes.
    pub(crate) fn at_text(&mut self, text: &str) {
        self.at(text);
        let is_text =
            |kind: &FieldType| !matches!(kind, FieldType::Integer | FieldType::Number | FieldType::Boolean);
        self.left.iter_mut().for_each(|left| left.retain(is_text));
    }

    /// Returns the statistics about numbers.
    pub(crate) fn decimals(&self) -> &Decimals {
        &self.decimals
    }

    /// Returns the narrowest type of all values, with this decimal separator and date format.
    pub(crate) fn like_with(&self, separator: Option<char>, format: Option<DateFormat>) -> Option<FieldType> {
        let number = separator.and_then(|separator| self.decimals.like(separator));
        let date = || self.dates.like(format?, self.values);
        number.or_else(date).filter(|_| self.left.is_some() && !self.has_structure).or_else(|| self.like())
    }

    /// Adds a JSON list or object.
    pub(crate) fn at_structure(&mut self) {
        self.has_structure = true;
    }

    /// Returns the narrowest type of all values, or `None` if there are none.
    pub(crate) fn like(&self) -> Option<FieldType> {
        if self.has_structure {
            return Some(FieldType::Json);
        }
        self.left.as_ref().map(|left| left.first().copied().unwrap_or(FieldType::LongText))
    }
}

/// Returns whether a value is valid for a type and clearly meant as one.
fn fits(kind: FieldType, cell: &str) -> bool {
    // Space around a number or a date is ignored, but around a text it is significant.
    let word = cell.trim();
    let is_short = || cell.chars().nth(MOST_TEXT).is_none();
    match kind {
        FieldType::Integer => {
            word.parse::<i64>().is_ok_and(|number| number.abs() <= decimal::MOST_INTEGER)
                && decimal::parse(word).is_some()
        }
        // Numbers with more digits than can be stored are codes.
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
    fn formats_are_distinguished() {
        let cut = format!("{{\"a\": \"{}", "x".repeat(SAMPLE));
        for (text, expected) in [
            ("\n{\"a\": 1}\n", Format::Jsonl),
            ("{\"a\": \n{\"a\": 1}\n", Format::Jsonl),
            (&cut[..SAMPLE], Format::Jsonl),
            ("[{\"a\":1},{\"a\":2}]", Format::Json),
            ("[\n  {\n    \"a\": 1\n  }\n]", Format::Json),
            ("[]", Format::Json),
            ("{a},b\n", Format::Csv),
            ("[a],b\n", Format::Csv),
            ("<3,b\n", Format::Csv),
            ("", Format::Csv),
        ] {
            assert_eq!(format(text).ok(), Some(expected), "{text:?}");
        }
        for text in [
            "<!DOCTYPE html>\n<html>",
            "<?xml version=\"1.0\"?>",
            "<table><tr>",
            "{\n  \"a\": 1\n}\n",
            "[1,2]\n",
            "[\"a\",\"b\"]",
            "[[1,2],[3,4]]",
        ] {
            assert_eq!(format(text).unwrap_err().code, UNSUPPORTED, "{text:?}");
        }
    }

    #[test]
    fn text_is_distinguished_from_other_bytes() {
        assert!(is_text("a,b\u{0}\n1,2\n") && is_text("") && is_text(&"a\t\r\n".repeat(9)));
        assert!(!is_text("\u{1}\u{2}\u{fffd}abc") && !is_text(&"ab\u{0}\u{0}".repeat(99)));
    }

    #[test]
    fn values_say_what_a_column_is() {
        for (cells, expected) in [
            (&["1", "-20", ""][..], Some(FieldType::Integer)),
            (&["1", "2.5"], Some(FieldType::Number)),
            (&["007", "1"], Some(FieldType::Text)),
            (&["1234567890123456", "1.5"], Some(FieldType::Text)),
            (&["a@example.com", "b@example.com "], Some(FieldType::Email)),
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
        let mut code = ValueTypes::default();
        code.at_text("28013");
        assert_eq!(code.like(), Some(FieldType::Text));
        code.at_text("2026-01-02");
        assert_eq!(code.like(), Some(FieldType::Text));
        let mut price = ValueTypes::default();
        ["12,50", "1.234,56"].into_iter().for_each(|cell| price.at(cell));
        assert_eq!(
            (price.like(), price.like_with(Some(','), None)),
            (Some(FieldType::Text), Some(FieldType::Number))
        );
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
}
