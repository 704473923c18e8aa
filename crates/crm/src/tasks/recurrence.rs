//! Recurrence rules (RFC 5545): when the next task of a series is due.
//!
//! A rule is followed on the clocks of its time zone: it gives days and times of day, which become moments last. A time that
//! clocks skip is taken as long after the change as it would have been (RFC 5545, 3.3.5), and of two equal times the first.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use rrule::{RRule, Unvalidated};

/// The longest rule, in bytes.
pub(super) const LONGEST: usize = 300;

/// The parts that a rule of tasks can have. The time of day is that of the due date, so rules have none.
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

/// Years within which tasks can recur.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=2200;

/// A recurrence rule.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    rule: RRule<Unvalidated>,
    /// The number of tasks of the series.
    pub(super) count: Option<i64>,
    until: Option<Until>,
}

/// When a rule ends.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// With this day and time of day in the time zone of the rule.
    Local(NaiveDateTime),
    /// At this moment.
    Moment(DateTime<Utc>),
}

impl Rule {
    /// Reads a rule such as `FREQ=WEEKLY;BYDAY=MO,TH`.
    ///
    /// # Errors
    /// What is wrong with it, as the rest of a sentence that begins with its name.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix("RRULE:").unwrap_or(text);
        if text.len() > LONGEST {
            return Err(format!("must have at most {LONGEST} characters"));
        }
        let (mut kept, mut count, mut until) = (Vec::new(), None, None);
        let mut seen = Vec::new();
        for part in text.split(';') {
            let (name, value) =
                part.split_once('=').ok_or("must be a rule such as `FREQ=WEEKLY;BYDAY=MO`")?;
            if !PARTS.contains(&name) {
                let shown: String = name.chars().take(20).collect();
                return Err(format!("cannot have `{shown}`; the parts of a rule are {}", PARTS.join(", ")));
            }
            if seen.contains(&name) {
                return Err(format!("must have {name} once"));
            }
            seen.push(name);
            let is_plain =
                |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b",+-".contains(&byte);
            if value.is_empty() || !value.bytes().all(is_plain) {
                return Err(format!("has no valid value for {name}"));
            }
            match name {
                "COUNT" => {
                    let parsed = value.parse().ok().filter(|count| (1..=10_000).contains(count));
                    count = Some(parsed.ok_or("must have a COUNT from 1 to 10,000")?);
                }
                "UNTIL" => {
                    let parsed = Until::parse(value);
                    until = Some(parsed.ok_or("must have an UNTIL such as 20271231 or 20271231T235959Z")?);
                }
                "INTERVAL" => {
                    let parsed = value.parse().ok().filter(|count: &u16| (1..=1_000).contains(count));
                    parsed.ok_or("must have an INTERVAL from 1 to 1,000")?;
                    kept.push(part);
                }
                "FREQ" if !["DAILY", "WEEKLY", "MONTHLY", "YEARLY"].contains(&value) => {
                    return Err("must have one of DAILY, WEEKLY, MONTHLY and YEARLY as its FREQ".to_owned());
                }
                _ => kept.push(part),
            }
        }
        if !seen.contains(&"FREQ") {
            return Err("must have a FREQ, such as `FREQ=DAILY`".to_owned());
        }
        if count.is_some() && until.is_some() {
            return Err("must have either COUNT or UNTIL".to_owned());
        }
        let rule: RRule<Unvalidated> =
            kept.join(";").parse().map_err(|error| format!("is not a recurrence rule: {error}"))?;
        // Whether its parts go together does not depend on when it begins.
        let some_day =
            NaiveDate::from_ymd_opt(2026, 1, 1).unwrap_or_default().and_hms_opt(9, 0, 0).unwrap_or_default();
        rule.clone()
            .validate(rrule::Tz::UTC.from_utc_datetime(&some_day))
            .map_err(|error| format!("is not a recurrence rule: {error}"))?;
        Ok(Self { rule, count, until })
    }

    /// The first time after `after` of a series that has `anchor` as one of its times, in the time zone; `None` where the
    /// series ends.
    pub(super) fn next(
        &self,
        anchor: NaiveDateTime,
        after: NaiveDateTime,
        zone: Tz,
    ) -> Option<NaiveDateTime> {
        if !YEARS.contains(&anchor.year()) || !YEARS.contains(&after.year()) {
            return None;
        }
        let set = self.rule.clone().build(rrule::Tz::UTC.from_utc_datetime(&anchor)).ok()?;
        // Limited, because there are rules that no day fits.
        let next = set.limit().into_iter().map(|at| at.naive_utc()).find(|at| *at > after && *at > anchor)?;
        let is_over = match self.until {
            None => false,
            Some(Until::Local(until)) => next > until,
            Some(Until::Moment(until)) => moment(zone, next)? > until,
        };
        (!is_over && YEARS.contains(&next.year())).then_some(next)
    }
}

impl Rule {
    /// Whether any day fits it after a first one. When the series ends does not matter.
    pub(super) fn recurs(&self, first: NaiveDateTime, zone: Tz) -> bool {
        Self { until: None, ..self.clone() }.next(first, first, zone).is_some()
    }
}

impl Until {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(day) = NaiveDate::parse_from_str(text, "%Y%m%d") {
            return day.and_hms_opt(23, 59, 59).map(Self::Local);
        }
        let local = |text: &str| NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S").ok();
        match text.strip_suffix('Z') {
            Some(utc) => local(utc).map(|utc| Self::Moment(utc.and_utc())),
            None => local(text).map(Self::Local),
        }
    }
}

/// The moment at which clocks of a time zone show a day and a time of day.
pub(super) fn moment(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Utc>> {
    if let Some(found) = zone.from_local_datetime(&local).earliest() {
        return Some(found.to_utc());
    }
    // Clocks skip it: it is read as they stood before. No change has skipped more than a day.
    let before = zone.from_local_datetime(&local.checked_sub_signed(TimeDelta::hours(25))?).latest()?;
    Some((local - before.offset().fix()).and_utc())
}

#[cfg(test)]
#[path = "recurrence_tests.rs"]
mod tests;
