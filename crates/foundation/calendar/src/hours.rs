//! Hours of a day on the clocks of a time zone: opening hours of a week, and quiet hours.
//!
//! Where clocks go back, hours begin at the first and end at the last of two equal times; where clocks go forward, a time
//! that is skipped is the moment of the change.

use crate::clock::{instant, local};
use chrono::{
    DateTime, Datelike, Days, Duration, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Timelike, Utc, Weekday,
};
use chrono_tz::Tz;
use model::Timestamp;

/// The minutes of a day.
pub const MINUTES_OF_DAY: i64 = 1_440;
const MINUTES_OF_WEEK: i64 = 7 * MINUTES_OF_DAY;
/// The number of days that are searched for the next opening.
const DAYS_AHEAD: u64 = 366;
/// An upper bound for the minutes that clocks skip at once: Samoa left out a day in 2011.
const LONGEST_GAP: i64 = 2 * MINUTES_OF_DAY;

/// Hours that begin on a day of the week, in minutes since midnight. They reach into the next day if `close` is not after
/// `open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayHours {
    /// The day on which they begin.
    pub day: Weekday,
    /// The first minute.
    pub open: i64,
    /// The minute after the last.
    pub close: i64,
}

impl DayHours {
    /// Whether the times are valid: `open` is before the end of the day, and differs from `close`.
    pub fn are_valid(self) -> bool {
        (0..MINUTES_OF_DAY).contains(&self.open) && self.open != self.close
    }

    /// The length in minutes.
    fn length(self) -> i64 {
        let length = self.close - self.open;
        if length > 0 { length } else { length + MINUTES_OF_DAY }
    }

    /// Whether both contain the same minute of a week.
    pub fn overlap(self, other: Self) -> bool {
        let start = |hours: Self| i64::from(hours.day.num_days_from_monday()) * MINUTES_OF_DAY + hours.open;
        // The minutes from the start of one to the start of the other, in a week that wraps around.
        let after = |one: Self, other: Self| (start(other) - start(one)).rem_euclid(MINUTES_OF_WEEK);
        after(self, other) < self.length() || after(other, self) < other.length()
    }

    /// The start and the end of these hours on `date`.
    fn on(self, date: NaiveDate, zone: Tz) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let opens = date.and_time(NaiveTime::MIN).checked_add_signed(Duration::minutes(self.open))?;
        let closes = opens.checked_add_signed(Duration::minutes(self.length()))?;
        let zoned = |local: NaiveDateTime| zone.from_local_datetime(&local);
        let start = zoned(opens).earliest().or_else(|| after_gap(zone, opens))?;
        let end = zoned(closes).latest().or_else(|| after_gap(zone, closes))?;
        Some((start.to_utc(), end.to_utc())).filter(|(start, end)| start < end)
    }
}

/// The moment at which clocks skip `local`.
fn after_gap(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Tz>> {
    (1..=LONGEST_GAP).find_map(|minutes| {
        let later = local.checked_add_signed(Duration::minutes(minutes))?;
        zone.from_local_datetime(&later).earliest()
    })
}

/// A week of opening hours.
#[derive(Debug, Clone)]
pub struct OpeningHours<'a, Closed> {
    /// The time zone.
    pub zone: Tz,
    /// The hours.
    pub hours: &'a [DayHours],
    /// Tells the days without hours.
    pub is_holiday: Closed,
}

/// Whether hours contain a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// They do.
    Open,
    /// They do not, and begin next at this moment; `None` if they do not within a year.
    Closed(Option<Timestamp>),
}

impl<Closed: Fn(NaiveDate) -> bool> OpeningHours<'_, Closed> {
    /// Returns whether the hours contain a moment.
    pub fn opening(&self, at: Timestamp) -> Opening {
        let Some(at) = DateTime::from_timestamp_millis(at.millis()) else { return Opening::Closed(None) };
        // Hours of the day before may reach past midnight. Where clocks skipped a day, that is two dates ago.
        let first = at.with_timezone(&self.zone).date_naive().checked_sub_days(Days::new(2));
        let Some(first) = first else { return Opening::Closed(None) };
        let mut next: Option<DateTime<Utc>> = None;
        for ahead in 0..DAYS_AHEAD + 3 {
            let Some(date) = first.checked_add_days(Days::new(ahead)) else { break };
            for (start, end) in self.on(date) {
                if start <= at && at < end {
                    return Opening::Open;
                }
                if start > at {
                    next = Some(next.map_or(start, |next| next.min(start)));
                }
            }
            // Hours of a later day begin later.
            if next.is_some() {
                break;
            }
        }
        Opening::Closed(next.map(|next| Timestamp::from_millis(next.timestamp_millis())))
    }

    /// The start and the end of all hours that begin on `date`.
    fn on(&self, date: NaiveDate) -> impl Iterator<Item = (DateTime<Utc>, DateTime<Utc>)> {
        let is_holiday = (self.is_holiday)(date);
        let hours = self.hours.iter().filter(move |hours| !is_holiday && hours.day == date.weekday());
        hours.filter_map(move |hours| hours.on(date, self.zone))
    }
}

/// Hours of every day, in minutes since midnight. They reach over midnight if `to` is not after `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// The first minute.
    pub from: u32,
    /// The minute after the last.
    pub to: u32,
}

impl QuietHours {
    /// Returns their end, if they contain a moment.
    pub fn until(self, zone: Tz, now: Timestamp) -> Option<Timestamp> {
        let time = local(zone, now);
        let minute = time.hour() * 60 + time.minute();
        let (from, to) = (self.from, self.to);
        let is_quiet = if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to };
        if !is_quiet {
            return None;
        }
        let day = if minute < to { time.date() } else { time.date().checked_add_days(Days::new(1))? };
        let end = day.and_hms_opt(to / 60, to % 60, 0)?;
        // Where clocks are put back, the same time comes twice.
        Some(instant(zone, end)).filter(|end| *end > now).or(Some(now.plus_seconds(3_600)))
    }
}

#[cfg(test)]
#[path = "hours_tests.rs"]
mod tests;
