//! Numbers in local formats: `1.234,56` in most of Europe and Latin America, `1,234.56` elsewhere.
//!
//! Some numbers are ambiguous. `1,5` has a decimal comma, but `1.234` may have a decimal point or be greater than a
//! thousand. The other numbers of its column and file decide.

use fields::FieldType;
use fields::decimal;

/// The possible decimal separators.
pub(crate) const SEPARATORS: [char; 2] = [',', '.'];

/// How strongly a number indicates a decimal separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// It does not contain the character.
    None,
    /// The character may also be a thousands separator.
    Weak,
    /// The character can only be the decimal separator.
    Strong,
}

/// Converts a number with this decimal separator to the format of JSON. Returns `None` for other text. Groups of
/// three digits may be separated by the other character, spaces or apostrophes.
pub(crate) fn plain(text: &str, separator: char) -> Option<String> {
    let text = text.trim();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, decimals) = match digits.split_once(separator) {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (digits, None),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if decimals.is_some_and(|decimals| !is_number(decimals)) {
        return None;
    }
    let group = whole.chars().find(|letter| !letter.is_ascii_digit());
    let whole = match group {
        None => whole.to_owned(),
        Some(group) => {
            let parts: Vec<&str> = whole.split(group).collect();
            let (first, rest) = parts.split_first()?;
            let is_grouped =
                is_group(group, separator) && first.len() <= 3 && rest.iter().all(|part| part.len() == 3);
            is_grouped.then(|| parts.concat())?
        }
    };
    let decimals = decimals.map(|decimals| format!(".{decimals}")).unwrap_or_default();
    is_number(&whole).then(|| format!("{sign}{whole}{decimals}"))
}

fn is_group(letter: char, separator: char) -> bool {
    matches!(letter, ' ' | '\u{a0}' | '\u{202f}' | '\'' | '\u{2019}')
        || (letter != separator && SEPARATORS.contains(&letter))
}

/// Returns whether a field type is numeric.
pub(crate) fn is_numeric(kind: FieldType) -> bool {
    matches!(
        kind,
        FieldType::Number
            | FieldType::Currency
            | FieldType::Percent
            | FieldType::Duration
            | FieldType::Integer
            | FieldType::Rating
    )
}

/// Statistics about a column's numbers for one separator.
#[derive(Debug, Clone)]
struct Reading {
    separator: char,
    numbers: u64,
    strong: u64,
    weak: u64,
    grouped: u64,
    /// Whether a number has several groups and no decimals, like a telephone number.
    is_like_phone: bool,
    are_whole: bool,
}

/// Statistics about the numbers of a column.
#[derive(Debug, Clone)]
pub(crate) struct Decimals {
    values: u64,
    readings: [Reading; 2],
}

impl Default for Decimals {
    fn default() -> Self {
        let reading = |separator| Reading {
            separator,
            numbers: 0,
            strong: 0,
            weak: 0,
            grouped: 0,
            is_like_phone: false,
            are_whole: true,
        };
        Self { values: 0, readings: SEPARATORS.map(reading) }
    }
}

impl Reading {
    fn at(&mut self, cell: &str) {
        let Some(number) = plain(cell, self.separator) else { return };
        if !decimal::parse(&number)
            .is_some_and(|number| number.is_ok_and(|number| decimal::kept(&number).is_ok()))
        {
            return;
        }
        self.numbers += 1;
        self.are_whole &= !number.contains('.');
        match self.evidence(cell, &number) {
            Evidence::Strong => self.strong += 1,
            Evidence::Weak => self.weak += 1,
            Evidence::None => {}
        }
        let groups = cell.trim().chars().filter(|letter| is_group(*letter, self.separator)).count();
        self.grouped += u64::from(groups > 0);
        self.is_like_phone |= groups > 1 && !cell.contains(self.separator);
    }

    fn evidence(&self, cell: &str, number: &str) -> Evidence {
        let Some((whole, decimals)) = cell.trim().split_once(self.separator) else { return Evidence::None };
        let whole = whole.trim_start_matches('-');
        let is_grouped = whole.contains(|letter: char| !letter.is_ascii_digit());
        let digits = number.split('.').next().unwrap_or_default().trim_start_matches('-').len();
        let can_be_group = decimals.len() == 3 && !is_grouped && digits <= 3 && !whole.starts_with('0');
        if can_be_group { Evidence::Weak } else { Evidence::Strong }
    }

    /// Returns whether most values are numbers that are valid only with this separator.
    fn is_certain(&self, values: u64, other: &Self) -> bool {
        self.strong > 0 && other.strong == 0 && self.numbers * 2 > values
    }
}

impl Decimals {
    /// Adds a value that is not empty.
    pub(crate) fn at(&mut self, cell: &str) {
        self.values += 1;
        // Most other texts are recognized by their first letter.
        if cell.trim_start().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            self.readings.iter_mut().for_each(|reading| reading.at(cell));
        }
    }

    fn certain(&self) -> Option<&Reading> {
        let [comma, point] = &self.readings;
        match () {
            () if comma.is_certain(self.values, point) => Some(comma),
            // Without thousands separators, numbers with a decimal point are valid JSON anyway.
            () if point.grouped > 0 && point.is_certain(self.values, comma) => Some(point),
            () => None,
        }
    }

    /// Returns the separator of the column, unless its numbers are read as JSON. `of_file` is the separator of other
    /// columns.
    pub(crate) fn separator(&self, of_file: Option<char>) -> Option<char> {
        if let Some(certain) = self.certain() {
            return Some(certain.separator);
        }
        let reading = self.readings.iter().find(|reading| Some(reading.separator) == of_file)?;
        let [comma, point] = &self.readings;
        let is_open = comma.strong == 0 && point.strong == 0 && comma.weak + point.weak > 0;
        (is_open && reading.numbers * 2 > self.values).then_some(reading.separator)
    }

    /// Returns the type of the column, if all of its values are numbers with this separator.
    pub(crate) fn like(&self, separator: char) -> Option<FieldType> {
        let reading = self.readings.iter().find(|reading| reading.separator == separator)?;
        let is_number = reading.numbers == self.values && (!reading.is_like_phone || reading.strong > 0);
        let kind = if reading.are_whole { FieldType::Integer } else { FieldType::Number };
        is_number.then_some(kind)
    }
}

/// Returns the separator of a file, if some columns determine it and none contradicts.
pub(crate) fn of_file<'a>(columns: impl Iterator<Item = &'a Decimals> + Clone) -> Option<char> {
    let separator = columns.clone().find_map(Decimals::certain)?.separator;
    let mut others =
        columns.flat_map(|column| &column.readings).filter(|reading| reading.separator != separator);
    others.all(|reading| reading.strong == 0).then_some(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_either_separator() {
        for (text, separator, expected) in [
            ("12,50", ',', Some("12.50")),
            ("-1.234,56", ',', Some("-1234.56")),
            ("1.234", ',', Some("1234")),
            ("1 234 567,8", ',', Some("1234567.8")),
            ("1\u{202f}234", ',', Some("1234")),
            ("1'234.50", '.', Some("1234.50")),
            ("1,234.56", '.', Some("1234.56")),
            ("12", ',', Some("12")),
            ("1.23,4", ',', None),
            ("1.2.3", ',', None),
            ("1234.567,8", ',', None),
            ("12,", ',', None),
            (",5", ',', None),
            ("1,2,3", ',', None),
            ("", ',', None),
            ("-", ',', None),
            ("12 EUR", ',', None),
        ] {
            assert_eq!(plain(text, separator).as_deref(), expected, "{text}");
        }
    }

    fn column(cells: &[&str]) -> Decimals {
        let mut column = Decimals::default();
        cells.iter().for_each(|cell| column.at(cell));
        column
    }

    #[test]
    fn separators_are_detected_where_numbers_show_them() {
        for (cells, expected) in [
            (&["12,50", "1.234,56", "7"][..], Some(',')),
            (&["0,125"], Some(',')),
            (&["12,5", "n/a", "13,25"], Some(',')),
            (&["1,234.56", "12.50"], Some('.')),
            (&["12.50", "13.25"], None),
            (&["12,345", "1,234"], None),
            (&["1.234"], None),
            (&["12,50", "12.50"], None),
            (&["Madrid, 5", "12,5 kg", "1,5"], None),
            (&["01.02.2026", "192.168.1.1"], None),
        ] {
            assert_eq!(column(cells).separator(None), expected, "{cells:?}");
        }
        let (open, sure, other) = (column(&["1.234", "2.000"]), column(&["12,50"]), column(&["1.5"]));
        assert_eq!(of_file([&open, &sure].into_iter()), Some(','));
        assert_eq!(open.separator(Some(',')), Some(','));
        assert_eq!(of_file([&open, &sure, &other].into_iter()), None);
        assert_eq!(column(&["a", "b"]).separator(Some(',')), None);
        assert_eq!(column(&["1", "2"]).separator(Some(',')), None);
        assert_eq!((sure.like(','), open.like(',')), (Some(FieldType::Number), Some(FieldType::Integer)));
        assert_eq!(column(&["600.123.456"]).like(','), None, "it may be a telephone number");
        assert_eq!(column(&["12,5", "n/a"]).like(','), None);
    }
}
