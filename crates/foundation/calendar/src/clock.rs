//! What clocks show, and when.

use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;
use model::Timestamp;
use std::collections::BTreeSet;

/// The last millisecond of the year 9999, which is the last that RFC 3339 can write.
const LATEST: i64 = 253_402_300_799_999;

/// Returns what clocks show at a moment.
pub fn local(zone: Tz, at: Timestamp) -> NaiveDateTime {
    let utc = DateTime::from_timestamp_millis(at.millis()).unwrap_or_default().naive_utc();
    utc.checked_add_offset(zone.offset_from_utc_datetime(&utc).fix()).unwrap_or(utc)
}

/// Returns the moment at which clocks show a time: the first such, or, where they skip the time, as much later.
pub fn instant(zone: Tz, time: NaiveDateTime) -> Timestamp {
    shown(zone, time).unwrap_or_else(|| skipped(zone, time))
}

/// The first moment at which clocks show a time.
fn shown(zone: Tz, time: NaiveDateTime) -> Option<Timestamp> {
    let found = zone.from_local_datetime(&time).earliest()?;
    Some(Timestamp::from_millis(found.timestamp_millis()))
}

/// The moment for a time that clocks skip.
fn skipped(zone: Tz, time: NaiveDateTime) -> Timestamp {
    // By the clock of the day before, which was not put forward yet.
    let day_before = time.checked_sub_signed(TimeDelta::days(1)).unwrap_or(time);
    let before = zone.offset_from_utc_datetime(&day_before).fix();
    let utc = time.checked_sub_offset(before).unwrap_or(time);
    Timestamp::from_millis(utc.and_utc().timestamp_millis())
}

/// The earliest time on clocks that can belong to a moment from `from` on. If clocks were put forward within the day
/// before, that is a time which they skipped.
pub(crate) fn earliest_time(zone: Tz, from: Timestamp) -> NaiveDateTime {
    let day = TimeDelta::days(1);
    let (shown, before) = (local(zone, from), local(zone, from.plus(-day)));
    let is_calm = shown.signed_duration_since(before) == day;
    if is_calm { shown } else { shown.checked_sub_signed(day + day).unwrap_or(shown) }
}

/// Returns the moments at which clocks show times that are in order. The moments are in order too, each once.
pub fn moments<I: Iterator<Item = NaiveDateTime>>(zone: Tz, times: I) -> Moments<I> {
    Moments { zone, times, waiting: BTreeSet::new(), settled: None }
}

/// Moments in order, made from local times by [`moments`].
///
/// When clocks are put forward from 2:00 to 3:00, 2:30 becomes half past three, after 3:10 although it stands before it.
/// So a moment waits until no later time can come before it.
#[derive(Debug, Clone)]
pub struct Moments<I> {
    zone: Tz,
    times: I,
    waiting: BTreeSet<Timestamp>,
    /// No time that has not been read yet is before this moment.
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
                    // Clocks have never skipped more than a day.
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
            // Half an hour on Lord Howe, a whole day on Samoa, over midnight in Greenland.
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
        // Times that are all skipped.
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
