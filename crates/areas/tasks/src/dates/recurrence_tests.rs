//! Recurrence rules compared with the examples in python-dateutil's documentation, and across clock changes.

use super::*;
use calendar::instant as moment;
use chrono::NaiveDate;
use proptest::prelude::*;

fn local(text: &str) -> NaiveDateTime {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap()
}

/// Returns the days of a series, each computed from the one before, as completing tasks does.
fn series(rule: &str, from: &str, most: usize) -> Vec<String> {
    let rule = Rule::parse(rule).unwrap();
    let mut at = local(&format!("{from} 09:00"));
    let mut days = vec![from.to_owned()];
    while days.len() < most.min(rule.count.map_or(usize::MAX, |count| usize::try_from(count).unwrap())) {
        let Some(next) = rule.next(at, at, Tz::America__New_York) else { break };
        days.push(next.format("%Y-%m-%d").to_string());
        at = next;
    }
    days
}

/// A rule, its first day, and the days in python-dateutil's documentation.
const EXAMPLES: &[(&str, &str, &[&str])] = &[
    ("FREQ=DAILY;COUNT=4", "1997-09-02", &["1997-09-02", "1997-09-03", "1997-09-04", "1997-09-05"]),
    ("FREQ=DAILY;UNTIL=19970905T000000Z", "1997-09-02", &["1997-09-02", "1997-09-03", "1997-09-04"]),
    (
        "FREQ=DAILY;INTERVAL=2;COUNT=5",
        "1997-09-02",
        &["1997-09-02", "1997-09-04", "1997-09-06", "1997-09-08", "1997-09-10"],
    ),
    (
        "FREQ=DAILY;INTERVAL=10;COUNT=5",
        "1997-09-02",
        &["1997-09-02", "1997-09-12", "1997-09-22", "1997-10-02", "1997-10-12"],
    ),
    (
        "FREQ=DAILY;BYMONTH=1;UNTIL=19990103",
        "1998-01-30",
        &["1998-01-30", "1998-01-31", "1999-01-01", "1999-01-02", "1999-01-03"],
    ),
    ("FREQ=WEEKLY;COUNT=4", "1997-09-02", &["1997-09-02", "1997-09-09", "1997-09-16", "1997-09-23"]),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=6",
        "1997-09-02",
        &["1997-09-02", "1997-09-16", "1997-09-30", "1997-10-14", "1997-10-28", "1997-11-11"],
    ),
    (
        "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH",
        "1997-09-02",
        &[
            "1997-09-02",
            "1997-09-04",
            "1997-09-09",
            "1997-09-11",
            "1997-09-16",
            "1997-09-18",
            "1997-09-23",
            "1997-09-25",
            "1997-09-30",
            "1997-10-02",
        ],
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
        "1997-09-02",
        &[
            "1997-09-02",
            "1997-09-04",
            "1997-09-16",
            "1997-09-18",
            "1997-09-30",
            "1997-10-02",
            "1997-10-14",
            "1997-10-16",
        ],
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
        "1997-08-05",
        &["1997-08-05", "1997-08-10", "1997-08-19", "1997-08-24"],
    ),
    (
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
        "1997-08-05",
        &["1997-08-05", "1997-08-17", "1997-08-19", "1997-08-31"],
    ),
    (
        "FREQ=MONTHLY;COUNT=6;BYDAY=1FR",
        "1997-09-05",
        &["1997-09-05", "1997-10-03", "1997-11-07", "1997-12-05", "1998-01-02", "1998-02-06"],
    ),
    (
        "FREQ=MONTHLY;INTERVAL=2;COUNT=6;BYDAY=1SU,-1SU",
        "1997-09-07",
        &["1997-09-07", "1997-09-28", "1997-11-02", "1997-11-30", "1998-01-04", "1998-01-25"],
    ),
    (
        "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
        "1997-09-22",
        &["1997-09-22", "1997-10-20", "1997-11-17", "1997-12-22", "1998-01-19", "1998-02-16"],
    ),
    (
        "FREQ=MONTHLY;COUNT=6;BYMONTHDAY=-3",
        "1997-09-28",
        &["1997-09-28", "1997-10-29", "1997-11-28", "1997-12-29", "1998-01-29", "1998-02-26"],
    ),
    (
        "FREQ=MONTHLY;COUNT=5;BYMONTHDAY=2,15",
        "1997-09-02",
        &["1997-09-02", "1997-09-15", "1997-10-02", "1997-10-15", "1997-11-02"],
    ),
    (
        "FREQ=MONTHLY;COUNT=5;BYMONTHDAY=-1,1",
        "1997-09-30",
        &["1997-09-30", "1997-10-01", "1997-10-31", "1997-11-01", "1997-11-30"],
    ),
    (
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        "1997-09-10",
        &[
            "1997-09-10",
            "1997-09-11",
            "1997-09-12",
            "1997-09-13",
            "1997-09-14",
            "1997-09-15",
            "1999-03-10",
            "1999-03-11",
            "1999-03-12",
            "1999-03-13",
        ],
    ),
    (
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU;COUNT=6",
        "1997-09-02",
        &["1997-09-02", "1997-09-09", "1997-09-16", "1997-09-23", "1997-09-30", "1997-11-04"],
    ),
    (
        "FREQ=YEARLY;COUNT=4;BYMONTH=6,7",
        "1997-06-10",
        &["1997-06-10", "1997-07-10", "1998-06-10", "1998-07-10"],
    ),
    (
        "FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200",
        "1997-01-01",
        &["1997-01-01", "1997-04-10", "1997-07-19", "2000-01-01"],
    ),
    ("FREQ=YEARLY;COUNT=3;BYDAY=20MO", "1997-05-19", &["1997-05-19", "1998-05-18", "1999-05-17"]),
    ("FREQ=YEARLY;COUNT=3;BYWEEKNO=20;BYDAY=MO", "1997-05-12", &["1997-05-12", "1998-05-11", "1999-05-17"]),
    (
        "FREQ=MONTHLY;COUNT=3;BYDAY=FR;BYMONTHDAY=13",
        "1998-02-13",
        &["1998-02-13", "1998-03-13", "1998-11-13"],
    ),
    (
        "FREQ=MONTHLY;COUNT=4;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        "1997-09-13",
        &["1997-09-13", "1997-10-11", "1997-11-08", "1997-12-13"],
    ),
    (
        "FREQ=YEARLY;INTERVAL=4;COUNT=3;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        "1996-11-05",
        &["1996-11-05", "2000-11-07", "2004-11-02"],
    ),
    (
        "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
        "1997-09-04",
        &["1997-09-04", "1997-10-07", "1997-11-06"],
    ),
    (
        "FREQ=MONTHLY;COUNT=4;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "1997-09-29",
        &["1997-09-29", "1997-10-30", "1997-11-27", "1997-12-30"],
    ),
    // Months without the day are left out.
    ("FREQ=MONTHLY;COUNT=4", "1997-01-31", &["1997-01-31", "1997-03-31", "1997-05-31", "1997-07-31"]),
    ("FREQ=YEARLY;COUNT=3", "1996-02-29", &["1996-02-29", "2000-02-29", "2004-02-29"]),
];

#[test]
fn published_examples_are_met() {
    for (rule, first, days) in EXAMPLES {
        assert_eq!(series(rule, first, days.len() + 1).get(..days.len()).unwrap(), *days, "{rule}");
        if rule.contains("COUNT") || rule.contains("UNTIL") {
            assert_eq!(series(rule, first, 50).len(), days.len(), "{rule}");
        }
    }
}

#[test]
fn times_of_day_stay_when_clocks_change() {
    for (zone, rule, at, next, instant) in [
        // Clocks go forward on 29 March 2026 and back on 25 October.
        ("Europe/Madrid", "FREQ=DAILY", "2026-03-28 09:00", "2026-03-29 09:00", "2026-03-29T07:00:00Z"),
        ("Europe/Madrid", "FREQ=DAILY", "2026-10-24 09:00", "2026-10-25 09:00", "2026-10-25T08:00:00Z"),
        // A skipped time moves by the length of the gap; on the next day the original time is back.
        ("Europe/Madrid", "FREQ=DAILY", "2026-03-28 02:30", "2026-03-29 02:30", "2026-03-29T01:30:00Z"),
        ("Europe/Madrid", "FREQ=DAILY", "2026-03-29 02:30", "2026-03-30 02:30", "2026-03-30T00:30:00Z"),
        // A time that occurs twice is the first of the two.
        ("Europe/Madrid", "FREQ=DAILY", "2026-10-24 02:30", "2026-10-25 02:30", "2026-10-25T00:30:00Z"),
        ("America/New_York", "FREQ=WEEKLY", "2026-03-01 02:30", "2026-03-08 02:30", "2026-03-08T07:30:00Z"),
        ("America/Sao_Paulo", "FREQ=DAILY", "2018-11-03 00:00", "2018-11-04 00:00", "2018-11-04T03:00:00Z"),
        // Samoa skipped a whole day.
        ("Pacific/Apia", "FREQ=DAILY", "2011-12-29 09:00", "2011-12-30 09:00", "2011-12-30T19:00:00Z"),
    ] {
        let zone: Tz = zone.parse().unwrap();
        let found = Rule::parse(rule).unwrap().next(local(at), local(at), zone).unwrap();
        assert_eq!(found, local(next), "{zone} {at}");
        assert_eq!(moment(zone, found).rfc3339(), instant.replace('Z', ".000Z"), "{zone} {at}");
    }
}

#[test]
fn what_is_no_rule_is_refused() {
    for rule in [
        "",
        "FREQ",
        "FREQ=",
        "FREQ=HOURLY",
        "FREQ=SECONDLY",
        "INTERVAL=2",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=99999",
        "FREQ=DAILY;COUNT=0",
        "FREQ=DAILY;COUNT=x",
        "FREQ=DAILY;UNTIL=tomorrow",
        "FREQ=DAILY;COUNT=2;UNTIL=20270101",
        "FREQ=DAILY;FREQ=WEEKLY",
        "FREQ=DAILY;BYHOUR=9",
        "FREQ=DAILY;BYDAY=XX",
        "FREQ=DAILY;BYMONTHDAY=32",
        "FREQ=DAILY;X=1",
        "FREQ=YEARLY;BYMONTH=13",
        "freq=daily",
        "FREQ=DAILY;BYDAY=MO\nDTSTART:20260101",
        "FREQ=WEEKLY;BYDAY=é",
    ] {
        assert!(Rule::parse(rule).is_err(), "{rule}");
    }
    assert!(Rule::parse("RRULE:FREQ=DAILY").is_ok());
    // The rule matches no day.
    let never = Rule::parse("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30").unwrap();
    assert_eq!(never.next(local("2026-01-01 09:00"), local("2026-01-01 09:00"), Tz::UTC), None);
}

proptest! {
    #[test]
    fn no_rule_breaks_the_service(
        frequency in prop::sample::select(vec!["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]),
        parts in prop::collection::vec(
            (prop::sample::select(PARTS.to_vec()), "[-+]?[0-9]{1,4}(,[-+]?[0-9]{0,3}(MO|TU|SU)?){0,3}"), 0..4),
        year in 1960i32..2210,
    ) {
        let rest: String = parts.iter().map(|(name, value)| format!(";{name}={value}")).collect();
        if let Ok(rule) = Rule::parse(&format!("FREQ={frequency}{rest}")) {
            let at = NaiveDate::from_ymd_opt(year, 2, 28).unwrap().and_hms_opt(23, 30, 0).unwrap();
            if let Some(next) = rule.next(at, at, Tz::Europe__Madrid) {
                prop_assert!(next > at);
            }
        }
    }
}
