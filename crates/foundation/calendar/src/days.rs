//! The days that match a rule.

use super::rule::{ByDay, Rule};
use chrono::{Datelike, Days, NaiveDate, Weekday};

impl Rule {
    /// Returns whether a day matches all parts of the rule. RFC 5545 has parts that expand a period and parts that
    /// limit it. Both become the same test, because each day of a period is tested.
    pub(crate) fn has_day(&self, date: NaiveDate) -> bool {
        self.has_month(date)
            && is_among(&self.month_days, date.day() as i32, date.num_days_in_month().into())
            && is_among(&self.year_days, date.ordinal() as i32, days_of_year(date.year()))
            && (self.weekdays.is_empty() || self.weekdays.iter().any(|day| self.is_weekday(*day, date)))
            && (self.weeks.is_empty() || self.has_week(date))
    }

    pub(crate) fn has_month(&self, date: NaiveDate) -> bool {
        self.months.is_empty() || self.months.contains(&(date.month() as i32))
    }

    fn is_weekday(&self, day: ByDay, date: NaiveDate) -> bool {
        if day.weekday != date.weekday() {
            return false;
        }
        let Some(number) = day.number else { return true };
        let (place, length) = if self.numbers_within_month() {
            (date.day() as i32, i32::from(date.num_days_in_month()))
        } else {
            (date.ordinal() as i32, days_of_year(date.year()))
        };
        number == (place - 1) / 7 + 1 || -number == (length - place) / 7 + 1
    }

    /// Returns whether a day is in one of the weeks of `BYWEEKNO`. A week belongs to the year of its fourth day.
    fn has_week(&self, date: NaiveDate) -> bool {
        let fourth = week_begin(date, self.week_start).and_then(|first| first.checked_add_days(Days::new(3)));
        let Some(fourth) = fourth else { return false };
        let place = fourth.ordinal0() as i32;
        let weeks = (days_of_year(fourth.year()) - 1 - place % 7) / 7 + 1;
        is_among(&self.weeks, place / 7 + 1, weeks)
    }
}

/// Returns the first day of the week that contains a day.
pub(crate) fn week_begin(date: NaiveDate, week_start: Weekday) -> Option<NaiveDate> {
    date.checked_sub_days(Days::new(date.weekday().days_since(week_start).into()))
}

fn days_of_year(year: i32) -> i32 {
    if NaiveDate::from_ymd_opt(year, 1, 1).is_some_and(|first| first.leap_year()) { 366 } else { 365 }
}

/// Returns whether `named` contains a number, counted from the start or the end of `of` numbers. An empty list
/// contains all.
fn is_among(named: &[i32], number: i32, of: i32) -> bool {
    named.is_empty() || named.contains(&number) || named.contains(&(number - of - 1))
}
