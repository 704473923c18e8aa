//! Dates in local formats: `13/02/2024` in most of the world, `02/13/2024` in the United States.
//!
//! A date such as `03/04/2024` is ambiguous. The other dates of its column decide, then those of the other columns of
//! the file, and then the country of the business.

use fields::FieldType;
use fields::value;
use model::string_enum;

string_enum! {
    /// The order of day, month and year in dates.
    pub enum DateFormat {
        /// The day first, as in `13/02/2024`.
        Dmy = "dmy",
        /// The month first, as in `02/13/2024`.
        Mdy = "mdy",
        /// The year first, as in `2024/02/13`.
        Ymd = "ymd",
    }
}

/// The countries that write the month first.
const MONTH_FIRST: [&str; 12] = ["US", "PH", "FM", "MH", "PW", "AS", "GU", "MP", "PR", "UM", "VI", "BZ"];

/// Two-digit years from this one on belong to the 20th century, as in spreadsheets.
const LAST_CENTURY: u32 = 30;

/// Returns the date format of a country, the last resort.
pub(crate) fn of_country(country: Option<&str>) -> DateFormat {
    if country.is_some_and(|country| MONTH_FIRST.contains(&country)) {
        DateFormat::Mdy
    } else {
        DateFormat::Dmy
    }
}

/// Converts a date to the format of RFC 3339, with the time after it if there is one. Returns `None` for other text.
/// A four-digit number at the start is the year in every format.
pub(crate) fn plain(text: &str, format: DateFormat) -> Option<String> {
    let text = text.trim();
    let (day, time) = text.split_once([' ', 'T', ',']).map_or((text, ""), |(day, time)| (day, time.trim()));
    let [first, second, third] = parts(day)?;
    let (year, month, day) = match format {
        _ if first.len() == 4 => (first, second, third),
        DateFormat::Ymd => (first, second, third),
        DateFormat::Dmy => (third, second, first),
        DateFormat::Mdy => (third, first, second),
    };
    if month.len() > 2 || day.len() > 2 {
        return None;
    }
    let (month, day): (u32, u32) = (month.parse().ok()?, day.parse().ok()?);
    let date = format!("{:04}-{month:02}-{day:02}", year_of(year)?);
    value::date(&date)?;
    Some(if time.is_empty() { date } else { format!("{date} {time}") })
}

/// Splits a date into three numbers.
fn parts(text: &str) -> Option<[&str; 3]> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let separator = text.chars().find(|letter| !letter.is_ascii_digit())?;
    let mut parts = text.split(separator);
    let three = [parts.next()?, parts.next()?, parts.next()?];
    let is_number =
        |part: &&str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_date =
        matches!(separator, '/' | '.' | '-') && parts.next().is_none() && three.iter().all(is_number);
    is_date.then_some(three)
}

fn year_of(digits: &str) -> Option<u32> {
    let year: u32 = digits.parse().ok()?;
    match digits.len() {
        4 => Some(year),
        2 if year < LAST_CENTURY => Some(2000 + year),
        2 => Some(1900 + year),
        _ => None,
    }
}

/// Statistics about the dates of a column that are not in the format of RFC 3339.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dates {
    /// The number of values that are dates with the day first, and with the month first.
    day_first: u64,
    month_first: u64,
    /// The number of values with the year first.
    year_first: u64,
    /// The number of values with dots, which no country uses with the month first.
    dotted: u64,
    /// The number of values that are only a date with a four-digit year: with the day first, and with the month
    /// first.
    whole: [u64; 2],
}

/// The dates found in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundDates {
    /// The format used to read them.
    pub(crate) format: DateFormat,
    /// Whether the column is ambiguous.
    pub(crate) is_open: bool,
}

impl Dates {
    /// Adds a value.
    pub(crate) fn at(&mut self, cell: &str) {
        let cell = cell.trim();
        if !cell.starts_with(|first: char| first.is_ascii_digit()) || value::date(cell).is_some() {
            return;
        }
        let [day_first, month_first] = [DateFormat::Dmy, DateFormat::Mdy].map(|format| plain(cell, format));
        if cell.find(['/', '.', '-']) == Some(4) {
            self.year_first += u64::from(day_first.is_some());
            return;
        }
        self.day_first += u64::from(day_first.is_some());
        self.month_first += u64::from(month_first.is_some());
        self.dotted += u64::from(day_first.is_some() && cell.contains('.'));
        let has_year = parts(cell).is_some_and(|[_, _, year]| year.len() == 4);
        for (count, date) in self.whole.iter_mut().zip([&day_first, &month_first]) {
            *count += u64::from(has_year && date.is_some());
        }
    }

    /// Returns the format, if the dates determine it.
    fn certain(&self) -> Option<DateFormat> {
        match self.day_first.cmp(&self.month_first) {
            std::cmp::Ordering::Greater => Some(DateFormat::Dmy),
            std::cmp::Ordering::Less => Some(DateFormat::Mdy),
            std::cmp::Ordering::Equal if self.day_first > 0 && self.dotted == self.day_first => {
                Some(DateFormat::Dmy)
            }
            std::cmp::Ordering::Equal => None,
        }
    }

    /// Returns the format used to read the dates of the column, or `None` if there are none. `of_file` is the format
    /// of other columns, and `of_country` that of the business.
    pub(crate) fn found(&self, of_file: Option<DateFormat>, of_country: DateFormat) -> Option<FoundDates> {
        if self.day_first + self.month_first == 0 {
            let format = DateFormat::Ymd;
            return (self.year_first > 0).then_some(FoundDates { format, is_open: false });
        }
        let known = self.certain().or(of_file);
        Some(FoundDates { format: known.unwrap_or(of_country), is_open: known.is_none() })
    }

    /// Returns the type of a column with this number of values, if all of them are dates in the format.
    pub(crate) fn like(&self, format: DateFormat, values: u64) -> Option<FieldType> {
        let [day_first, month_first] = self.whole;
        let dates = if format == DateFormat::Mdy { month_first } else { day_first };
        (dates > 0 && dates == values).then_some(FieldType::Date)
    }
}

/// Returns the format of a file, if some columns determine it and none contradicts.
pub(crate) fn of_file<'a>(mut columns: impl Iterator<Item = &'a Dates> + Clone) -> Option<DateFormat> {
    let format = columns.clone().find_map(Dates::certain)?;
    columns.all(|column| column.certain().is_none_or(|other| other == format)).then_some(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_a_format() {
        use DateFormat::{Dmy, Mdy, Ymd};
        for (text, format, expected) in [
            ("13/02/2024", Dmy, Some("2024-02-13")),
            ("02/13/2024", Mdy, Some("2024-02-13")),
            ("3.4.2024", Dmy, Some("2024-04-03")),
            ("3.4.2024.", Dmy, Some("2024-04-03")),
            ("3-4-24", Dmy, Some("2024-04-03")),
            ("1/2/45", Dmy, Some("1945-02-01")),
            ("24/2/13", Ymd, Some("2024-02-13")),
            ("2024/2/13", Mdy, Some("2024-02-13")),
            ("2024-02-13", Dmy, Some("2024-02-13")),
            (" 13/02/2024 9:30 ", Dmy, Some("2024-02-13 9:30")),
            ("13/02/2024", Mdy, None),
            ("30/02/2024", Dmy, None),
            ("1/2/3/2024", Dmy, None),
            ("1/2.2024", Dmy, None),
            ("1/2/024", Dmy, None),
            ("2024", Dmy, None),
            ("a/b/2024", Dmy, None),
            ("", Dmy, None),
        ] {
            assert_eq!(plain(text, format).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_whole_column_says_what_comes_first() {
        use DateFormat::{Dmy, Mdy, Ymd};
        let column = |cells: &[&str]| {
            let mut dates = Dates::default();
            cells.iter().for_each(|cell| dates.at(cell));
            dates
        };
        for (cells, expected) in [
            (&["03/04/2024", "13/02/2024"][..], Some((Dmy, false))),
            (&["03/04/2024", "02/13/2024"], Some((Mdy, false))),
            (&["13/02/2024", "14/02/2024", "02/13/2024"], Some((Dmy, false))),
            (&["03.04.2024"], Some((Dmy, false))),
            (&["03/04/2024"], Some((Mdy, true))),
            (&["2024/02/13", "2024-02-14"], Some((Ymd, false))),
            (&["2024-02-14", "n/a", "7"], None),
        ] {
            let found = column(cells).found(None, Mdy).map(|dates| (dates.format, dates.is_open));
            assert_eq!(found, expected, "{cells:?}");
        }
        let (open, sure, other) = (column(&["3/4/2024"]), column(&["13/4/2024"]), column(&["4/13/2024"]));
        assert_eq!(of_file([&open, &sure].into_iter()), Some(Dmy));
        assert_eq!(of_file([&open, &sure, &other].into_iter()), None);
        assert_eq!(open.found(Some(Dmy), Mdy), Some(FoundDates { format: Dmy, is_open: false }));
        assert_eq!(
            (sure.like(Dmy, 1), sure.like(Dmy, 2), column(&["3/4/24"]).like(Dmy, 1)),
            (Some(FieldType::Date), None, None)
        );
        assert_eq!((of_country(Some("US")), of_country(Some("ES")), of_country(None)), (Mdy, Dmy, Dmy));
    }
}
