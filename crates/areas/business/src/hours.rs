//! Opening hours: whether a business is open at a moment, and when it opens next.
//!
//! Hours are local times in the business's time zone. When clocks go back, hours begin at the first and end at the
//! last of two equal times. When clocks go forward, a skipped time is the moment of the change.

use crate::model::{Holiday, OpeningHours, Weekday};
use crate::time_of_day::MINUTES_OF_DAY;
use chrono::{DateTime, Datelike, Days, Duration, NaiveDate, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use model::Timestamp;
use ports::Opening;

const MINUTES_OF_WEEK: i64 = 7 * MINUTES_OF_DAY;
/// The number of days searched for the next opening.
const DAYS_AHEAD: u64 = 366;
/// An upper bound of the minutes that clocks skip at once: Samoa skipped a day in 2011.
const LONGEST_GAP: i64 = 2 * MINUTES_OF_DAY;

impl Weekday {
    /// Returns the number of the day, from 0 for Monday.
    fn number(self) -> i64 {
        Self::ALL.iter().zip(0..).find(|(day, _)| **day == self).map_or(0, |(_, number)| number)
    }
}

impl OpeningHours {
    /// Returns whether the times are valid: `open` is before the end of the day, and differs from `close`.
    pub(super) fn are_sound(self) -> bool {
        self.open.minutes() < MINUTES_OF_DAY && self.open != self.close
    }

    /// Returns the length in minutes.
    fn length(self) -> i64 {
        let length = self.close.minutes() - self.open.minutes();
        if length > 0 { length } else { length + MINUTES_OF_DAY }
    }

    /// Returns whether both contain the same minute of a week.
    pub(super) fn overlap(self, other: Self) -> bool {
        let start = |hours: Self| hours.day.number() * MINUTES_OF_DAY + hours.open.minutes();
        // The minutes from the start of one to the start of the other, in a week that wraps around.
        let after = |one: Self, other: Self| (start(other) - start(one)).rem_euclid(MINUTES_OF_WEEK);
        after(self, other) < self.length() || after(other, self) < other.length()
    }

    /// Returns the start and the end of these hours on `date`.
    fn on(self, date: NaiveDate, zone: Tz) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let midnight = date.and_time(chrono::NaiveTime::MIN);
        let opens = midnight.checked_add_signed(Duration::minutes(self.open.minutes()))?;
        let closes = opens.checked_add_signed(Duration::minutes(self.length()))?;
        let zoned = |local: NaiveDateTime| zone.from_local_datetime(&local);
        let start = zoned(opens).earliest().or_else(|| after_gap(zone, opens))?;
        let end = zoned(closes).latest().or_else(|| after_gap(zone, closes))?;
        Some((start.to_utc(), end.to_utc())).filter(|(start, end)| start < end)
    }
}

/// Returns the moment of the change that skips `local`.
fn after_gap(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Tz>> {
    (1..=LONGEST_GAP).find_map(|minutes| {
        let later = local.checked_add_signed(Duration::minutes(minutes))?;
        zone.from_local_datetime(&later).earliest()
    })
}

/// The opening hours of a business.
#[derive(Debug, Clone, Copy)]
pub struct Week<'a> {
    /// The time zone.
    pub zone: Tz,
    /// The hours of a week.
    pub hours: &'a [OpeningHours],
    /// The days without hours.
    pub holidays: &'a [Holiday],
}

impl Week<'_> {
    /// Returns whether the business is open at a moment, or `None` if it has no hours.
    pub fn opening(&self, at: Timestamp) -> Option<Opening> {
        if self.hours.is_empty() {
            return None;
        }
        let Some(at) = DateTime::from_timestamp_millis(at.millis()) else {
            return Some(Opening::Closed(None));
        };
        // Hours of the previous day may extend past midnight. If the clocks skipped a day, the previous day is two
        // dates ago.
        let first = at.with_timezone(&self.zone).date_naive().checked_sub_days(Days::new(2));
        let Some(first) = first else { return Some(Opening::Closed(None)) };
        let mut next: Option<DateTime<Utc>> = None;
        for ahead in 0..DAYS_AHEAD + 3 {
            let Some(date) = first.checked_add_days(Days::new(ahead)) else { break };
            for (start, end) in self.on(date) {
                if start <= at && at < end {
                    return Some(Opening::Open);
                }
                if start > at {
                    next = Some(next.map_or(start, |next| next.min(start)));
                }
            }
            // Hours of later days begin later, so this is the next opening.
            if next.is_some() {
                break;
            }
        }
        Some(Opening::Closed(next.map(|next| Timestamp::from_millis(next.timestamp_millis()))))
    }

    /// Returns the start and the end of all hours that begin on `date`.
    fn on(&self, date: NaiveDate) -> impl Iterator<Item = (DateTime<Utc>, DateTime<Utc>)> {
        let day = i64::from(date.weekday().num_days_from_monday());
        let is_holiday = self.holidays.iter().any(|holiday| holiday.is_on(date));
        let hours = self.hours.iter().filter(move |hours| !is_holiday && hours.day.number() == day);
        hours.filter_map(move |hours| hours.on(date, self.zone))
    }
}

impl Holiday {
    fn is_on(&self, date: NaiveDate) -> bool {
        self.date == date
            || (self.yearly && (self.date.month(), self.date.day()) == (date.month(), date.day()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TimeOfDay;
    use super::*;

    fn hours(text: &str) -> Vec<OpeningHours> {
        text.split(", ")
            .map(|one| {
                let [day, open, close] = one.split(' ').collect::<Vec<_>>()[..] else { panic!("{one}") };
                OpeningHours {
                    day: Weekday::parse(day).unwrap(),
                    open: TimeOfDay::parse(open).unwrap(),
                    close: TimeOfDay::parse(close).unwrap(),
                }
            })
            .collect()
    }

    /// Returns `open`, or when the business opens next.
    fn opening(zone: &str, week: &str, holidays: &[(&str, bool)], at: &str) -> String {
        let hours = hours(week);
        let holidays: Vec<Holiday> = holidays
            .iter()
            .map(|(date, yearly)| Holiday { date: date.parse().unwrap(), name: None, yearly: *yearly })
            .collect();
        let week = Week { zone: zone.parse().unwrap(), hours: &hours, holidays: &holidays };
        match week.opening(Timestamp::parse(at).unwrap()).unwrap() {
            Opening::Open => "open".to_owned(),
            Opening::Closed(next) => next.map_or("closed".to_owned(), Timestamp::rfc3339),
        }
    }

    #[test]
    fn hours_of_one_week_overlap_or_not() {
        for (one, other, overlap) in [
            ("monday 09:00 13:00", "monday 14:00 18:00", false),
            ("monday 09:00 13:00", "monday 13:00 18:00", false),
            ("monday 09:00 13:01", "monday 13:00 18:00", true),
            ("monday 09:00 13:00", "tuesday 09:00 13:00", false),
            ("monday 22:00 03:00", "tuesday 02:00 05:00", true),
            ("monday 22:00 03:00", "tuesday 03:00 05:00", false),
            ("sunday 22:00 03:00", "monday 02:00 05:00", true),
            ("sunday 20:00 24:00", "monday 00:00 05:00", false),
            ("monday 09:00 18:00", "monday 09:00 18:00", true),
        ] {
            let (one, other) = (hours(one)[0], hours(other)[0]);
            assert_eq!((one.overlap(other), other.overlap(one)), (overlap, overlap), "{one:?} {other:?}");
        }
        assert!(!hours("monday 24:00 02:00")[0].are_sound());
        assert!(!hours("monday 09:00 09:00")[0].are_sound());
        assert!(hours("monday 00:00 24:00")[0].are_sound());
    }

    #[test]
    fn a_business_opens_and_closes() {
        let week = "monday 09:00 13:00, monday 14:00 18:00, saturday 22:00 03:00";
        for (at, expected) in [
            ("2026-11-23T07:59:59.999Z", "2026-11-23T08:00:00.000Z"),
            ("2026-11-23T08:00:00Z", "open"),
            ("2026-11-23T11:59:59.999Z", "open"),
            ("2026-11-23T12:00:00Z", "2026-11-23T13:00:00.000Z"),
            ("2026-11-23T17:00:00Z", "2026-11-28T21:00:00.000Z"),
            ("2026-11-28T23:30:00Z", "open"),
            ("2026-11-29T01:59:00Z", "open"),
            ("2026-11-29T02:00:00Z", "2026-11-30T08:00:00.000Z"),
        ] {
            assert_eq!(opening("Europe/Madrid", week, &[], at), expected, "{at}");
        }
    }

    #[test]
    fn a_business_does_not_open_on_holidays() {
        let week = "thursday 22:00 03:00, friday 09:00 18:00, saturday 09:00 18:00";
        let holidays = [("2020-12-25", true), ("2026-12-26", false)];
        for (at, expected) in [
            // Hours that began on the previous day continue.
            ("2026-12-25T01:00:00Z", "open"),
            ("2026-12-25T10:00:00Z", "2026-12-31T21:00:00.000Z"),
            ("2027-12-25T10:00:00Z", "2027-12-30T21:00:00.000Z"),
            ("2028-12-26T10:00:00Z", "2028-12-28T21:00:00.000Z"),
        ] {
            assert_eq!(opening("Europe/Madrid", week, &holidays, at), expected, "{at}");
        }
        let days: Vec<String> = (0..400)
            .map(|ahead| (NaiveDate::from_ymd_opt(2026, 1, 1).unwrap() + Days::new(ahead)).to_string())
            .collect();
        let all: Vec<(&str, bool)> = days.iter().map(|day| (day.as_str(), true)).collect();
        assert_eq!(opening("UTC", week, &all, "2026-01-01T10:00:00Z"), "closed");
    }

    #[test]
    fn clocks_go_forward() {
        // In Madrid, clocks go from 02:00 to 03:00 on 2026-03-29, at 01:00 UTC.
        for (week, at, expected) in [
            ("sunday 02:30 05:00", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00.000Z"),
            ("sunday 02:30 05:00", "2026-03-29T01:00:00Z", "open"),
            ("sunday 02:30 05:00", "2026-03-29T02:59:59Z", "open"),
            ("sunday 02:30 05:00", "2026-03-29T03:00:00Z", "2026-04-05T00:30:00.000Z"),
            ("saturday 22:00 02:30", "2026-03-29T00:59:59Z", "open"),
            ("saturday 22:00 02:30", "2026-03-29T01:00:00Z", "2026-04-04T20:00:00.000Z"),
            // The whole interval is skipped.
            ("sunday 02:00 03:00", "2026-03-28T12:00:00Z", "2026-04-05T00:00:00.000Z"),
            ("monday 09:00 18:00", "2026-03-28T12:00:00Z", "2026-03-30T07:00:00.000Z"),
        ] {
            assert_eq!(opening("Europe/Madrid", week, &[], at), expected, "{week} {at}");
        }
        // Samoa skipped 30 December 2011.
        let apia = |at| opening("Pacific/Apia", "friday 09:00 17:00, saturday 09:00 17:00", &[], at);
        assert_eq!(apia("2011-12-30T09:59:00Z"), "2011-12-30T19:00:00.000Z");
    }

    #[test]
    fn clocks_go_back() {
        // In Madrid, clocks go from 03:00 to 02:00 on 2026-10-25, at 01:00 UTC.
        for (week, at, expected) in [
            ("sunday 02:30 05:00", "2026-10-25T00:29:59Z", "2026-10-25T00:30:00.000Z"),
            ("sunday 02:30 05:00", "2026-10-25T01:15:00Z", "open"),
            ("saturday 22:00 02:30", "2026-10-25T01:29:59Z", "open"),
            ("saturday 22:00 02:30", "2026-10-25T01:30:00Z", "2026-10-31T21:00:00.000Z"),
            ("sunday 00:00 24:00", "2026-10-25T22:59:59Z", "open"),
            ("sunday 00:00 24:00", "2026-10-25T23:00:00Z", "2026-10-31T23:00:00.000Z"),
            ("monday 09:00 18:00", "2026-10-24T12:00:00Z", "2026-10-26T08:00:00.000Z"),
        ] {
            assert_eq!(opening("Europe/Madrid", week, &[], at), expected, "{week} {at}");
        }
    }
}
