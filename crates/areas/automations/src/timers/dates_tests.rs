use super::*;
use crate::triggers::timers::DateObject;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn day(text: &str) -> DateValue {
    DateValue::parse(text).unwrap()
}

fn rule(offset: Offset, time: Option<&str>, timezone: DateZone) -> DateRule {
    let at = time.map(str::to_owned);
    let (object, field) = (DateObject::Contact, "renewal".to_owned());
    DateRule::of(&DateField { object, collection_id: None, field, offset, at, timezone }).unwrap()
}

#[test]
fn a_date_fires_at_its_time_of_day() {
    let madrid = Tz::Europe__Madrid;
    let days = |days| Offset { days, ..Offset::default() };
    for (offset, time, value, fires) in [
        (days(-3), Some("09:00"), "2026-12-10", "2026-12-07T08:00:00Z"),
        (days(0), None, "2026-07-01", "2026-07-01T07:00:00Z"),
        // Two days before is at the same time of day, although clocks are changed in between.
        (days(-2), None, "2026-03-30T10:00:00Z", "2026-03-28T11:00:00Z"),
        (Offset { hours: -48, ..Offset::default() }, None, "2026-03-30T10:00:00Z", "2026-03-28T10:00:00Z"),
        // Clocks skip 2:30, so it is as much later as they jump.
        (days(0), Some("02:30"), "2026-03-29", "2026-03-29T01:30:00Z"),
        // 2:30 occurs twice, and the first counts.
        (days(0), Some("02:30"), "2026-10-25", "2026-10-25T00:30:00Z"),
        (days(0), Some("18:00"), "2026-12-10T22:30:00Z", "2026-12-10T17:00:00Z"),
        // It is the 11th in Madrid.
        (days(0), Some("18:00"), "2026-12-10T23:30:00Z", "2026-12-11T17:00:00Z"),
        (Offset { days: 1, hours: 2, minutes: -30 }, Some("09:00"), "2026-12-31", "2027-01-01T09:30:00Z"),
    ] {
        let found = rule(offset, time, DateZone::Workspace).moment(day(value), madrid);
        assert_eq!(found, at(fires), "{offset:?} {time:?} {value}");
    }
    assert_eq!(DateValue::parse("soon"), None);
    assert_eq!(DateValue::parse("2026-02-30"), None);
}

proptest! {
    /// Whatever fires within a span is among the candidates, and at a look.
    #[test]
    fn nothing_is_overlooked(
        days in -400_i64..400, hours in -200_i64..200, minutes in -200_i64..200,
        time in prop::option::of(0_u32..24 * 60), by_contact: bool, is_day: bool,
        value in 1_790_000_000_i64..1_830_000_000, zone in prop::sample::select(vec![
            Tz::UTC, Tz::Europe__Madrid, Tz::America__St_Johns, Tz::Asia__Kathmandu, Tz::Pacific__Kiritimati,
            Tz::Pacific__Pago_Pago, Tz::Australia__Lord_Howe,
        ]),
    ) {
        let time = time.map(|time| format!("{:02}:{:02}", time / 60, time % 60));
        let timezone = if by_contact { DateZone::Contact } else { DateZone::Workspace };
        let rule = rule(Offset { days, hours, minutes }, time.as_deref(), timezone);
        let moment = Timestamp::from_millis(value * 1000);
        let value = if is_day { DateValue::Day(moment.day()) } else { DateValue::Moment(moment) };
        let fires = rule.moment(value, zone);
        let (first, last) = rule.candidates(fires.plus_seconds(-1), fires);
        prop_assert!(first <= moment.day() && moment.day() <= last, "{first} {} {last}", moment.day());
        let looks = rule.next_look(is_day, zone, fires.plus_seconds(-1));
        let latest = if is_day || time.is_some() { fires } else { fires.plus_seconds(60) };
        prop_assert!(fires <= looks.plus_seconds(1) && looks <= latest, "{fires} {looks}");
    }
}
