//! Recurrence rules of tasks: a subset of RFC 5545, and their occurrences.
//!
//! A rule is evaluated in local times of its time zone. Only the results are converted to moments
//! ([`calendar::instant`]).

use calendar::{Frequency, Rule as CalendarRule, Until};
use chrono::{Datelike, NaiveDateTime};
use chrono_tz::Tz;

/// The longest rule, in bytes.
pub(crate) const LONGEST: usize = 300;

/// The supported parts of a rule. There are none for the time of day, which is that of the due date.
const PARTS: [&str; 11] = [
    "FREQ",
    "INTERVAL",
    "COUNT",
    "UNTIL",
    "WKST",
    "BYDAY",
    "BYMONTH",
    "BYMONTHDAY",
    "BYYEARDAY",
    "BYWEEKNO",
    "BYSETPOS",
];

/// The longest interval.
const MOST_INTERVAL: u32 = 1_000;
/// The most tasks of a series.
const MOST_TASKS: u32 = 10_000;

/// The years within which tasks can recur.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=2200;

/// A recurrence rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    rule: CalendarRule,
    /// The number of tasks in the series.
    pub(crate) count: Option<i64>,
}

impl Rule {
    /// Parses a rule such as `FREQ=WEEKLY;BYDAY=MO,TH`.
    ///
    /// # Errors
    /// The reason why the rule is invalid, as the rest of a sentence that begins with the name of the parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = without_name(text);
        if text.len() > LONGEST {
            return Err(format!("must have at most {LONGEST} characters"));
        }
        if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return Err("must be in capital letters, such as `FREQ=WEEKLY;BYDAY=MO`".to_owned());
        }
        for part in text.split(';') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name {
                "INTERVAL" if !is_from_one(value, MOST_INTERVAL) => {
                    return Err("must have an INTERVAL from 1 to 1,000".to_owned());
                }
                "COUNT" if !is_from_one(value, MOST_TASKS) => {
                    return Err("must have a COUNT from 1 to 10,000".to_owned());
                }
                _ if name.is_empty() || PARTS.contains(&name) => {}
                _ => {
                    let shown: String = name.chars().take(20).collect();
                    return Err(format!(
                        "cannot have `{shown}`; the parts of a rule are {}",
                        PARTS.join(", ")
                    ));
                }
            }
        }
        let rule = CalendarRule::parse(text)?;
        if rule.frequency < Frequency::Daily {
            return Err("must have one of DAILY, WEEKLY, MONTHLY and YEARLY as its FREQ".to_owned());
        }
        Ok(Self::of(rule))
    }

    /// Parses a stored rule, or returns `None` if it cannot be used.
    pub(crate) fn parse_stored(text: &str) -> Option<Self> {
        CalendarRule::parse_stored(without_name(text)).ok().map(Self::of)
    }

    fn of(rule: CalendarRule) -> Self {
        Self { count: rule.count.map(i64::from), rule }
    }

    /// Returns the local times after `anchor` and from `from` on, of the series that begins at `anchor`.
    pub(crate) fn times(
        &self,
        anchor: NaiveDateTime,
        from: NaiveDateTime,
        zone: Tz,
    ) -> impl Iterator<Item = NaiveDateTime> {
        let until = self.rule.until;
        let is_over = move |at: NaiveDateTime| match until {
            None => false,
            Some(Until::Local(until)) => at > until,
            Some(Until::Moment(until)) => calendar::instant(zone, at) > until,
        };
        let is_within = YEARS.contains(&anchor.year()) && YEARS.contains(&from.year());
        let times = is_within.then(|| self.rule.times(anchor, from)).into_iter().flatten();
        times.filter(move |at| *at > anchor).take_while(move |at| YEARS.contains(&at.year()) && !is_over(*at))
    }

    /// Returns the first local time after `after`, of the series that begins at `anchor`. Returns `None` if the
    /// series has ended.
    pub(crate) fn next(
        &self,
        anchor: NaiveDateTime,
        after: NaiveDateTime,
        zone: Tz,
    ) -> Option<NaiveDateTime> {
        self.times(anchor, after, zone).find(|at| *at > after)
    }

    /// Returns whether any day after the first one matches. `COUNT` and `UNTIL` are ignored.
    pub(crate) fn recurs(&self, first: NaiveDateTime, zone: Tz) -> bool {
        let mut endless = self.clone();
        endless.rule.until = None;
        endless.next(first, first, zone).is_some()
    }
}

fn is_from_one(text: &str, most: u32) -> bool {
    text.parse().is_ok_and(|number: u32| (1..=most).contains(&number))
}

/// Removes the property name `RRULE:`.
fn without_name(text: &str) -> &str {
    text.strip_prefix("RRULE:").unwrap_or(text)
}

#[cfg(test)]
#[path = "recurrence_tests.rs"]
mod tests;
