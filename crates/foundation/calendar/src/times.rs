//! The local times of a rule, period by period. A period is a day, week, month or year, or a step of hours, minutes
//! or seconds.
//!
//! Periods are numbered from the start of the series, so evaluation can begin at any later time and gives the same
//! times.

use super::days::week_begin;
use super::rule::{Frequency, Rule};
use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike};
use std::ops::Range;

/// Returns how many periods without a time to search before giving up. The calendar repeats after 400 years, so this
/// covers every day, week, month and year. For steps of hours and less, the search skips days and hours that cannot
/// match.
fn most_periods(frequency: Frequency) -> usize {
    match frequency {
        Frequency::Yearly => 400,
        Frequency::Monthly => 4_800,
        Frequency::Weekly => 20_871,
        _ => 146_097,
    }
}

/// The last year.
const LAST_YEAR: i32 = 9_999;

impl Rule {
    /// Returns the local times of the series that begins at `start`, from `from` on, in order and in whole seconds.
    /// Ignores `COUNT` and `UNTIL`.
    pub fn times(&self, start: NaiveDateTime, from: NaiveDateTime) -> Times {
        let start = start.with_nanosecond(0).unwrap_or(start);
        let rule = self.clone().completed(start);
        let mut times = Times {
            rule: sorted(rule),
            start,
            from: from.with_nanosecond(0).unwrap_or(from).max(start),
            period: Some(0),
            set: Set::default(),
            places: Vec::new().into_iter().chain(0..0),
        };
        times.period = times.number_of(times.from);
        times
    }
}

/// Sorts the times of day. [`Set::at`] relies on it.
fn sorted(mut rule: Rule) -> Rule {
    for values in [&mut rule.hours, &mut rule.minutes, &mut rule.seconds] {
        values.sort_unstable();
    }
    rule
}

/// The iterator of a rule's local times, created by [`Rule::times`].
#[derive(Debug, Clone)]
pub struct Times {
    rule: Rule,
    start: NaiveDateTime,
    from: NaiveDateTime,
    /// The number of the next period, or `None` at the end.
    period: Option<i64>,
    /// The times of the current period.
    set: Set,
    /// The remaining positions in `set`.
    places: std::iter::Chain<std::vec::IntoIter<usize>, Range<usize>>,
}

/// The times of a period: each combination of its days, hours, minutes and seconds. They are computed by position,
/// because a year can have 31 million of them.
#[derive(Debug, Clone, Default)]
struct Set {
    days: Vec<NaiveDate>,
    hours: Vec<i32>,
    minutes: Vec<i32>,
    seconds: Vec<i32>,
}

impl Set {
    fn len(&self) -> usize {
        self.days.len() * self.hours.len() * self.minutes.len() * self.seconds.len()
    }

    /// Returns the time at a position, in order.
    fn at(&self, place: usize) -> Option<NaiveDateTime> {
        let part = |values: &[i32], place: usize| -> Option<(u32, usize)> {
            let value = values.get(place % values.len().max(1))?;
            Some(((*value).try_into().ok()?, place / values.len().max(1)))
        };
        let (second, place) = part(&self.seconds, place)?;
        let (minute, place) = part(&self.minutes, place)?;
        let (hour, place) = part(&self.hours, place)?;
        self.days.get(place)?.and_hms_opt(hour, minute, second)
    }

    /// Returns the first position with a time that is not before `from`. A binary search.
    fn place_of(&self, from: NaiveDateTime) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.at(middle).is_some_and(|at| at < from) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// A period of a rule: a number of days, or a step of hours, minutes or seconds.
#[derive(Debug, Clone, Copy)]
struct Period {
    begin: NaiveDateTime,
    days: u64,
}

impl Times {
    /// Returns the seconds between the starts of two periods, or `None` for periods longer than a day.
    fn step(&self) -> Option<i64> {
        let unit = match self.rule.frequency {
            Frequency::Daily => 86_400,
            Frequency::Hourly => 3_600,
            Frequency::Minutely => 60,
            Frequency::Secondly => 1,
            _ => return None,
        };
        Some(unit * i64::from(self.rule.interval))
    }

    /// Returns the start of the first period, for periods of at most a day.
    fn begin(&self) -> NaiveDateTime {
        let (date, time) = (self.start.date(), self.start.time());
        let begin = match self.rule.frequency {
            Frequency::Secondly => Some(time),
            Frequency::Minutely => time.with_second(0),
            Frequency::Hourly => NaiveTime::from_hms_opt(time.hour(), 0, 0),
            _ => Some(NaiveTime::MIN),
        };
        date.and_time(begin.unwrap_or(time))
    }

    /// Returns the number of the period that contains a time, or of the last period before it.
    fn number_of(&self, time: NaiveDateTime) -> Option<i64> {
        let interval = i64::from(self.rule.interval);
        let months = |date: NaiveDateTime| i64::from(date.year()) * 12 + i64::from(date.month0());
        let number = match (self.rule.frequency, self.step()) {
            (_, Some(step)) => (time - self.begin()).num_seconds() / step,
            (Frequency::Yearly, _) => i64::from(time.year() - self.start.year()) / interval,
            (Frequency::Monthly, _) => (months(time) - months(self.start)) / interval,
            _ => {
                let week = |at: NaiveDateTime| week_begin(at.date(), self.rule.week_start);
                (week(time)? - week(self.start)?).num_days() / 7 / interval
            }
        };
        Some(number)
    }

    /// Returns the period with a number, or `None` after the last year.
    fn period(&self, number: i64) -> Option<Period> {
        let steps = number.checked_mul(self.rule.interval.into())?;
        let year = i64::from(self.start.year());
        let first_of = |year: i64, month0: i64| {
            NaiveDate::from_ymd_opt(year.try_into().ok()?, u32::try_from(month0).ok()? + 1, 1)
        };
        let (date, days) = match (self.rule.frequency, self.step()) {
            (Frequency::Yearly, _) => {
                let first = first_of(year.checked_add(steps)?, 0)?;
                (first, if first.leap_year() { 366 } else { 365 })
            }
            (Frequency::Monthly, _) => {
                let month = i64::from(self.start.month0()).checked_add(steps)?;
                let first = first_of(year.checked_add(month / 12)?, month % 12)?;
                (first, first.num_days_in_month().into())
            }
            (_, None) => {
                let days = Days::new(u64::try_from(steps.checked_mul(7)?).ok()?);
                (week_begin(self.start.date(), self.rule.week_start)?.checked_add_days(days)?, 7)
            }
            (_, Some(step)) => {
                let since = TimeDelta::try_seconds(number.checked_mul(step)?)?;
                let begin = self.begin().checked_add_signed(since)?;
                return Some(Period { begin, days: 1 }).filter(|_| begin.year() <= LAST_YEAR);
            }
        };
        Some(Period { begin: date.and_time(NaiveTime::MIN), days }).filter(|_| date.year() <= LAST_YEAR)
    }

    /// Returns the times of a period.
    fn set_of(&self, period: Period) -> Set {
        let Rule { frequency, hours, minutes, seconds, .. } = &self.rule;
        let all = (0..period.days).filter_map(|day| period.begin.date().checked_add_days(Days::new(day)));
        // A step has a single hour, minute or second, which must match the rule's list if there is one.
        let part = |named: &[i32], is_one: bool, of_step: u32| {
            let of_step = of_step as i32;
            match is_one {
                false => named.to_vec(),
                true if named.is_empty() || named.contains(&of_step) => vec![of_step],
                true => Vec::new(),
            }
        };
        Set {
            days: all.filter(|date| self.rule.has_day(*date)).collect(),
            hours: part(hours, *frequency <= Frequency::Hourly, period.begin.hour()),
            minutes: part(minutes, *frequency <= Frequency::Minutely, period.begin.minute()),
            seconds: part(seconds, *frequency == Frequency::Secondly, period.begin.second()),
        }
    }

    /// Returns the earliest later time at which a step can match, or `None` if this step can match.
    fn beyond(&self, at: NaiveDateTime) -> Option<NaiveDateTime> {
        let date = at.date();
        let names = |named: &[i32], part: u32| named.is_empty() || named.contains(&(part as i32));
        if !self.rule.has_month(date) {
            Some(date.with_day(1)?.checked_add_months(Months::new(1))?.and_time(NaiveTime::MIN))
        } else if !self.rule.has_day(date) {
            Some(date.succ_opt()?.and_time(NaiveTime::MIN))
        } else if self.rule.frequency < Frequency::Hourly && !names(&self.rule.hours, at.hour()) {
            date.and_hms_opt(at.hour(), 0, 0)?.checked_add_signed(TimeDelta::hours(1))
        } else if self.rule.frequency < Frequency::Minutely && !names(&self.rule.minutes, at.minute()) {
            at.with_second(0)?.checked_add_signed(TimeDelta::minutes(1))
        } else {
            None
        }
    }

    /// Returns the number of the period to examine next, and whether `period` itself can have a time. Steps skip
    /// months, days and hours that do not match.
    fn number_after(&self, number: i64, period: Period) -> (Option<i64>, bool) {
        let next = number.checked_add(1);
        let Some(step) = self.step() else { return (next, true) };
        let Some(beyond) = self.beyond(period.begin) else { return (next, true) };
        let seconds = (beyond - self.begin()).num_seconds();
        (next.max(Some(seconds / step + i64::from(seconds % step != 0))), false)
    }

    /// Advances to the next period with a time. Returns `None` at the end.
    fn go_on(&mut self) -> Option<()> {
        // One more, because the first period may have begun before `from`.
        for _ in 0..=most_periods(self.rule.frequency) {
            let number = self.period?;
            let Some(period) = self.period(number) else { break };
            let (next, is_possible) = self.number_after(number, period);
            self.period = next;
            if !is_possible {
                continue;
            }
            self.set = self.set_of(period);
            let (length, first) = (self.set.len(), self.set.place_of(self.from));
            // Without BYSETPOS all times of the period count, from the first that is not before `from`.
            if self.rule.places.is_empty() {
                self.places = Vec::new().into_iter().chain(first..length);
            } else {
                let mut named: Vec<usize> =
                    self.rule.places.iter().filter_map(|place| place_in(*place, length)).collect();
                named.retain(|place| *place >= first);
                named.sort_unstable();
                named.dedup();
                self.places = named.into_iter().chain(0..0);
            }
            if self.places.size_hint().0 > 0 {
                return Some(());
            }
        }
        self.period = None;
        None
    }
}

/// Converts a number of `BYSETPOS` to a position. Negative numbers count from the end.
fn place_in(number: i32, length: usize) -> Option<usize> {
    let count = usize::try_from(number.unsigned_abs()).ok()?;
    let place = if number > 0 { count.checked_sub(1)? } else { length.checked_sub(count)? };
    (place < length).then_some(place)
}

impl Iterator for Times {
    type Item = NaiveDateTime;

    fn next(&mut self) -> Option<NaiveDateTime> {
        loop {
            if let Some(place) = self.places.next() {
                return self.set.at(place).filter(|at| at.year() <= LAST_YEAR);
            }
            self.go_on()?;
        }
    }
}

#[cfg(test)]
#[path = "times_tests.rs"]
mod tests;
