//! The slots of a schedule: the moments that a cron expression or an interval gives.
//!
//! A slot follows from the rule alone. The next one is looked for from the present moment, never from the last firing, so
//! a slot that was missed moves no later one.

use crate::triggers::timers::{CatchUp, IntervalUnit, Schedule};
use calendar::{Cron, Rule, Series};
use chrono::Duration;
use chrono_tz::Tz;
use model::{Error, Result, Timestamp};

/// The parameter of an invalid cron expression.
pub(crate) const CRON: &str = "trigger.config.cron";
/// The parameter of an invalid time zone.
pub(crate) const TIMEZONE: &str = "trigger.config.timezone";
/// The parameter of an invalid interval.
const EVERY: &str = "trigger.config.every";
/// A slot that fires at most this many seconds late was not missed.
const ON_TIME_SECONDS: i64 = 60;
/// The most slots that `catch_up: all` makes up for.
pub(crate) const MOST_MISSED: usize = 10;

/// The slots of a schedule.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Series);

impl Slots {
    /// Reads a schedule. `business` is the time zone of a schedule that names none, and an interval counts from `anchor`.
    ///
    /// # Errors
    /// `validation_error` with the parameter below `trigger.config`.
    pub(crate) fn of(config: &Schedule, business: Tz, anchor: Timestamp) -> Result<Self> {
        let zone = match &config.timezone {
            None => business,
            Some(name) => zone(name)?,
        };
        match (&config.cron, &config.every) {
            (Some(text), None) => {
                let cron = Cron::parse(text).map_err(|why| Error::invalid(CRON, why))?;
                Ok(Self(Series::of_cron(cron, zone)))
            }
            (None, Some(every)) => {
                let frequency = match every.unit {
                    IntervalUnit::Minutes => "MINUTELY",
                    IntervalUnit::Hours => "HOURLY",
                    IntervalUnit::Days => "DAILY",
                    IntervalUnit::Weeks => "WEEKLY",
                };
                let rule = Rule::parse(&format!("FREQ={frequency};INTERVAL={}", every.n))
                    .map_err(|why| Error::invalid(EVERY, why))?;
                let minute = anchor.millis().div_euclid(60_000) * 60_000;
                Ok(Self(Series::of_rule(rule, zone, Timestamp::from_millis(minute))))
            }
            (Some(_), Some(_)) => Err(Error::invalid(EVERY, "must not be given together with `cron`")),
            (None, None) => Err(Error::invalid(CRON, "must be given, or `every`")),
        }
    }

    /// Rejects a schedule without slots after `now`.
    ///
    /// # Errors
    /// `validation_error` about `trigger.config.cron`.
    pub(crate) fn refuse_empty(&self, now: Timestamp) -> Result<()> {
        match self.next(now) {
            Some(_) => Ok(()),
            None => Err(Error::invalid(CRON, "must match a moment in the next 40 years")),
        }
    }

    /// Returns the first slot after a moment.
    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.0.moments(after.plus(Duration::milliseconds(1))).next()
    }

    /// Returns whether a moment is a slot.
    pub(crate) fn has(&self, at: Timestamp) -> bool {
        self.0.moments(at).next() == Some(at)
    }

    /// Returns the last slots between two moments, both included: at most `most` of them, in order.
    pub(crate) fn last(&self, from: Timestamp, until: Timestamp, most: usize) -> Vec<Timestamp> {
        // The search goes back further each time, because slots can only be enumerated forward, and after a long downtime
        // there may be very many of them.
        let mut back = Duration::minutes(i64::try_from(most).unwrap_or(1));
        loop {
            let begin = until.plus(-back).max(from);
            let mut slots: Vec<_> = self.0.moments(begin).take_while(|at| *at <= until).collect();
            if begin == from || slots.len() >= most {
                return slots.split_off(slots.len().saturating_sub(most));
            }
            back = back * 4;
        }
    }

    /// Returns the slots from `slot` until `now` that fire now, in order: the one that is due, and those that were missed
    /// as far as `catch_up` makes up for them.
    pub(crate) fn due(&self, slot: Timestamp, now: Timestamp, catch_up: CatchUp) -> Vec<Timestamp> {
        let most = if catch_up == CatchUp::All { MOST_MISSED } else { 1 };
        let mut due = self.last(slot, now, most);
        if catch_up == CatchUp::None {
            due.retain(|at| at.plus_seconds(ON_TIME_SECONDS) >= now);
        }
        due
    }
}

/// Reads the name of a time zone.
///
/// # Errors
/// `validation_error` about `trigger.config.timezone`.
pub(crate) fn zone(name: &str) -> Result<Tz> {
    name.parse().map_err(|_| Error::invalid(TIMEZONE, "must be an IANA time zone such as `Europe/Madrid`"))
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
