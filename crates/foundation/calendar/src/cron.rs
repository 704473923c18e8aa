//! Cron expressions with five fields, evaluated in a time zone.

use super::clock::{earliest_time, instant, local, moments};
use chrono::{Datelike, Days, Duration, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use chrono_tz::Tz;
use model::Timestamp;

/// The number of days to search. February 29 falls on the same weekday again within 40 years.
const MOST_DAYS: u64 = 366 * 40 + 2;
/// The last year.
const LAST_YEAR: i32 = 9_999;

/// A cron expression: the set of matching minutes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: Vec<u32>,
    hours: Vec<u32>,
    days: Vec<u32>,
    months: Vec<u32>,
    weekdays: Vec<u32>,
    /// Whether the hour field covers all hours. The expression then follows real time, also through an hour that
    /// occurs twice.
    every_hour: bool,
    /// Whether a day must match both day fields, because one of them is `*`. Otherwise it must match one of them.
    both_days: bool,
}

/// One of the five fields.
struct Part {
    name: &'static str,
    first: u32,
    last: u32,
    names: &'static [&'static str],
}

const PARTS: [Part; 5] = [
    Part { name: "minute", first: 0, last: 59, names: &[] },
    Part { name: "hour", first: 0, last: 23, names: &[] },
    Part { name: "day of the month", first: 1, last: 31, names: &[] },
    Part {
        name: "month",
        first: 1,
        last: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Part {
        name: "day of the week",
        first: 0,
        last: 7,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

impl Part {
    /// Parses a field into its numbers, in order: `*/15`, `1-5`, `mon,wed`.
    fn read(&self, text: &str) -> Result<Vec<u32>, String> {
        let wrong = || format!("has `{text}` as its {}", self.name);
        let mut numbers = Vec::new();
        for item in text.split(',') {
            let (range, step) = match item.split_once('/') {
                Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0).ok_or_else(wrong)?),
                None => (item, 1),
            };
            let (first, last) = match range.split_once('-') {
                _ if range == "*" => (self.first, self.last),
                Some((first, last)) => self.number(first).zip(self.number(last)).ok_or_else(wrong)?,
                None => {
                    let number = self.number(range).ok_or_else(wrong)?;
                    (number, if item.contains('/') { self.last } else { number })
                }
            };
            if first > last {
                return Err(wrong());
            }
            numbers.extend((first..=last).step_by(step));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named {
            Some(place) => u32::try_from(place).ok()? + self.first,
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (self.first..=self.last).contains(&number).then_some(number)
    }
}

impl Cron {
    /// Parses an expression.
    ///
    /// # Errors
    /// The reason why the expression is invalid, as the rest of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let texts: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = texts.as_slice() else {
            return Err(
                "must have five fields: minute, hour, day of the month, month, day of the week".into()
            );
        };
        let [minute, hour, day, month, weekday] = PARTS;
        let mut named = weekday.read(weekdays)?;
        if named.contains(&7) {
            named.insert(0, 0);
        }
        Ok(Self {
            minutes: minute.read(minutes)?,
            hours: hour.read(hours)?,
            days: day.read(days)?,
            months: month.read(months)?,
            weekdays: named,
            every_hour: hours.starts_with('*'),
            both_days: days.starts_with('*') || weekdays.starts_with('*'),
        })
    }

    fn is_on(&self, date: NaiveDate) -> bool {
        let by_day = self.days.contains(&date.day());
        let by_weekday = self.weekdays.contains(&date.weekday().num_days_from_sunday());
        let days = if self.both_days { by_day && by_weekday } else { by_day || by_weekday };
        days && self.months.contains(&date.month())
    }

    /// Returns the local times that match on a day, each once even if clocks are changed on that day.
    fn times(&self, date: NaiveDate) -> Vec<NaiveDateTime> {
        let minutes = |hour: &u32| {
            let hour = *hour;
            self.minutes.iter().filter_map(move |minute| date.and_hms_opt(hour, *minute, 0))
        };
        self.hours.iter().flat_map(minutes).collect()
    }

    /// Returns every matching minute of a day. A minute that occurs twice is returned twice.
    fn walked(&self, date: NaiveDate, zone: Tz) -> Vec<Timestamp> {
        let midnight = |date: NaiveDate| instant(zone, date.and_time(NaiveTime::MIN));
        let end = date.checked_add_days(Days::new(1)).map_or_else(|| midnight(date), midnight);
        let mut at = midnight(date);
        let mut moments = Vec::new();
        while at < end {
            let time = local(zone, at).time();
            if self.minutes.contains(&time.minute()) && self.hours.contains(&time.hour()) {
                moments.push(at);
            }
            at = at.plus(Duration::minutes(1));
        }
        moments
    }

    /// Returns the matching moments from `from` on, in order and without duplicates.
    pub fn moments(&self, from: Timestamp, zone: Tz) -> Box<dyn Iterator<Item = Timestamp> + '_> {
        let begin = if self.every_hour { local(zone, from) } else { earliest_time(zone, from) };
        let days = (0..MOST_DAYS)
            .map_while(move |ahead| begin.date().checked_add_days(Days::new(ahead)))
            .take_while(|date| date.year() <= LAST_YEAR)
            .filter(move |date| self.is_on(*date));
        if self.every_hour {
            Box::new(days.flat_map(move |date| self.walked(date, zone)).filter(move |at| *at >= from))
        } else {
            let times = days.flat_map(move |date| self.times(date));
            Box::new(moments(zone, times).filter(move |at| *at >= from))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments_of(expression: &str, zone: Tz, from: &str, count: usize) -> Vec<String> {
        let cron = Cron::parse(expression).unwrap();
        let found = cron.moments(Timestamp::parse(from).unwrap(), zone).take(count);
        found.map(|at| at.rfc3339().replace(":00.000Z", "Z")).collect()
    }

    #[test]
    fn times_that_are_skipped_come_later_and_in_order() {
        assert_eq!(
            moments_of("10,30 2,3 * * *", Tz::Europe__Madrid, "2026-03-29T00:00:00Z", 3),
            ["2026-03-29T01:10Z", "2026-03-29T01:30Z", "2026-03-30T00:10Z"]
        );
        // In Greenland clocks are put forward from 23:00 to midnight.
        assert_eq!(
            moments_of("30 23 * * sat", Tz::America__Nuuk, "2026-03-29T01:10:00Z", 2),
            ["2026-03-29T01:30Z", "2026-04-05T00:30Z"]
        );
        // Samoa skipped a whole day.
        assert_eq!(
            moments_of("0 9 * * *", Tz::Pacific__Apia, "2011-12-29T19:00:00Z", 3),
            ["2011-12-29T19:00Z", "2011-12-30T19:00Z", "2011-12-31T19:00Z"]
        );
    }

    #[test]
    fn croner_finds_the_same_moments() {
        let golden = include_str!("../tests/golden/cron.tsv");
        for line in golden.lines() {
            let [expression, zone, start, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let cron = Cron::parse(expression).unwrap_or_else(|why| panic!("{expression} {why}"));
            let found = cron.moments(Timestamp::parse(start).unwrap(), zone.parse().unwrap()).take(8);
            let found: Vec<String> = found.map(Timestamp::rfc3339).collect();
            assert_eq!(found.join(","), expected, "{expression} in {zone} from {start}");
        }
    }

    #[test]
    fn rare_days_are_found_and_the_calendar_ends() {
        assert_eq!(moments_of("0 0 29 2 */6", Tz::UTC, "2032-03-01T00:00:00Z", 1), ["2048-02-29T00:00Z"]);
        assert_eq!(moments_of("0 0 30 2 *", Tz::UTC, "2026-01-01T00:00:00Z", 1), Vec::<String>::new());
        assert_eq!(moments_of("0 9 * * *", Tz::UTC, "9999-12-31T10:00:00Z", 1), Vec::<String>::new());
        assert_eq!(moments_of("* * * * *", Tz::UTC, "9999-12-31T23:59:30Z", 1), Vec::<String>::new());
    }
}
