//! Accepted rules, and the errors of refused ones.

use super::*;

fn refused(rule: &str) -> String {
    match Rule::parse(rule) {
        Ok(_) => panic!("{rule} is accepted"),
        Err(why) => why,
    }
}

#[test]
fn what_rfc_5545_allows_is_read() {
    for rule in [
        "FREQ=MONTHLY;BYDAY=-5FR",
        "FREQ=MONTHLY;BYDAY=5FR,+1MO,MO",
        "FREQ=YEARLY;BYDAY=53MO,-53SU",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU",
        "FREQ=YEARLY;BYWEEKNO=20",
        "FREQ=YEARLY;BYWEEKNO=-1,53;BYDAY=MO",
        "FREQ=HOURLY;BYYEARDAY=-366",
        "FREQ=MINUTELY;BYMONTHDAY=31;BYDAY=MO",
        "FREQ=DAILY;BYMONTHDAY=-31",
        "FREQ=DAILY;BYSECOND=59;BYSETPOS=-1",
        "FREQ=DAILY;INTERVAL=65535",
        "FREQ=DAILY;COUNT=10",
        "FREQ=DAILY;UNTIL=20271231",
        "FREQ=DAILY;UNTIL=20271231T235959Z",
        "FREQ=DAILY;UNTIL=20271231T235959",
        "BYDAY=MO;FREQ=WEEKLY;WKST=SU",
        "freq=weekly;byday=mo",
    ] {
        assert!(Rule::parse(rule).is_ok(), "{rule}: {:?}", Rule::parse(rule));
    }
    assert_eq!(Rule::parse("freq=weekly;byday=mo,mo"), Rule::parse("FREQ=WEEKLY;BYDAY=MO"));
}

#[test]
fn numbers_of_weekdays_count_within_months_and_years_only() {
    for rule in [
        "FREQ=WEEKLY;BYDAY=1MO",
        "FREQ=WEEKLY;BYDAY=MO,1WE",
        "FREQ=WEEKLY;BYDAY=-1MO",
        "FREQ=DAILY;BYDAY=1MO",
        "FREQ=HOURLY;BYDAY=2TU",
        "FREQ=MINUTELY;BYDAY=2TU",
        "FREQ=SECONDLY;BYDAY=2TU",
    ] {
        let why = refused(rule);
        assert!(why.contains("only MONTHLY and YEARLY"), "{rule}: {why}");
    }
    assert!(refused("FREQ=WEEKLY;BYDAY=MO,1WE").contains("`1WE` in BYDAY with FREQ=WEEKLY"));
    assert!(refused("FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO").contains("with BYWEEKNO"));
    for (rule, range) in [
        ("FREQ=MONTHLY;BYDAY=6MO", "from 1 to 5, or from -5 to -1"),
        ("FREQ=MONTHLY;BYDAY=-6MO", "from 1 to 5, or from -5 to -1"),
        ("FREQ=MONTHLY;BYDAY=0MO", "from 1 to 5, or from -5 to -1"),
        ("FREQ=YEARLY;BYMONTH=1;BYDAY=6MO", "from 1 to 5, or from -5 to -1"),
        ("FREQ=YEARLY;BYDAY=54MO", "from 1 to 53, or from -53 to -1"),
        ("FREQ=YEARLY;BYDAY=-54MO", "from 1 to 53, or from -53 to -1"),
    ] {
        let why = refused(rule);
        assert!(why.ends_with(range), "{rule}: {why}");
    }
}

#[test]
fn parts_that_do_not_go_together_are_refused() {
    for (rule, why) in [
        ("FREQ=WEEKLY;BYMONTHDAY=1", "cannot have BYMONTHDAY with FREQ=WEEKLY"),
        ("FREQ=DAILY;BYYEARDAY=1", "cannot have BYYEARDAY with FREQ=DAILY"),
        ("FREQ=WEEKLY;BYYEARDAY=1", "cannot have BYYEARDAY with FREQ=WEEKLY"),
        ("FREQ=MONTHLY;BYYEARDAY=1", "cannot have BYYEARDAY with FREQ=MONTHLY"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "cannot have BYWEEKNO with FREQ=MONTHLY"),
        ("FREQ=DAILY;BYWEEKNO=1", "cannot have BYWEEKNO with FREQ=DAILY"),
        ("FREQ=HOURLY;BYWEEKNO=1", "cannot have BYWEEKNO with FREQ=HOURLY"),
        ("FREQ=MONTHLY;BYSETPOS=1", "must have another part with BY, such as BYDAY, with BYSETPOS"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20270101", "must have either COUNT or UNTIL"),
        ("FREQ=DAILY;FREQ=WEEKLY", "must have FREQ only once"),
        ("FREQ=WEEKLY;BYDAY=MO;BYDAY=TU", "must have BYDAY only once"),
        ("INTERVAL=2", "must have a FREQ, such as `FREQ=DAILY`"),
    ] {
        assert_eq!(refused(rule), why, "{rule}");
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for (rule, part) in [
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY from 1 to 31, or from -31 to -1"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY from 1"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,-32", "BYMONTHDAY from 1"),
        ("FREQ=YEARLY;BYYEARDAY=0", "BYYEARDAY from 1 to 366"),
        ("FREQ=YEARLY;BYYEARDAY=367", "BYYEARDAY from 1 to 366"),
        ("FREQ=YEARLY;BYWEEKNO=0", "BYWEEKNO from 1 to 53"),
        ("FREQ=YEARLY;BYWEEKNO=54", "BYWEEKNO from 1 to 53"),
        ("FREQ=YEARLY;BYMONTH=0", "BYMONTH from 1 to 12"),
        ("FREQ=YEARLY;BYMONTH=-1", "BYMONTH from 1 to 12"),
        ("FREQ=YEARLY;BYMONTH=13", "BYMONTH from 1 to 12"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR from 0 to 23"),
        ("FREQ=DAILY;BYMINUTE=60", "BYMINUTE from 0 to 59"),
        ("FREQ=DAILY;BYSECOND=60", "BYSECOND from 0 to 59"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "BYSETPOS from 1 to 366"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=-367", "BYSETPOS from 1 to 366"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL from 1 to 65,535"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL from 1 to 65,535"),
        ("FREQ=DAILY;INTERVAL=65536", "INTERVAL from 1 to 65,535"),
        ("FREQ=DAILY;INTERVAL=99999999999999999999", "INTERVAL from 1 to 65,535"),
        ("FREQ=DAILY;COUNT=0", "COUNT of at least 1"),
        ("FREQ=DAILY;COUNT=x", "COUNT of at least 1"),
        ("FREQ=DAILY;UNTIL=20270230", "UNTIL such as"),
        ("FREQ=DAILY;UNTIL=2027-01-01", "UNTIL such as"),
        ("FREQ=DAILY;UNTIL=20270101Z", "UNTIL such as"),
        ("FREQ=DAILY;UNTIL=20270101T9", "UNTIL such as"),
        ("FREQ=DAILY;WKST=XX", "as its WKST"),
        ("FREQ=SOMETIMES", "as its FREQ"),
    ] {
        let why = refused(rule);
        assert!(why.contains(part) && why.starts_with("must have"), "{rule}: {why}");
    }
}

#[test]
fn what_is_no_rule_is_refused() {
    for rule in [
        "",
        ";",
        "=",
        "FREQ",
        "FREQ=",
        "FREQ=DAILY;",
        "FREQ=DAILY;;BYDAY=MO",
        "FREQ=DAILY;BYDAY",
        "FREQ=DAILY;BYDAY=",
        "FREQ=DAILY;BYDAY=MO,",
        "FREQ=DAILY;BYDAY=,MO",
        "FREQ=DAILY;BYDAY=XX",
        "FREQ=DAILY;BYDAY=M",
        "FREQ=DAILY;BYDAY=é",
        "FREQ=DAILY;BYDAY=éMO",
        "FREQ=DAILY;BYDAY=1.5MO",
        "FREQ=DAILY;BYHOUR=9.5",
        "FREQ=DAILY;BYHOUR= 9",
        "FREQ=DAILY;BYHOUR=--9",
        "FREQ=DAILY;X-OWN=1",
        "FREQ=DAILY;BYEASTER=1",
        "FREQ=DAILY;SKIP=BACKWARD",
        "FREQ=DAILY;BYDAY=MO\nDTSTART:20260101",
        "every monday",
    ] {
        refused(rule);
    }
    assert!(
        refused("FREQ=DAILY;BYEASTER=1").starts_with("cannot have `BYEASTER`; the parts of a rule are FREQ,")
    );
}

#[test]
fn rules_that_were_stored_before_keep_what_they_can_mean() {
    for (stored, means) in [
        ("FREQ=WEEKLY;BYDAY=1MO", "FREQ=WEEKLY;BYDAY=MO"),
        ("FREQ=DAILY;BYDAY=1MO", "FREQ=DAILY;BYDAY=MO"),
        ("FREQ=MONTHLY;BYDAY=0MO,1TU", "FREQ=MONTHLY;BYDAY=MO,1TU"),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "FREQ=MONTHLY"),
        ("FREQ=MONTHLY;BYMONTHDAY=0,15", "FREQ=MONTHLY;BYMONTHDAY=15"),
        ("freq=daily;byweekday=mo;", "FREQ=DAILY;BYDAY=MO"),
        ("FREQ=DAILY;BYDAY=", "FREQ=DAILY"),
        ("FREQ=MONTHLY;BYDAY=-5FR", "FREQ=MONTHLY;BYDAY=-5FR"),
    ] {
        assert_eq!(Rule::parse_stored(stored), Rule::parse(means), "{stored}");
    }
    assert!(Rule::parse_stored("FREQ=OFTEN").is_err());
}
