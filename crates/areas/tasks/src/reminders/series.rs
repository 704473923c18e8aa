//! The dates of a recurring reminder, by a rule of RFC 5545 or a cron expression, in a time zone.
//!
//! A local time that clocks skip moves by the length of the gap, and a local time that occurs twice counts once. So a
//! reminder for 02:30 fires once on every day.

use super::model::{Recurrence, RecurrenceType};
use calendar::{Cron, Rule};
use chrono::TimeDelta;
use chrono_tz::Tz;
use model::Timestamp;

/// The shortest time between two dates, in minutes.
const SHORTEST_MINUTES: i64 = 5;

/// The dates of a recurrence.
#[derive(Debug, Clone)]
pub(super) struct Series(calendar::Series);

/// The result of advancing a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Advanced {
    /// The last date that has passed.
    pub(super) last: Timestamp,
    /// The number of dates of the whole series that have passed.
    pub(super) done: i64,
    /// The next date, or `None` if the series has ended.
    pub(super) next: Option<Timestamp>,
}

impl Series {
    /// Parses a recurrence that begins at `start`.
    ///
    /// # Errors
    /// The reason why the rule is invalid, as the rest of a sentence.
    pub(super) fn new(recurrence: &Recurrence, zone: Tz, start: Timestamp) -> Result<Self, String> {
        Self::read(recurrence, zone, start, Rule::parse)
    }

    /// Parses a stored recurrence. Earlier versions accepted some rules that would be invalid now.
    pub(super) fn stored(recurrence: &Recurrence, zone: Tz, start: Timestamp) -> Result<Self, String> {
        Self::read(recurrence, zone, start, Rule::parse_stored)
    }

    fn read(
        recurrence: &Recurrence,
        zone: Tz,
        start: Timestamp,
        parse: fn(&str) -> Result<Rule, String>,
    ) -> Result<Self, String> {
        if recurrence.kind == RecurrenceType::Cron {
            return Ok(Self(calendar::Series::of_cron(Cron::parse(&recurrence.rule)?, zone)));
        }
        let text = recurrence.rule.trim();
        let text = text.strip_prefix("RRULE:").unwrap_or(text);
        let rule = parse(text.strip_suffix(';').unwrap_or(text))?;
        if rule.count.is_some() || rule.until.is_some() {
            return Err("must not have `COUNT` or `UNTIL`: send `count` or `until` beside it".into());
        }
        Ok(Self(calendar::Series::of_rule(rule, zone, start)))
    }

    /// Rejects a series whose dates are too close to each other.
    ///
    /// # Errors
    /// The violated rule, as the rest of a sentence.
    pub(super) fn refuse_dense(&self, start: Timestamp) -> Result<(), String> {
        if self.0.keeps_apart(start, TimeDelta::minutes(SHORTEST_MINUTES)) {
            Ok(())
        } else {
            Err(format!("must leave at least {SHORTEST_MINUTES} minutes between two dates"))
        }
    }

    /// Returns the dates from `from` on, in order. `from` is the start of the series or one of its dates.
    pub(super) fn slots(&self, from: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        self.0.moments(from)
    }

    /// Returns the first date from `from` on, if it is not after `until`.
    pub(super) fn first(&self, recurrence: &Recurrence, from: Timestamp) -> Option<Timestamp> {
        let first = self.slots(from).next()?;
        recurrence.until.is_none_or(|until| first <= until).then_some(first)
    }

    /// Advances over all dates from `slot` until `now`. `done` is the number of dates before `slot`.
    pub(super) fn advance(
        &self,
        recurrence: &Recurrence,
        slot: Timestamp,
        done: i64,
        now: Timestamp,
    ) -> Advanced {
        let mut advanced = Advanced { last: slot, done: done + 1, next: None };
        for at in self.slots(slot).skip_while(|at| *at <= slot) {
            let ended = recurrence.count.is_some_and(|count| advanced.done >= count)
                || recurrence.until.is_some_and(|until| at > until);
            if ended {
                break;
            }
            if at > now {
                advanced.next = Some(at);
                break;
            }
            advanced.last = at;
            advanced.done += 1;
        }
        advanced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn recurrence(kind: RecurrenceType, rule: &str) -> Recurrence {
        Recurrence { kind, rule: rule.to_owned(), until: None, count: None }
    }

    fn series(rule: &str, zone: &str, start: &str) -> Result<(Series, Recurrence), String> {
        let kind = if rule.contains('=') { RecurrenceType::Rrule } else { RecurrenceType::Cron };
        let recurrence = recurrence(kind, rule);
        let series = Series::new(&recurrence, zone.parse().unwrap(), at(start))?;
        series.refuse_dense(at(start))?;
        Ok((series, recurrence))
    }

    /// Returns the first dates. Each is computed from the one before, as firing does.
    fn moments(rule: &str, zone: &str, start: &str, count: usize) -> Vec<String> {
        let (series, recurrence) = series(rule, zone, start).unwrap();
        let mut found: Vec<Timestamp> = series.first(&recurrence, at(start)).into_iter().collect();
        while let (true, Some(last)) = (found.len() < count, found.last().copied()) {
            let Some(next) = series.advance(&recurrence, last, 0, last).next else { break };
            found.push(next);
        }
        let at_once: Vec<Timestamp> = series.slots(at(start)).take(count).collect();
        assert_eq!(found, at_once, "{rule}: it does not matter from where it is evaluated");
        found.iter().map(|at| at.rfc3339().replace(":00.000Z", "Z")).collect()
    }

    #[test]
    fn rules_and_expressions_give_their_dates() {
        for (rule, zone, start, dates) in [
            (
                "FREQ=DAILY;INTERVAL=2",
                "UTC",
                "2026-01-30T09:30:00Z",
                vec!["2026-01-30T09:30Z", "2026-02-01T09:30Z", "2026-02-03T09:30Z"],
            ),
            (
                "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE",
                "UTC",
                "2026-11-20T08:00:00Z",
                vec!["2026-11-30T08:00Z", "2026-12-02T08:00Z", "2026-12-14T08:00Z", "2026-12-16T08:00Z"],
            ),
            (
                "FREQ=MONTHLY",
                "UTC",
                "2026-01-31T10:00:00Z",
                vec!["2026-01-31T10:00Z", "2026-03-31T10:00Z", "2026-05-31T10:00Z"],
            ),
            (
                "FREQ=MONTHLY;BYDAY=-1FR",
                "America/Sao_Paulo",
                "2026-11-01T12:00:00Z",
                vec!["2026-11-27T12:00Z", "2026-12-25T12:00Z"],
            ),
            (
                "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9,18",
                "UTC",
                "2026-01-31T18:00:00Z",
                vec!["2026-01-31T18:00Z", "2026-02-28T09:00Z", "2026-02-28T18:00Z", "2026-03-31T09:00Z"],
            ),
            ("FREQ=YEARLY", "UTC", "2024-02-29T00:00:00Z", vec!["2024-02-29T00:00Z", "2028-02-29T00:00Z"]),
            (
                "0 9 * * 1-5",
                "Europe/Madrid",
                "2026-11-20T08:30:00Z",
                vec!["2026-11-23T08:00Z", "2026-11-24T08:00Z"],
            ),
            (
                "30 8 1,15 * MON",
                "UTC",
                "2026-11-29T00:00:00Z",
                vec!["2026-11-30T08:30Z", "2026-12-01T08:30Z"],
            ),
            (
                "*/20 8-9 * dec sun",
                "UTC",
                "2026-12-06T09:10:00Z",
                vec!["2026-12-06T09:20Z", "2026-12-06T09:40Z", "2026-12-13T08:00Z"],
            ),
            ("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", vec!["2104-02-29T00:00Z"]),
        ] {
            assert_eq!(moments(rule, zone, start, dates.len()), dates, "{rule}");
        }
    }

    #[test]
    fn clocks_that_are_put_forward_and_back_change_nothing() {
        // In Madrid, clocks go forward on 2026-03-29 at 02:00 and back on 2026-10-25 at 03:00.
        for rule in ["FREQ=DAILY", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30", "30 2 * * *"] {
            assert_eq!(
                moments(rule, "Europe/Madrid", "2026-03-28T01:30:00Z", 4),
                ["2026-03-28T01:30Z", "2026-03-29T01:30Z", "2026-03-30T00:30Z", "2026-03-31T00:30Z"],
                "{rule}"
            );
            assert_eq!(
                moments(rule, "Europe/Madrid", "2026-10-24T00:30:00Z", 3),
                ["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"],
                "{rule}"
            );
        }
        // Fixed intervals follow real time through the skipped and the repeated hour.
        for rule in ["FREQ=MINUTELY;INTERVAL=30", "*/30 * * * *"] {
            for start in ["2026-03-29T00:30:00Z", "2026-10-25T00:00:00Z"] {
                let found = moments(rule, "Europe/Madrid", start, 6);
                let found: Vec<i64> =
                    found.iter().map(|text| at(&text.replace('Z', ":00Z")).seconds()).collect();
                assert!(found.windows(2).all(|pair| pair[1] - pair[0] == 1800), "{rule} {start}: {found:?}");
            }
        }
        // A rule that names hours matches the repeated hour once.
        assert_eq!(
            moments("FREQ=HOURLY;BYHOUR=1,2,3", "Europe/Madrid", "2026-10-24T23:00:00Z", 4),
            ["2026-10-24T23:00Z", "2026-10-25T00:00Z", "2026-10-25T02:00Z", "2026-10-26T00:00Z"]
        );
        // This day has no midnight in Beirut.
        assert_eq!(
            moments("0 0 * * *", "Asia/Beirut", "2026-03-27T22:00:00Z", 3),
            ["2026-03-27T22:00Z", "2026-03-28T22:00Z", "2026-03-29T21:00Z"]
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for rule in [
            "FREQ=SOMETIMES",
            "nothing=",
            "FREQ=DAILY;COUNT=3",
            "FREQ=DAILY;UNTIL=20270101T000000Z",
            "FREQ=SECONDLY",
            "FREQ=MINUTELY;INTERVAL=4",
            "FREQ=DAILY;BYHOUR=9;BYMINUTE=0,4",
            "FREQ=DAILY;BYHOUR=25",
            "FREQ=DAILY;INTERVAL=0",
            "* * * * *",
            "*/4 * * * *",
            "0 9 * *",
            "60 9 * * *",
            "0 9-7 * * *",
            "0 9 * * funday",
            "0 9 */0 * *",
            "0 +9 * * *",
            "",
        ] {
            assert!(series(rule, "UTC", "2026-01-01T00:00:00Z").is_err(), "{rule}");
        }
        // A rule that never matches is detected by the search for its first date.
        for rule in ["0 0 30 2 *", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"] {
            let (series, recurrence) = series(rule, "UTC", "2026-01-01T00:00:00Z").unwrap();
            assert_eq!(series.first(&recurrence, at("2026-01-01T00:00:00Z")), None, "{rule}");
        }
    }

    #[test]
    fn a_series_ends_by_count_and_by_date() {
        let start = "2026-01-01T09:00:00Z";
        let (series, plain) = series("FREQ=DAILY", "UTC", start).unwrap();
        let slot = at(start);
        let later = at("2026-01-04T12:00:00Z");
        let next = Some(at("2026-01-05T09:00:00Z"));
        assert_eq!(
            series.advance(&plain, slot, 0, later),
            Advanced { last: at("2026-01-04T09:00:00Z"), done: 4, next }
        );
        let three = Recurrence { count: Some(3), ..plain.clone() };
        assert_eq!(
            series.advance(&three, slot, 0, later),
            Advanced { last: at("2026-01-03T09:00:00Z"), done: 3, next: None }
        );
        assert_eq!(series.advance(&three, slot, 2, slot).next, None);
        let until = Recurrence { until: Some(at("2026-01-02T09:00:00Z")), ..plain };
        assert_eq!(
            series.advance(&until, slot, 0, later),
            Advanced { last: at("2026-01-02T09:00:00Z"), done: 2, next: None }
        );
        assert_eq!(series.first(&until, at("2026-01-02T10:00:00Z")), None);
    }
}
