use super::*;
use crate::triggers::timers::{Interval, Overlap};
use calendar::{instant, local};
use chrono::{Datelike, Days, NaiveDate, Timelike};
use proptest::prelude::*;
use std::collections::BTreeSet;

const ZONES: [Tz; 6] = [
    Tz::UTC,
    Tz::Europe__Madrid,
    Tz::America__New_York,
    Tz::Australia__Lord_Howe,
    Tz::Africa__Cairo,
    Tz::America__Santiago,
];

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn config(cron: Option<&str>, every: Option<(i64, IntervalUnit)>, zone: Option<&str>) -> Schedule {
    Schedule {
        cron: cron.map(str::to_owned),
        every: every.map(|(n, unit)| Interval { n, unit }),
        timezone: zone.map(str::to_owned),
        catch_up: CatchUp::Latest,
        overlap: Overlap::Allow,
    }
}

fn cron(text: &str, zone: Tz) -> Slots {
    Slots::of(&config(Some(text), None, Some(zone.name())), Tz::UTC, at("2026-01-01T00:00:00Z")).unwrap()
}

/// The sets of a random expression, and its text.
#[derive(Debug, Clone)]
struct Drawn {
    minutes: BTreeSet<u32>,
    hours: Option<BTreeSet<u32>>,
    days: Option<BTreeSet<u32>>,
    weekdays: Option<BTreeSet<u32>>,
}

impl Drawn {
    fn text(&self) -> String {
        let list = |set: &BTreeSet<u32>| set.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let part = |set: &Option<BTreeSet<u32>>| set.as_ref().map_or_else(|| "*".to_owned(), list);
        format!(
            "{} {} {} * {}",
            list(&self.minutes),
            part(&self.hours),
            part(&self.days),
            part(&self.weekdays)
        )
    }

    fn is_on(&self, day: NaiveDate) -> bool {
        let by_day = self.days.as_ref().map(|days| days.contains(&day.day()));
        let weekday = day.weekday().num_days_from_sunday();
        let by_weekday = self.weekdays.as_ref().map(|days| days.contains(&weekday));
        match (by_day, by_weekday) {
            (Some(one), Some(other)) => one || other,
            (one, other) => one.or(other).unwrap_or(true),
        }
    }

    /// Enumerates the slots of some days by their definition: each local time is looked up by itself, and where the hour is
    /// `*`, each minute of real time.
    fn slots(&self, zone: Tz, first: NaiveDate, days: u64) -> BTreeSet<Timestamp> {
        let mut slots = BTreeSet::new();
        for day in (0..days).map(|ahead| first + Days::new(ahead)) {
            match &self.hours {
                Some(hours) if self.is_on(day) => {
                    for (hour, minute) in
                        hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| (*hour, *minute)))
                    {
                        slots.insert(instant(zone, day.and_hms_opt(hour, minute, 0).unwrap()));
                    }
                }
                Some(_) => {}
                // Time zones are at most 14 hours from UTC; the ends are left out by the caller.
                None => {
                    let midnight = Timestamp::day_start(day);
                    let minutes = (0..24 * 60).map(|minute| midnight.plus(Duration::minutes(minute)));
                    slots.extend(minutes.filter(|at| {
                        let shown = local(zone, *at);
                        self.minutes.contains(&shown.minute()) && self.is_on(shown.date())
                    }));
                }
            }
        }
        slots
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let set = |first: u32, last: u32| prop::collection::btree_set(first..=last, 1..4);
    (
        set(0, 59),
        prop::option::weighted(0.9, set(0, 23)),
        prop::option::of(set(1, 31)),
        prop::option::of(set(0, 6)),
    )
        .prop_map(|(minutes, hours, days, weekdays)| Drawn { minutes, hours, days, weekdays })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Ten years of slots are those of an enumeration that knows nothing of the one before.
    #[test]
    fn slots_are_those_of_an_independent_enumeration(drawn in drawn(), zone in prop::sample::select(ZONES.to_vec())) {
        let schedule = cron(&drawn.text(), zone);
        // Expressions of each hour have far more slots, and are enumerated for the days around the changes of clocks.
        let spans: Vec<(NaiveDate, u64)> = match drawn.hours {
            Some(_) => vec![(NaiveDate::from_ymd_opt(2025, 1, 1).unwrap(), 3_653)],
            None => [2025, 2029, 2034]
                .into_iter()
                .flat_map(|year| [3, 4, 9, 10, 11].map(|month| (NaiveDate::from_ymd_opt(year, month, 1).unwrap(), 30)))
                .collect(),
        };
        for (first, days) in spans {
            let (from, until) = (Timestamp::day_start(first + Days::new(1)), Timestamp::day_start(first + Days::new(days - 2)));
            let expected: Vec<_> = drawn.slots(zone, first, days).range(from..until).copied().collect();
            let mut found = Vec::new();
            // Each slot is looked for from the present moment, as the scheduler does.
            let mut now = from.plus(Duration::milliseconds(-1));
            while let Some(next) = schedule.next(now).filter(|next| *next < until) {
                found.push(next);
                now = next;
            }
            prop_assert_eq!(&found, &expected, "{} in {}", drawn.text(), zone);
        }
    }

    /// The slots that are made up for are the last ones of all that were missed.
    #[test]
    fn missed_slots_are_the_last(drawn in drawn(), zone in prop::sample::select(ZONES.to_vec()), start in 0_i64..300_000, span in 0_i64..60_000) {
        let schedule = cron(&drawn.text(), zone);
        let Some(slot) = schedule.next(at("2026-01-01T00:00:00Z").plus(Duration::minutes(start))) else { return Ok(()) };
        let now = slot.plus(Duration::minutes(span));
        let mut all = vec![slot];
        while let Some(next) = schedule.next(*all.last().unwrap()).filter(|next| *next <= now) {
            all.push(next);
        }
        let last = |most: usize| all[all.len().saturating_sub(most)..].to_vec();
        prop_assert_eq!(schedule.due(slot, now, CatchUp::All), last(10));
        prop_assert_eq!(schedule.due(slot, now, CatchUp::Latest), last(1));
        let on_time: Vec<_> = last(1).into_iter().filter(|at| at.plus_seconds(60) >= now).collect();
        prop_assert_eq!(schedule.due(slot, now, CatchUp::None), on_time);
    }
}

#[test]
fn rules_that_give_no_slots_are_refused() {
    let start = at("2026-01-01T00:00:00Z");
    let refused = |config: &Schedule| {
        let read = Slots::of(config, Tz::UTC, start);
        let error = read.and_then(|schedule| schedule.refuse_empty(start)).unwrap_err();
        error.param_name().map(str::to_owned)
    };
    for text in [
        "0 0 31 2 *",
        "0 0 30 2 *",
        "* * * *",
        "* * * * * *",
        "",
        "60 * * * *",
        "0 0 * * 8",
        "@daily",
        "\u{1F552}",
    ] {
        assert_eq!(refused(&config(Some(text), None, None)).as_deref(), Some(CRON), "{text}");
    }
    for zone in ["Mars/Olympus", "", "Europe/Madrid ", "+02:00", "CETX"] {
        assert_eq!(
            refused(&config(Some("0 9 * * *"), None, Some(zone))).as_deref(),
            Some(TIMEZONE),
            "{zone}"
        );
    }
    let every = Some((1, IntervalUnit::Days));
    assert_eq!(refused(&config(Some("0 9 * * *"), every, None)).as_deref(), Some(EVERY));
    assert_eq!(refused(&config(None, None, None)).as_deref(), Some(CRON));
    for n in [0, -1, 70_000] {
        assert_eq!(
            refused(&config(None, Some((n, IntervalUnit::Days)), None)).as_deref(),
            Some(EVERY),
            "{n}"
        );
    }
}

#[test]
fn intervals_count_from_their_anchor() {
    let madrid = Some("Europe/Madrid");
    let anchor = at("2026-03-27T08:30:40Z");
    for (n, unit, after, next) in [
        (1, IntervalUnit::Minutes, "2026-03-28T10:00:00Z", "2026-03-28T10:01:00Z"),
        (7, IntervalUnit::Hours, "2026-03-27T08:30:00Z", "2026-03-27T15:30:00Z"),
        // Days are at the same time of day, also when clocks are changed.
        (2, IntervalUnit::Days, "2026-03-28T00:00:00Z", "2026-03-29T07:30:00Z"),
        (1, IntervalUnit::Weeks, "2026-03-27T08:30:00Z", "2026-04-03T07:30:00Z"),
    ] {
        let schedule = Slots::of(&config(None, Some((n, unit)), madrid), Tz::UTC, anchor).unwrap();
        assert_eq!(schedule.next(at(after)), Some(at(next)), "{n} {unit:?}");
    }
}

#[test]
fn a_change_of_clocks_neither_skips_nor_doubles_a_day() {
    for zone in ZONES {
        for text in ["30 2 * * *", "0 0 * * *", "30 23 * * *", "15 1,2,3 * * *"] {
            let schedule = cron(text, zone);
            let (mut now, end) = (at("2025-01-01T12:00:00Z"), at("2035-01-01T12:00:00Z"));
            let mut slots = 0;
            while let Some(next) = schedule.next(now).filter(|next| *next < end) {
                (now, slots) = (next, slots + 1);
            }
            let each = if text.contains(',') { 3 } else { 1 };
            // A skipped time can fall together with one that is not.
            let lost = each * 3_652 - slots;
            assert!((0..=if each == 3 { 10 } else { 0 }).contains(&lost), "{text} in {zone}: {slots}");
        }
    }
}
