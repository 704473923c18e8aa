//! The moments of a rule or a cron expression in a time zone.

use super::clock::{earliest_time, local, moments};
use super::cron::Cron;
use super::rule::{Frequency, Rule};
use chrono::{Datelike, NaiveDateTime, TimeDelta};
use chrono_tz::Tz;
use model::Timestamp;

/// How many times and years [`Series::keeps_apart`] examines. A day of five-minute steps has 288 times, and a leap
/// day falls on the same weekday again within 40 years.
const LOOKED_AT: (usize, i32) = (300, 40);

/// A rule or a cron expression in a time zone.
#[derive(Debug, Clone)]
pub struct Series {
    pattern: Pattern,
    zone: Tz,
}

#[derive(Debug, Clone)]
enum Pattern {
    /// A rule with its start.
    Rule(Box<Rule>, Timestamp),
    Cron(Cron),
}

impl Series {
    /// Creates the series of a rule that begins at `start`. Ignores `COUNT` and `UNTIL`.
    pub fn of_rule(rule: Rule, zone: Tz, start: Timestamp) -> Self {
        // Steps of hours or less follow real time, unless the rule restricts them to local times.
        let is_local = rule.frequency >= Frequency::Daily || rule.is_restricted();
        let zone = if is_local { zone } else { Tz::UTC };
        Self { pattern: Pattern::Rule(Box::new(rule), whole(start)), zone }
    }

    /// Creates the series of a cron expression.
    pub fn of_cron(cron: Cron, zone: Tz) -> Self {
        Self { pattern: Pattern::Cron(cron), zone }
    }

    /// Returns the moments from `from` on, in order and without duplicates. Moments of a rule have whole seconds.
    pub fn moments(&self, from: Timestamp) -> Box<dyn Iterator<Item = Timestamp> + '_> {
        let (rule, start) = match &self.pattern {
            Pattern::Cron(cron) => return Box::new(cron.moments(from, self.zone)),
            Pattern::Rule(rule, start) => (rule, *start),
        };
        let begin = local(self.zone, start);
        let mut times = rule.times(begin, earliest_time(self.zone, from)).peekable();
        // If the start's local time occurs twice, the conversion would choose the first, but the series may begin at
        // the second.
        let first = times.next_if_eq(&begin).map(|_| start);
        Box::new(first.into_iter().chain(moments(self.zone, times)).filter(move |at| *at >= from))
    }

    /// Returns whether two times from `start` on are always at least `shortest` apart. Compares local times, so
    /// changes of the clocks are ignored.
    pub fn keeps_apart(&self, start: Timestamp, shortest: TimeDelta) -> bool {
        let begin = local(self.zone, start);
        let times: Box<dyn Iterator<Item = NaiveDateTime>> = match &self.pattern {
            Pattern::Rule(rule, _) => Box::new(rule.times(begin, begin)),
            Pattern::Cron(cron) => Box::new(cron.moments(start, Tz::UTC).map(|at| local(Tz::UTC, at))),
        };
        let (most, years) = LOOKED_AT;
        let times: Vec<_> = times.take(most).take_while(|at| at.year() < begin.year() + years).collect();
        times.iter().zip(times.iter().skip(1)).all(|(one, next)| *next - *one >= shortest)
    }
}

/// Drops the fraction of a second.
fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.millis().div_euclid(1_000) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn of_rule(rule: &str, zone: Tz, start: &str) -> Series {
        Series::of_rule(Rule::parse(rule).unwrap(), zone, at(start))
    }

    #[test]
    fn a_series_is_the_same_from_each_of_its_moments() {
        for (rule, zone, start) in [
            ("FREQ=DAILY;INTERVAL=2", Tz::Europe__Madrid, "2026-03-27T01:30:00Z"),
            ("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=10,30", Tz::Europe__Madrid, "2026-03-27T01:30:00Z"),
            ("FREQ=DAILY;INTERVAL=2", Tz::America__Nuuk, "2026-03-27T01:30:00Z"),
            ("FREQ=WEEKLY;INTERVAL=2;BYDAY=SA,MO", Tz::America__Nuuk, "2026-03-15T01:30:00Z"),
            ("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2", Tz::UTC, "2026-03-16T09:00:00Z"),
            ("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", Tz::Europe__Madrid, "2026-01-15T01:30:00Z"),
            ("FREQ=MINUTELY;INTERVAL=7;BYHOUR=1,2,3", Tz::Europe__Madrid, "2026-03-28T23:10:00Z"),
            ("FREQ=HOURLY;INTERVAL=5", Tz::Europe__Madrid, "2026-10-24T22:00:00Z"),
            ("FREQ=HOURLY;BYHOUR=1,2,3", Tz::Europe__Madrid, "2026-10-24T22:00:00Z"),
            ("FREQ=DAILY", Tz::Pacific__Apia, "2011-12-28T19:00:00Z"),
        ] {
            let series = of_rule(rule, zone, start);
            let all: Vec<Timestamp> = series.moments(at(start)).take(200).collect();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{rule}: in order");
            for (place, from) in all.iter().enumerate().take(150) {
                let rest: Vec<Timestamp> = series.moments(*from).take(10).collect();
                assert_eq!(rest, all[place..place + 10], "{rule} from {from}");
                let next = series.moments(from.plus_seconds(1)).next();
                assert_eq!(next, Some(all[place + 1]), "{rule} after {from}");
            }
        }
    }

    #[test]
    fn nothing_is_left_out_when_clocks_are_put_forward() {
        let shown = |rule: &str, zone, start, count| {
            let moments: Vec<String> = of_rule(rule, zone, start)
                .moments(at(start))
                .take(count)
                .map(|at| at.rfc3339()[5..16].to_owned())
                .collect();
            moments
        };
        assert_eq!(
            shown("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=10,30", Tz::Europe__Madrid, "2026-03-29T00:00:00Z", 4),
            ["03-29T01:10", "03-29T01:30", "03-30T00:10", "03-30T00:30"]
        );
        assert_eq!(
            shown("FREQ=WEEKLY;INTERVAL=2;BYDAY=SA", Tz::America__Nuuk, "2026-03-15T01:30:00Z", 3),
            ["03-15T01:30", "03-29T01:30", "04-12T00:30"]
        );
    }

    #[test]
    fn ten_years_of_days_have_one_moment_each() {
        for zone in [Tz::Europe__Madrid, Tz::America__New_York, Tz::Australia__Lord_Howe, Tz::Africa__Cairo] {
            for (hour, minute) in [(0, 0), (0, 30), (1, 45), (2, 0), (2, 15), (2, 30), (3, 0), (23, 59)] {
                let rule = format!("FREQ=DAILY;BYHOUR={hour};BYMINUTE={minute}");
                let series = of_rule(&rule, zone, "2025-01-01T12:00:00Z");
                let moments: Vec<Timestamp> =
                    series.moments(at("2025-01-01T12:00:00Z")).take(3_652).collect();
                let mut skipped = 0;
                for (day, moment) in moments.iter().enumerate() {
                    let first = local(zone, moments[0]).date();
                    let shown = local(zone, *moment);
                    let time = (first + chrono::Days::new(day as u64)).and_hms_opt(hour, minute, 0).unwrap();
                    skipped += usize::from(shown != time);
                    let later = (shown - time).num_minutes();
                    assert!([0, 30, 60].contains(&later), "{zone} {rule}: {shown}");
                }
                assert!(skipped <= 10, "{zone} {rule}: {skipped}");
            }
        }
    }

    #[test]
    fn a_series_begins_at_its_start() {
        // 2:30 occurs twice on this day, and the series begins at the second.
        for (start, first, next) in [
            ("2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"),
            ("2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
        ] {
            let series = of_rule("FREQ=DAILY", Tz::Europe__Madrid, start);
            let found: Vec<Timestamp> = series.moments(at(start)).take(2).collect();
            assert_eq!(found, [at(first), at(next)], "{start}");
        }
    }

    #[test]
    fn times_that_are_too_close_are_found() {
        let five = TimeDelta::minutes(5);
        let start = "2026-01-01T09:00:00Z";
        for (rule, is_apart) in [
            ("FREQ=MINUTELY;INTERVAL=5", true),
            ("FREQ=MINUTELY;INTERVAL=4", false),
            ("FREQ=DAILY;BYHOUR=0,23;BYMINUTE=0,58", false),
            ("FREQ=HOURLY;BYMINUTE=0,58", false),
            ("FREQ=HOURLY;BYMINUTE=0,55", true),
            ("FREQ=SECONDLY;INTERVAL=300", true),
            ("FREQ=YEARLY;BYYEARDAY=1,-1;BYHOUR=0,23;BYMINUTE=0,59", false),
            ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", true),
        ] {
            assert_eq!(of_rule(rule, Tz::UTC, start).keeps_apart(at(start), five), is_apart, "{rule}");
        }
    }
}
