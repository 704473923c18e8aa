//! Opening hours and quiet hours around changes of clocks.

use super::*;

fn minutes(text: &str) -> i64 {
    let (hours, minutes) = text.split_once(':').unwrap();
    hours.parse::<i64>().unwrap() * 60 + minutes.parse::<i64>().unwrap()
}

fn hours(text: &str) -> Vec<DayHours> {
    text.split(", ")
        .map(|one| {
            let [day, open, close] = one.split(' ').collect::<Vec<_>>()[..] else { panic!("{one}") };
            DayHours { day: day.parse().unwrap(), open: minutes(open), close: minutes(close) }
        })
        .collect()
}

/// Whether a business is open, or else when it opens.
fn opening(zone: &str, week: &str, holidays: &[(&str, bool)], at: &str) -> String {
    let hours = hours(week);
    let is_holiday = |date: NaiveDate| {
        holidays.iter().any(|(holiday, yearly)| {
            let holiday: NaiveDate = holiday.parse().unwrap();
            holiday == date || (*yearly && (holiday.month(), holiday.day()) == (date.month(), date.day()))
        })
    };
    let week = OpeningHours { zone: zone.parse().unwrap(), hours: &hours, is_holiday };
    match week.opening(Timestamp::parse(at).unwrap()) {
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
    assert!(!hours("monday 24:00 02:00")[0].are_valid());
    assert!(!hours("monday 09:00 09:00")[0].are_valid());
    assert!(hours("monday 00:00 24:00")[0].are_valid());
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
        // What began the day before goes on.
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
    // In Madrid 02:00 is followed by 03:00 on 2026-03-29, at 01:00 UTC.
    for (week, at, expected) in [
        ("sunday 02:30 05:00", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00.000Z"),
        ("sunday 02:30 05:00", "2026-03-29T01:00:00Z", "open"),
        ("sunday 02:30 05:00", "2026-03-29T02:59:59Z", "open"),
        ("sunday 02:30 05:00", "2026-03-29T03:00:00Z", "2026-04-05T00:30:00.000Z"),
        ("saturday 22:00 02:30", "2026-03-29T00:59:59Z", "open"),
        ("saturday 22:00 02:30", "2026-03-29T01:00:00Z", "2026-04-04T20:00:00.000Z"),
        // It is skipped as a whole.
        ("sunday 02:00 03:00", "2026-03-28T12:00:00Z", "2026-04-05T00:00:00.000Z"),
        ("monday 09:00 18:00", "2026-03-28T12:00:00Z", "2026-03-30T07:00:00.000Z"),
    ] {
        assert_eq!(opening("Europe/Madrid", week, &[], at), expected, "{week} {at}");
    }
    // Samoa left out 30 December 2011.
    let apia = |at| opening("Pacific/Apia", "friday 09:00 17:00, saturday 09:00 17:00", &[], at);
    assert_eq!(apia("2011-12-30T09:59:00Z"), "2011-12-30T19:00:00.000Z");
}

#[test]
fn clocks_go_back() {
    // In Madrid 03:00 is followed by 02:00 on 2026-10-25, at 01:00 UTC.
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

#[test]
fn quiet_hours_end_by_the_clock() {
    let at = |text: &str| Timestamp::parse(text).unwrap();
    let night = QuietHours { from: 21 * 60, to: 8 * 60 };
    for (now, end) in [
        ("2026-01-15T19:59:00Z", None),
        ("2026-01-15T20:00:00Z", Some("2026-01-16T07:00:00Z")),
        ("2026-01-16T06:59:59Z", Some("2026-01-16T07:00:00Z")),
        ("2026-01-16T07:00:00Z", None),
        // Clocks are put forward in the night.
        ("2026-03-28T22:00:00Z", Some("2026-03-29T06:00:00Z")),
    ] {
        assert_eq!(night.until(Tz::Europe__Madrid, at(now)), end.map(at), "{now}");
    }
    let noon = QuietHours { from: 12 * 60, to: 14 * 60 };
    let tokyo = Tz::Asia__Tokyo;
    assert_eq!(noon.until(tokyo, at("2026-01-15T03:30:00Z")), Some(at("2026-01-15T05:00:00Z")));
    assert_eq!(noon.until(tokyo, at("2026-01-15T12:00:00Z")), None);
}
