//! Conversion between moments and the local time of a time zone.

use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;
use model::Timestamp;
use std::collections::BTreeSet;

/// The last millisecond of the year 9999, the last that RFC 3339 can represent.
const LATEST: i64 = 253_402_300_799_999;

/// Returns the local time at a moment.
pub fn local(zone: Tz, at: Timestamp) -> NaiveDateTime {
    let utc = DateTime::from_timestamp_millis(at.millis()).unwrap_or_default().naive_utc();
    utc.checked_add_offset(zone.offset_from_utc_datetime(&utc).fix()).unwrap_or(utc)
}

/// Returns the moment of a local time. A local time that occurs twice is the first of the two; one that is skipped is
/// moved forward by the length of the gap.
pub fn instant(zone: Tz, time: NaiveDateTime) -> Timestamp {
    shown(zone, time).unwrap_or_else(|| skipped(zone, time))
}

/// Returns the first moment with this local time, or `None` if the clocks skip it.
fn shown(zone: Tz, time: NaiveDateTime) -> Option<Timestamp> {
    let found = zone.from_local_datetime(&time).earliest()?;
    Some(Timestamp::from_millis(found.timestamp_millis()))
}

/// Returns the moment for a local time that the clocks skip.
fn skipped(zone: Tz, time: NaiveDateTime) -> Timestamp {
    // Use the offset of the day before, when the clocks had not yet been put forward.
    let day_before = time.checked_sub_signed(TimeDelta::days(1)).unwrap_or(time);
    let before = zone.offset_from_utc_datetime(&day_before).fix();
    let utc = time.checked_sub_offset(before).unwrap_or(time);
    Timestamp::from_millis(utc.and_utc().timestamp_millis())
}

/// Returns the earliest local time that can belong to a moment from `from` on. If the clocks were put forward within
/// the day before, that can be a skipped time.
pub(crate) fn earliest_time(zone: Tz, from: Timestamp) -> NaiveDateTime {
    let day = TimeDelta::days(1);
    let (shown, before) = (local(zone, from), local(zone, from.plus(-day)));
    let is_calm = shown.signed_duration_since(before) == day;
    if is_calm { shown } else { shown.checked_sub_signed(day + day).unwrap_or(shown) }
}

/// Converts ordered local times to moments, in order and without duplicates.
pub fn moments<I: Iterator<Item = NaiveDateTime>>(zone: Tz, times: I) -> Moments<I> {
    Moments { zone, times, waiting: BTreeSet::new(), settled: None }
}

/// An iterator of moments in order, made from local times by [`moments`].
///
/// A skipped local time can be later than the ones after it: when clocks are put forward from 2:00 to 3:00, 2:30
/// becomes 3:30, which is after 3:10. So the iterator holds a moment back until no later local time can come before
/// it.
#[derive(Debug, Clone)]
pub struct Moments<I> {
    zone: Tz,
    times: I,
    waiting: BTreeSet<Timestamp>,
    /// No local time that is still to be read gives a moment before this one.
    settled: Option<Timestamp>,
}

impl<I: Iterator<Item = NaiveDateTime>> Iterator for Moments<I> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        loop {
            if let Some(first) = self.waiting.first().copied()
                && self.settled.is_some_and(|settled| first <= settled)
            {
                self.waiting.remove(&first);
                return Some(first).filter(|at| at.millis() <= LATEST);
            }
            let Some(time) = self.times.next() else { return self.waiting.pop_first() };
            let (at, settled) = match shown(self.zone, time) {
                Some(at) => (at, at),
                None => {
                    let at = skipped(self.zone, time);
                    // No time zone has ever skipped more than a day.
                    (at, at.plus(TimeDelta::days(-1)))
                }
            };
            self.waiting.insert(at);
            self.settled = Some(settled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap()
    }

    fn of(zone: &str, times: &[&str]) -> Vec<String> {
        let times = times.iter().map(|text| time(text));
        moments(zone.parse().unwrap(), times).map(|at| at.rfc3339().replace(":00.000Z", "Z")).collect()
    }

    #[test]
    fn a_time_that_is_skipped_is_as_much_later_and_one_that_comes_twice_counts_once() {
        for (zone, shown, at) in [
            ("Europe/Madrid", "2026-03-29 01:59", "2026-03-29T00:59Z"),
            ("Europe/Madrid", "2026-03-29 02:30", "2026-03-29T01:30Z"),
            ("Europe/Madrid", "2026-03-29 03:00", "2026-03-29T01:00Z"),
            ("Europe/Madrid", "2026-10-25 02:30", "2026-10-25T00:30Z"),
            ("America/New_York", "2026-03-08 02:30", "2026-03-08T07:30Z"),
            ("Africa/Cairo", "2026-04-24 00:00", "2026-04-23T22:00Z"),
            // Gaps of half an hour (Lord Howe), of a whole day (Samoa) and across midnight (Greenland).
            ("Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03T15:45Z"),
            ("Pacific/Apia", "2011-12-30 09:00", "2011-12-30T19:00Z"),
            ("America/Nuuk", "2026-03-28 23:30", "2026-03-29T01:30Z"),
        ] {
            assert_eq!(of(zone, &[shown]), [at], "{zone} {shown}");
        }
    }

    #[test]
    fn moments_are_in_order_where_times_are_skipped() {
        assert_eq!(
            of(
                "Europe/Madrid",
                &["2026-03-29 01:50", "2026-03-29 02:30", "2026-03-29 03:10", "2026-03-29 03:30"]
            ),
            ["2026-03-29T00:50Z", "2026-03-29T01:10Z", "2026-03-29T01:30Z"]
        );
        assert_eq!(
            of("America/Nuuk", &["2026-03-28 23:30", "2026-03-29 00:10"]),
            ["2026-03-29T01:10Z", "2026-03-29T01:30Z"]
        );
        // Only times that are skipped.
        assert_eq!(
            of("Europe/Madrid", &["2026-03-29 02:30", "2027-03-28 02:30", "2028-03-26 02:30"]),
            ["2026-03-29T01:30Z", "2027-03-28T01:30Z", "2028-03-26T01:30Z"]
        );
    }

    #[test]
    fn ends_of_the_calendar_are_no_accident() {
        for zone in [Tz::UTC, Tz::Asia__Tokyo, Tz::America__New_York] {
            for end in [NaiveDateTime::MIN, NaiveDateTime::MAX] {
                instant(zone, end);
                local(zone, Timestamp::from_millis(end.and_utc().timestamp_millis()));
            }
            let last = time("9999-12-31 23:59");
            let none_after = moments(zone, [last].into_iter()).all(|at| at.millis() <= LATEST);
            assert!(none_after, "{zone}");
        }
    }
}
