//! Parsing and validation of recurrence rules (RFC 5545).
//!
//! Errors are the rest of a sentence that begins with the name of the field: "must have a FREQ, such as
//! `FREQ=DAILY`".

use super::rule::{ByDay, Frequency, Rule, Until};
use chrono::{NaiveDate, NaiveDateTime, Weekday};
use model::Timestamp;
use std::ops::RangeInclusive;

/// The maximum interval.
const LONGEST_INTERVAL: u32 = 65_535;

/// The names of the parts of a rule.
const PARTS: [&str; 14] = [
    "FREQ",
    "INTERVAL",
    "COUNT",
    "UNTIL",
    "WKST",
    "BYMONTH",
    "BYWEEKNO",
    "BYYEARDAY",
    "BYMONTHDAY",
    "BYDAY",
    "BYHOUR",
    "BYMINUTE",
    "BYSECOND",
    "BYSETPOS",
];

impl Rule {
    /// Parses a rule such as `FREQ=WEEKLY;BYDAY=MO,TH`. Case is ignored.
    ///
    /// # Errors
    /// The reason why the rule is invalid, as the rest of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rule = Self::read(text)?;
        rule.check_values()?;
        rule.check_weekdays()?;
        rule.check_parts()?;
        Ok(rule)
    }

    /// Parses a stored rule. Earlier versions accepted rules that [`Self::parse`] refuses. Parts that RFC 5545 does
    /// not allow are ignored: `FREQ=WEEKLY;BYDAY=1MO` means Mondays.
    ///
    /// # Errors
    /// As [`Self::parse`], if no valid part is left.
    pub fn parse_stored(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_uppercase().replace("BYWEEKDAY=", "BYDAY=");
        let parts: Vec<&str> =
            text.split(';').filter(|part| !part.is_empty() && !part.ends_with('=')).collect();
        let mut rule = Self::read(&parts.join(";"))?;
        let is_numbered =
            matches!(rule.frequency, Frequency::Monthly | Frequency::Yearly) && rule.weeks.is_empty();
        for day in &mut rule.weekdays {
            day.number = day.number.filter(|number| is_numbered && *number != 0);
        }
        rule.month_days.retain(|day| *day != 0);
        if rule.frequency == Frequency::Weekly {
            rule.month_days.clear();
        }
        Ok(rule)
    }

    /// Parses the parts of a rule. Does not check their ranges and combinations.
    fn read(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_uppercase();
        let mut parts: Vec<(&str, &str)> = Vec::new();
        for part in text.split(';') {
            let (name, value) =
                part.split_once('=').ok_or("must be a rule such as `FREQ=WEEKLY;BYDAY=MO,TH`")?;
            if !PARTS.contains(&name) {
                let shown: String = name.chars().take(20).collect();
                return Err(format!("cannot have `{shown}`; the parts of a rule are {}", PARTS.join(", ")));
            }
            if parts.iter().any(|(other, _)| *other == name) {
                return Err(format!("must have {name} only once"));
            }
            parts.push((name, value));
        }
        let frequency = parts.iter().find(|(name, _)| *name == "FREQ");
        let (_, frequency) = frequency.ok_or("must have a FREQ, such as `FREQ=DAILY`")?;
        let frequency = Frequency::parse(frequency).ok_or(
            "must have one of YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY and SECONDLY as its FREQ",
        )?;
        let mut rule = Self::of(frequency);
        for (name, value) in parts {
            rule.set(name, value).ok_or_else(|| wrong_value(name))?;
        }
        if rule.count.is_some() && rule.until.is_some() {
            return Err("must have either COUNT or UNTIL".to_owned());
        }
        Ok(rule)
    }

    /// Sets a part. Returns `None` if the value is malformed.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "FREQ" => {}
            "INTERVAL" => {
                let interval = number(value)?.try_into().ok()?;
                self.interval =
                    Some(interval).filter(|interval| (1..=LONGEST_INTERVAL).contains(interval))?;
            }
            "COUNT" => {
                let count = number(value)?.try_into().ok()?;
                self.count = Some(Some(count).filter(|count| *count > 0)?);
            }
            "UNTIL" => self.until = Some(Until::parse(value)?),
            "WKST" => self.week_start = weekday(value)?,
            "BYDAY" => self.weekdays = list(value, by_day)?,
            _ => *self.numbers_mut(name)? = list(value, number)?,
        }
        Some(())
    }

    fn numbers_mut(&mut self, name: &str) -> Option<&mut Vec<i32>> {
        Some(match name {
            "BYMONTH" => &mut self.months,
            "BYWEEKNO" => &mut self.weeks,
            "BYYEARDAY" => &mut self.year_days,
            "BYMONTHDAY" => &mut self.month_days,
            "BYHOUR" => &mut self.hours,
            "BYMINUTE" => &mut self.minutes,
            "BYSECOND" => &mut self.seconds,
            "BYSETPOS" => &mut self.places,
            _ => return None,
        })
    }

    /// Refuses numbers outside the range of their part.
    fn check_values(&self) -> Result<(), String> {
        let lists: [(&str, &[i32], RangeInclusive<i32>, bool); 8] = [
            ("BYMONTH", &self.months, 1..=12, false),
            ("BYWEEKNO", &self.weeks, 1..=53, true),
            ("BYYEARDAY", &self.year_days, 1..=366, true),
            ("BYMONTHDAY", &self.month_days, 1..=31, true),
            ("BYHOUR", &self.hours, 0..=23, false),
            ("BYMINUTE", &self.minutes, 0..=59, false),
            ("BYSECOND", &self.seconds, 0..=59, false),
            ("BYSETPOS", &self.places, 1..=366, true),
        ];
        for (name, values, range, from_end) in lists {
            if !values.iter().all(|value| is_within(*value, &range, from_end)) {
                return Err(must_be_within(name, &range, from_end));
            }
        }
        Ok(())
    }

    /// Refuses numbered weekdays that never match or whose period is not clear.
    fn check_weekdays(&self) -> Result<(), String> {
        let Some(numbered) = self.weekdays.iter().find(|day| day.number.is_some()) else { return Ok(()) };
        let shown = format!("{}{}", numbered.number.unwrap_or_default(), name_of(numbered.weekday));
        if !matches!(self.frequency, Frequency::Monthly | Frequency::Yearly) {
            let frequency = self.frequency.as_str();
            return Err(format!(
                "cannot have `{shown}` in BYDAY with FREQ={frequency}: only MONTHLY and YEARLY number their weekdays"
            ));
        }
        if !self.weeks.is_empty() {
            return Err(format!(
                "cannot have `{shown}` in BYDAY with BYWEEKNO: a week has each weekday once"
            ));
        }
        let range = if self.numbers_within_month() { 1..=5 } else { 1..=53 };
        let numbers = self.weekdays.iter().filter_map(|day| day.number);
        if numbers.into_iter().all(|number| is_within(number, &range, true)) {
            Ok(())
        } else {
            Err(must_be_within("numbers in BYDAY", &range, true))
        }
    }

    /// Refuses parts that are not allowed with the frequency or require another part.
    fn check_parts(&self) -> Result<(), String> {
        use Frequency::{Daily, Monthly, Weekly, Yearly};
        let frequency = self.frequency;
        for (name, is_given, is_allowed) in [
            ("BYWEEKNO", !self.weeks.is_empty(), frequency == Yearly),
            ("BYYEARDAY", !self.year_days.is_empty(), !matches!(frequency, Daily | Weekly | Monthly)),
            ("BYMONTHDAY", !self.month_days.is_empty(), frequency != Weekly),
        ] {
            if is_given && !is_allowed {
                return Err(format!("cannot have {name} with FREQ={}", frequency.as_str()));
            }
        }
        if !self.places.is_empty() && !self.is_restricted() && self.seconds.is_empty() {
            return Err("must have another part with BY, such as BYDAY, with BYSETPOS".to_owned());
        }
        Ok(())
    }
}

impl Until {
    fn parse(text: &str) -> Option<Self> {
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'T');
        let (text, is_utc) = text.strip_suffix('Z').map_or((text, false), |text| (text, true));
        if !plain(text) {
            return None;
        }
        if text.len() == 8 && !is_utc {
            let day = NaiveDate::parse_from_str(text, "%Y%m%d").ok()?;
            return day.and_hms_opt(23, 59, 59).map(Self::Local);
        }
        let time = NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S").ok().filter(|_| text.len() == 15)?;
        let moment = || Timestamp::from_millis(time.and_utc().timestamp_millis());
        Some(if is_utc { Self::Moment(moment()) } else { Self::Local(time) })
    }
}

fn wrong_value(name: &str) -> String {
    match name {
        "INTERVAL" => "must have an INTERVAL from 1 to 65,535".to_owned(),
        "COUNT" => "must have a COUNT of at least 1".to_owned(),
        "UNTIL" => "must have an UNTIL such as 20271231 or 20271231T235959Z".to_owned(),
        "WKST" => "must have a weekday such as MO as its WKST".to_owned(),
        "BYDAY" => "must have weekdays such as MO, -1FR or 2TU in BYDAY, separated by commas".to_owned(),
        _ => format!("must have numbers in {name}, separated by commas"),
    }
}

fn must_be_within(name: &str, range: &RangeInclusive<i32>, from_end: bool) -> String {
    let (first, last) = (range.start(), range.end());
    let negative = if from_end { format!(", or from -{last} to -{first}") } else { String::new() };
    format!("must have {name} from {first} to {last}{negative}")
}

fn is_within(value: i32, range: &RangeInclusive<i32>, from_end: bool) -> bool {
    range.contains(&value) || (from_end && range.contains(&-value))
}

/// Parses a list and drops repeated values.
fn list<T: PartialEq>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let mut values = Vec::new();
    for item in text.split(',') {
        let value = read(item)?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Some(values)
}

/// Parses a number of at most six digits, with an optional sign.
fn number(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_plain = (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

fn by_day(text: &str) -> Option<ByDay> {
    let (digits, day) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let number = if digits.is_empty() { None } else { Some(number(digits)?) };
    Some(ByDay { number, weekday: weekday(day)? })
}

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("MO", Weekday::Mon),
    ("TU", Weekday::Tue),
    ("WE", Weekday::Wed),
    ("TH", Weekday::Thu),
    ("FR", Weekday::Fri),
    ("SA", Weekday::Sat),
    ("SU", Weekday::Sun),
];

fn weekday(name: &str) -> Option<Weekday> {
    WEEKDAYS.iter().find(|(other, _)| *other == name).map(|(_, day)| *day)
}

fn name_of(weekday: Weekday) -> &'static str {
    WEEKDAYS.iter().find(|(_, day)| *day == weekday).map_or("MO", |(name, _)| name)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
