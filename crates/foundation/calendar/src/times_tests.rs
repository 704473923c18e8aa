//! Tests of the times of rules: against python-dateutil, against naive searches, and at the ends of the calendar.

use super::*;
use chrono::Weekday;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The output of `tests/golden.py`.
const GOLDEN: &str = include_str!("../tests/golden/rules.tsv");

fn time(text: &str) -> NaiveDateTime {
    NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%S").unwrap()
}

fn times(rule: &str, start: &str) -> Times {
    let rule = Rule::parse(rule).unwrap_or_else(|why| panic!("{rule} {why}"));
    rule.times(time(start), time(start))
}

fn shown(rule: &str, start: &str, count: usize) -> Vec<String> {
    times(rule, start).take(count).map(|at| at.format("%Y%m%dT%H%M").to_string()).collect()
}

#[test]
fn dateutil_finds_the_same_times() {
    let mut lines = 0;
    for line in GOLDEN.lines() {
        let [rule, start, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let expected: Vec<NaiveDateTime> = expected.split(',').map(time).collect();
        let found: Vec<NaiveDateTime> = times(rule, start).take(expected.len()).collect();
        assert_eq!(found, expected, "{rule} from {start}");
        lines += 1;
    }
    assert!(lines > 500);
}

#[test]
fn steps_leave_nothing_out() {
    let office = "BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16,17";
    for (rule, start, expected) in [
        (
            format!("FREQ=MINUTELY;INTERVAL=30;{office}"),
            "20300105T043000",
            vec!["20300107T0900", "20300107T0930"],
        ),
        (
            "FREQ=MINUTELY;INTERVAL=20;BYDAY=MO;BYHOUR=9".into(),
            "20300105T043000",
            vec!["20300107T0910", "20300107T0930"],
        ),
        // Steps are counted from the start of the series, so 7 and 45 minutes do not restart each day.
        (
            "FREQ=MINUTELY;INTERVAL=7;BYHOUR=9".into(),
            "20300105T043000",
            vec!["20300105T0903", "20300105T0910"],
        ),
        (
            "FREQ=MINUTELY;INTERVAL=45;BYDAY=MO;BYHOUR=9".into(),
            "20300105T043000",
            vec!["20300107T0900", "20300107T0945", "20300114T0900"],
        ),
        (
            "FREQ=MINUTELY;INTERVAL=60;BYDAY=FR,MO;BYHOUR=10".into(),
            "20261127T100000",
            vec!["20261127T1000", "20261130T1000", "20261204T1000"],
        ),
        ("FREQ=HOURLY;INTERVAL=5;BYDAY=MO".into(), "20300105T043000", vec!["20300107T0130", "20300107T0630"]),
        (
            "FREQ=MINUTELY;INTERVAL=1439;BYMONTH=2;BYMONTHDAY=29".into(),
            "20260101T000000",
            vec!["20280229T1050", "20320229T1028"],
        ),
    ] {
        let found = shown(&rule, start, expected.len());
        assert!(
            found.iter().zip(&expected).all(|(found, expected)| found == expected),
            "{rule}: {found:?}, not {expected:?}"
        );
    }
}

#[test]
fn what_a_rule_does_not_say_follows_from_its_start() {
    for (rule, start, expected) in [
        // These follow RFC 5545 and libical; dateutil returns all seven days of the week.
        (
            "FREQ=YEARLY;BYWEEKNO=20",
            "20260101T090000",
            vec!["20260514T0900", "20270520T0900", "20280518T0900"],
        ),
        (
            "FREQ=YEARLY;BYWEEKNO=1,53",
            "20260105T090000",
            vec!["20261228T0900", "20270104T0900", "20280103T0900"],
        ),
        ("FREQ=YEARLY;BYWEEKNO=20;BYMONTHDAY=15", "20260101T090000", vec!["20260515T0900", "20280515T0900"]),
        ("FREQ=YEARLY;BYMONTH=3,9", "20260131T090000", vec!["20260331T0900", "20270331T0900"]),
        ("FREQ=YEARLY;BYMONTH=3,9", "20260115T090000", vec!["20260315T0900", "20260915T0900"]),
        ("FREQ=YEARLY;BYMONTHDAY=15", "20260101T090000", vec!["20260115T0900", "20260215T0900"]),
        ("FREQ=YEARLY", "20240229T090000", vec!["20240229T0900", "20280229T0900"]),
        ("FREQ=MONTHLY", "20260131T090000", vec!["20260131T0900", "20260331T0900"]),
        ("FREQ=MONTHLY;BYMONTH=2,3", "20260130T090000", vec!["20260330T0900", "20270330T0900"]),
        ("FREQ=WEEKLY;BYMONTH=12", "20261127T090000", vec!["20261204T0900", "20261211T0900"]),
        ("FREQ=DAILY;BYHOUR=7", "20261127T093015", vec!["20261128T0730", "20261129T0730"]),
    ] {
        assert_eq!(shown(rule, start, expected.len()), expected, "{rule}");
    }
    // The first days of January can belong to the last week of the previous year, and the last of December to the
    // first week of the next.
    assert_eq!(
        shown("FREQ=YEARLY;BYWEEKNO=-1;BYDAY=SU", "20260101T090000", 2),
        ["20270103T0900", "20280102T0900"]
    );
    assert_eq!(
        shown("FREQ=YEARLY;BYWEEKNO=-52;BYDAY=MO", "20281201T090000", 2),
        ["20290101T0900", "20291231T0900"]
    );
}

#[test]
fn weekdays_with_and_without_numbers_are_all_meant() {
    for (rule, expected) in [
        (
            "FREQ=MONTHLY;BYDAY=MO,1WE",
            vec!["20260105T0900", "20260107T0900", "20260112T0900", "20260119T0900", "20260126T0900"],
        ),
        ("FREQ=MONTHLY;BYDAY=5FR", vec!["20260130T0900", "20260529T0900", "20260731T0900"]),
        ("FREQ=MONTHLY;BYDAY=-5FR", vec!["20260102T0900", "20260501T0900", "20260703T0900"]),
        ("FREQ=YEARLY;BYDAY=53TH", vec!["20261231T0900", "20321230T0900"]),
        ("FREQ=YEARLY;BYDAY=-53TH", vec!["20260101T0900", "20320101T0900"]),
    ] {
        assert_eq!(shown(rule, "20260101T090000", expected.len()), expected, "{rule}");
    }
}

#[test]
fn places_are_counted_in_whole_periods() {
    for (rule, start, expected) in [
        ("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2", "20260121T090000", vec!["20260121T0900", "20260128T0900"]),
        ("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1", "20260121T090000", vec!["20260126T0900", "20260202T0900"]),
        (
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "20260115T090000",
            vec!["20260130T0900", "20260227T0900"],
        ),
        (
            "FREQ=MONTHLY;BYDAY=MO;BYHOUR=9,17;BYSETPOS=2,-1",
            "20260101T090000",
            vec!["20260105T1700", "20260126T1700"],
        ),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=5", "20260101T090000", vec!["20260330T0900", "20260629T0900"]),
    ] {
        assert_eq!(shown(rule, start, expected.len()), expected, "{rule}");
    }
}

#[test]
fn searches_end() {
    for rule in [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=-30",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
        "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=2",
        "FREQ=DAILY;BYMONTH=4;BYMONTHDAY=31",
        "FREQ=DAILY;BYDAY=MO;BYSETPOS=300",
        "FREQ=DAILY;INTERVAL=7;BYDAY=MO",
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=8",
        "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=1",
        "FREQ=MINUTELY;BYYEARDAY=366;BYMONTH=1",
        "FREQ=SECONDLY;INTERVAL=60;BYSECOND=1",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6",
    ] {
        assert_eq!(times(rule, "20260106T090000").next(), None, "{rule}");
    }
    // Rare times are found: a leap day on a Monday, large intervals, distant years.
    for (rule, expected) in [
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "20440229T0900"),
        ("FREQ=YEARLY;INTERVAL=1000;BYMONTH=1;BYMONTHDAY=1;BYSETPOS=1", "30260101T0900"),
        ("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=23;BYMINUTE=59", "20440229T2359"),
        ("FREQ=DAILY;INTERVAL=65535;BYDAY=TU", "22050619T0900"),
    ] {
        let first = times(rule, "20260106T090000").next().map(|at| at.format("%Y%m%dT%H%M").to_string());
        assert!(first.is_some(), "{rule}");
        assert!(rule.contains("65535") || first.as_deref() == Some(expected), "{rule}: {first:?}");
    }
    // The times of a whole year are not materialized.
    let all = |last: u32| (0..=last).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let rule = format!(
        "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR={};BYMINUTE={};BYSECOND={}",
        all(23),
        all(59),
        all(59)
    );
    let second = times(&rule, "20260106T090000").nth(100_000).unwrap();
    assert_eq!(second - time("20260106T090000"), TimeDelta::seconds(100_000));
}

#[test]
fn the_calendar_ends_without_an_accident() {
    for frequency in ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"] {
        for more in ["", ";INTERVAL=65535", ";BYMONTH=12;BYDAY=FR", ";BYDAY=MO;BYSETPOS=-1"] {
            let rule = Rule::parse(&format!("FREQ={frequency}{more}")).unwrap();
            for start in ["99991231T235955", "99990101T000000", "99981231T235959"] {
                let found: Vec<NaiveDateTime> =
                    rule.times(time(start), time("99991231T235950")).take(100).collect();
                assert!(found.iter().all(|at| at.year() == 9_999), "{rule:?}");
            }
            for end in [NaiveDateTime::MIN, NaiveDateTime::MAX] {
                let _ = rule.times(end, time("20260106T090000")).next();
                let _ = rule.times(time("20260106T090000"), end).next();
                let _ = rule.times(end, end).next();
            }
        }
    }
}

/// The parts of a rule, by name.
type Parts = BTreeMap<String, String>;

fn numbers(parts: &Parts, name: &str) -> Option<Vec<i64>> {
    parts.get(name).map(|values| values.split(',').map(|value| value.parse().unwrap()).collect())
}

fn day_of(name: &str) -> Weekday {
    let names = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
    Weekday::try_from(names.iter().position(|other| *other == name).unwrap() as u8).unwrap()
}

/// Returns the days around `date` that satisfy `alike`, without gaps.
fn days_like(date: NaiveDate, alike: impl Fn(NaiveDate) -> bool) -> Vec<NaiveDate> {
    let mut days: Vec<NaiveDate> =
        std::iter::successors(date.pred_opt(), NaiveDate::pred_opt).take_while(|day| alike(*day)).collect();
    days.reverse();
    days.extend(date.iter_days().take_while(|day| alike(*day)));
    days
}

/// Returns whether a number is the position of a day among others, counted from the start or the end.
fn is_place(number: i64, date: NaiveDate, among: &[NaiveDate]) -> bool {
    let place = among.iter().position(|day| *day == date).unwrap() as i64;
    number == place + 1 || number == place - among.len() as i64
}

/// Returns whether a day matches all parts about days, by a literal reading of RFC 5545.
fn matches_day(parts: &Parts, date: NaiveDate) -> bool {
    let month = || days_like(date, |day| (day.year(), day.month()) == (date.year(), date.month()));
    let year = || days_like(date, |day| day.year() == date.year());
    let any = |name: &str, test: &dyn Fn(i64) -> bool| {
        numbers(parts, name).is_none_or(|all| all.into_iter().any(test))
    };
    let weekday = |item: &str| {
        let (number, name) = item.split_at(item.len() - 2);
        let same = |days: &[NaiveDate]| {
            days.iter().copied().filter(|day| day.weekday() == date.weekday()).collect::<Vec<_>>()
        };
        let is_of_month = parts["FREQ"] == "MONTHLY" || parts.contains_key("BYMONTH");
        let within = || same(&if is_of_month { month() } else { year() });
        day_of(name) == date.weekday()
            && (number.is_empty() || is_place(number.parse().unwrap(), date, &within()))
    };
    let week = |number: i64| {
        let iso = date.iso_week();
        let weeks = NaiveDate::from_ymd_opt(iso.year(), 12, 28).unwrap().iso_week().week();
        number == i64::from(iso.week()) || number == i64::from(iso.week()) - i64::from(weeks) - 1
    };
    any("BYMONTH", &|number| number == i64::from(date.month()))
        && any("BYMONTHDAY", &|number| is_place(number, date, &month()))
        && any("BYYEARDAY", &|number| is_place(number, date, &year()))
        && any("BYWEEKNO", &week)
        && parts.get("BYDAY").is_none_or(|items| items.split(',').any(weekday))
}

/// Returns whether a day is in a period of the rule, by counting periods one by one.
fn is_in_step(parts: &Parts, start: NaiveDate, date: NaiveDate) -> bool {
    let interval: i64 = parts.get("INTERVAL").map_or(1, |interval| interval.parse().unwrap());
    let monday = |day: NaiveDate| day - TimeDelta::days(day.weekday().num_days_from_monday().into());
    let steps = match parts["FREQ"].as_str() {
        "YEARLY" => i64::from(date.year() - start.year()),
        "MONTHLY" => {
            i64::from(date.year() - start.year()) * 12 + i64::from(date.month()) - i64::from(start.month())
        }
        "WEEKLY" => (monday(date) - monday(start)).num_days() / 7,
        _ => (date - start).num_days(),
    };
    steps % interval == 0
}

fn names() -> impl Strategy<Value = String> {
    prop::sample::subsequence(vec!["MO", "TU", "WE", "TH", "FR", "SA", "SU"], 1..4)
        .prop_map(|days| days.join(","))
}

fn some(values: std::ops::RangeInclusive<i64>, most: usize, signed: bool) -> impl Strategy<Value = String> {
    prop::collection::vec((values, any::<bool>()), 1..=most).prop_map(move |all| {
        let sign = |(value, minus): (i64, bool)| if signed && minus { -value } else { value };
        all.into_iter().map(|one| sign(one).to_string()).collect::<Vec<_>>().join(",")
    })
}

prop_compose! {
    /// Generates a valid rule that names its days, so that nothing is derived from its start.
    fn parts_of(frequencies: &'static [&'static str])(
        frequency in prop::sample::select(frequencies),
        interval in prop::option::of(1..60i64),
        month in prop::option::of(some(1..=12, 4, false)),
        month_day in prop::option::of(some(1..=31, 4, true)),
        year_day in prop::option::of(some(1..=366, 4, true)),
        week in prop::option::weighted(0.2, some(1..=53, 4, true)),
        days in names(),
        numbered in prop::option::of(prop::collection::vec((1..=5i64, any::<bool>()), 3)),
        has_days in any::<bool>(),
        hours in some(0..=23, 3, false),
        minutes in some(0..=59, 3, false),
    ) -> Parts {
        let mut parts = Parts::new();
        let mut put = |name: &str, value: Option<String>| if let Some(value) = value { parts.insert(name.to_owned(), value); };
        let is_long = matches!(frequency, "DAILY" | "WEEKLY" | "MONTHLY" | "YEARLY");
        put("FREQ", Some(frequency.to_owned()));
        put("INTERVAL", interval.map(|interval| if is_long { interval % 7 + 1 } else { interval }.to_string()));
        put("BYMONTH", month);
        put("BYMONTHDAY", month_day.filter(|_| frequency != "WEEKLY"));
        put("BYYEARDAY", year_day.filter(|_| frequency == "YEARLY" || !is_long));
        let week = week.filter(|_| frequency == "YEARLY");
        let numbered = numbered.filter(|_| week.is_none() && matches!(frequency, "MONTHLY" | "YEARLY"));
        put("BYWEEKNO", week);
        let number = |place: usize| numbered.as_ref().map_or(String::new(), |all| {
            let (number, minus) = all[place % 3];
            if place == 1 { String::new() } else { (if minus { -number } else { number }).to_string() }
        });
        let days: Vec<String> = days.split(',').enumerate().map(|(place, day)| format!("{}{day}", number(place))).collect();
        let must = matches!(frequency, "WEEKLY" | "MONTHLY" | "YEARLY");
        put("BYDAY", Some(days.join(",")).filter(|_| has_days || must));
        put("BYHOUR", Some(hours));
        put("BYMINUTE", Some(minutes).filter(|_| is_long || has_days));
        parts
    }
}

fn text_of(parts: &Parts) -> String {
    parts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(";")
}

/// Returns the numbers of a part, sorted and without duplicates.
fn ordered(parts: &Parts, name: &str) -> Vec<u32> {
    let mut all: Vec<u32> = numbers(parts, name).unwrap().into_iter().map(|number| number as u32).collect();
    all.sort_unstable();
    all.dedup();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_walk_over_days_finds_the_same(
        parts in parts_of(&["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]), day in 0..3_000u64, minute in 0..1_440i64,
    ) {
        let start = time("20240101T000000") + Days::new(day) + TimeDelta::minutes(minute);
        let rule = Rule::parse(&text_of(&parts)).unwrap();
        let mut walked = Vec::new();
        for date in start.date().iter_days().take(1_500) {
            if is_in_step(&parts, start.date(), date) && matches_day(&parts, date) {
                for hour in ordered(&parts, "BYHOUR") {
                    walked.extend(ordered(&parts, "BYMINUTE").iter().filter_map(|minute| date.and_hms_opt(hour, *minute, 0)));
                }
            }
        }
        walked.retain(|at| *at >= start);
        let end = start.date() + Days::new(1_500);
        let found: Vec<_> = rule.times(start, start).take_while(|at| at.date() < end).collect();
        prop_assert_eq!(found, walked, "{} from {}", text_of(&parts), start);
    }

    #[test]
    fn a_walk_over_minutes_finds_the_same(
        parts in parts_of(&["HOURLY", "MINUTELY"]), day in 0..3_000u64, minute in 0..1_440i64,
    ) {
        let start = time("20240101T000000") + Days::new(day) + TimeDelta::minutes(minute);
        let parts = {
            let mut parts = parts;
            // Drop parts that make matches rare, to keep the naive search short.
            parts.remove("BYYEARDAY");
            parts.remove("BYMONTHDAY");
            parts.remove("BYMONTH");
            parts
        };
        let rule = Rule::parse(&text_of(&parts)).unwrap();
        let is_hourly = parts["FREQ"] == "HOURLY";
        let interval: i64 = parts.get("INTERVAL").map_or(1, |interval| interval.parse().unwrap());
        let begin = if is_hourly { start.with_minute(0).unwrap() } else { start };
        let minutes = numbers(&parts, "BYMINUTE").or(is_hourly.then(|| vec![start.minute().into()]));
        let mut walked = Vec::new();
        for ahead in 0..7 * 1_440i64 {
            let at = start + TimeDelta::minutes(ahead);
            let passed = (at - begin).num_minutes() / if is_hourly { 60 } else { 1 };
            if passed % interval == 0
                && ordered(&parts, "BYHOUR").contains(&at.hour())
                && minutes.as_ref().is_none_or(|minutes| minutes.contains(&at.minute().into()))
                && matches_day(&parts, at.date())
            {
                walked.push(at);
            }
        }
        let end = start + Days::new(7);
        let found: Vec<_> = rule.times(start, start).take_while(|at| *at < end).collect();
        prop_assert_eq!(found, walked, "{} from {}", text_of(&parts), start);
    }

    #[test]
    fn a_rule_is_the_same_from_each_of_its_times(
        parts in parts_of(&["MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"]),
        place in prop::option::of(-4..=4i32), day in 0..3_000u64, minute in 0..1_440i64,
    ) {
        let place = place.filter(|place| *place != 0).map_or(String::new(), |place| format!(";BYSETPOS={place}"));
        let text = format!("{}{place}", text_of(&parts));
        let start = time("20240101T000000") + Days::new(day) + TimeDelta::minutes(minute);
        let rule = Rule::parse(&text).unwrap();
        let all: Vec<_> = rule.times(start, start).take(40).collect();
        prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{}: {:?}", text, all);
        prop_assert!(all.iter().all(|at| *at >= start && matches_day(&parts, at.date())), "{}", text);
        for (place, at) in all.iter().enumerate().take(12) {
            let rest = &all[place..(place + 8).min(all.len())];
            // Evaluation from a later time, and a series that begins there, give the same times.
            prop_assert_eq!(&rule.times(start, *at).take(rest.len()).collect::<Vec<_>>()[..], rest, "{}", &text);
            prop_assert_eq!(&rule.times(*at, *at).take(rest.len()).collect::<Vec<_>>()[..], rest, "{}", &text);
            let next = rule.times(start, *at + TimeDelta::seconds(1)).next();
            prop_assert_eq!(next.as_ref(), all.get(place + 1).or(next.as_ref()), "{}", &text);
        }
    }

    #[test]
    fn no_rule_breaks_the_service(
        frequency in prop::sample::select(vec!["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]),
        parts in prop::collection::vec(
            (
                prop::sample::select(vec!["INTERVAL", "BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS"]),
                "[-+]?[0-9]{1,4}(,[-+]?[0-9]{0,3}(MO|TU|SU)?){0,3}|[1-9]?(MO|FR)",
            ),
            0..4,
        ),
        year in 1..10_000i32,
    ) {
        let rest: String = parts.iter().map(|(name, value)| format!(";{name}={value}")).collect();
        let text = format!("FREQ={frequency}{rest}");
        let start = NaiveDate::from_ymd_opt(year, 12, 31).unwrap().and_hms_opt(23, 59, 59).unwrap();
        for rule in [Rule::parse(&text), Rule::parse_stored(&text)].into_iter().flatten() {
            let found: Vec<_> = rule.times(start, start).take(3).collect();
            prop_assert!(found.iter().all(|at| *at >= start), "{}", text);
        }
        let _ = Rule::parse(&rest);
    }
}
