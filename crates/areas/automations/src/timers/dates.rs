//! When a date that a record has fires, and which dates can fire within a span of time.

use crate::triggers::timers::{DateField, DateZone, Offset};
use calendar::{instant, local};
use chrono::{Days, Duration, NaiveDate, NaiveTime, Timelike};
use chrono_tz::Tz;
use model::{Error, Result, Timestamp};

/// The time of day of a date that has none, if the settings name none.
const MORNING: NaiveTime = match NaiveTime::from_hms_opt(9, 0, 0) {
    Some(time) => time,
    None => NaiveTime::MIN,
};
/// The largest difference between the clocks of two time zones is 26 hours, and a change of clocks moves a time by at most
/// a day.
const SLACK_DAYS: i64 = 3;
/// The steps of time zones, in milliseconds.
const ZONE_STEP: i64 = 15 * 60_000;
/// A minute, in milliseconds.
const MINUTE: i64 = 60_000;

/// A value of a field that has a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateValue {
    /// A day.
    Day(NaiveDate),
    /// A moment.
    Moment(Timestamp),
}

impl DateValue {
    /// Reads a stored value.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(Self::Day);
        Timestamp::parse(text).map(Self::Moment).or_else(day)
    }
}

/// When dates fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DateRule {
    days: i64,
    later: Duration,
    at: Option<NaiveTime>,
    /// Whether the time is that of a contact's clock.
    by_contact: bool,
}

impl DateRule {
    /// Reads the settings of `date_field`.
    ///
    /// # Errors
    /// `validation_error` about `trigger.config.at`.
    pub(crate) fn of(config: &DateField) -> Result<Self> {
        let time = |text: &String| {
            NaiveTime::parse_from_str(text, "%H:%M")
                .map_err(|_| Error::invalid("trigger.config.at", "must be a time of day such as `09:00`"))
        };
        let at = config.at.as_ref().map(time).transpose()?;
        Ok(Self { at, by_contact: config.timezone == DateZone::Contact, ..Self::shifted(&config.offset) })
    }

    /// Fires so long before or after moments.
    pub(crate) fn shifted(offset: &Offset) -> Self {
        let minutes = offset.hours.saturating_mul(60).saturating_add(offset.minutes);
        let later = Duration::try_minutes(minutes).unwrap_or_default();
        Self { days: offset.days, later, at: None, by_contact: false }
    }

    /// Returns whether the clock is that of a contact.
    pub(crate) fn is_by_contact(&self) -> bool {
        self.by_contact
    }

    /// Returns when a value fires by the clock of a time zone.
    pub(crate) fn moment(&self, value: DateValue, zone: Tz) -> Timestamp {
        let (day, time) = match value {
            DateValue::Day(day) => (day, MORNING),
            DateValue::Moment(at) if self.days == 0 && self.at.is_none() => return at.plus(self.later),
            DateValue::Moment(at) => {
                let shown = local(zone, at);
                (shown.date(), shown.time())
            }
        };
        instant(zone, shifted(day, self.days).and_time(self.at.unwrap_or(time))).plus(self.later)
    }

    /// Returns days between which all values are that can fire between two moments, wherever the clock is.
    pub(crate) fn candidates(&self, since: Timestamp, until: Timestamp) -> (NaiveDate, NaiveDate) {
        let day =
            |at: Timestamp, slack: i64| shifted(at.plus(-self.later).day(), slack.saturating_sub(self.days));
        (day(since, -SLACK_DAYS), day(until, SLACK_DAYS))
    }

    /// Returns the first moment after `now` at which a value can fire. `of_days` says that all values are days.
    pub(crate) fn next_look(&self, of_days: bool, zone: Tz, now: Timestamp) -> Timestamp {
        let next = |step: i64, shift: i64| {
            let steps = (now.millis() - shift).div_euclid(step) + 1;
            Timestamp::from_millis(steps * step + shift)
        };
        let time = match self.at {
            Some(time) => time,
            None if of_days => MORNING,
            None => return next(MINUTE, 0),
        };
        if self.by_contact {
            // The clocks of all time zones show the time at a multiple of 15 minutes from the time in UTC.
            let shift = (i64::from(time.minute()) + self.later.num_minutes()).rem_euclid(15);
            return next(ZONE_STEP, shift * MINUTE);
        }
        let today = local(zone, now.plus(-self.later)).date();
        let times =
            (-1..=2).map(|ahead| instant(zone, shifted(today, ahead).and_time(time)).plus(self.later));
        times.filter(|at| *at > now).min().unwrap_or_else(|| next(MINUTE, 0))
    }
}

fn shifted(day: NaiveDate, days: i64) -> NaiveDate {
    let by = Days::new(days.unsigned_abs());
    if days < 0 { day.checked_sub_days(by) } else { day.checked_add_days(by) }.unwrap_or(day)
}

#[cfg(test)]
#[path = "dates_tests.rs"]
mod tests;
