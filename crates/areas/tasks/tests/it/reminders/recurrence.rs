//! The dates of recurrences.

use super::Fixture;
use chrono::Duration;
use model::Timestamp;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_recurrence_keeps_its_local_time_and_ends(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    // In Madrid, clocks go forward on the night before the second date.
    let start = Timestamp::parse("2027-03-27T08:00:00Z").unwrap();
    let minutes = (start.seconds() - fixture.now().seconds()) / 60;
    fixture.app.data.clock.advance(Duration::minutes(minutes - 10));
    let daily = json!({ "type": "rrule", "rule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0", "count": 3 });
    let made =
        fixture.create(json!({ "title": "x", "recurrence": daily, "timezone": "Europe/Madrid" })).await;
    assert_eq!(made["next_fire_at"], "2027-03-27T08:00:00.000Z");
    fixture.wait(11).await;
    for _ in 0..4 {
        fixture.wait(24 * 60).await;
    }
    assert_eq!(
        fixture.fired().await,
        ["2027-03-27T08:00:00.000Z", "2027-03-28T07:00:00.000Z", "2027-03-29T07:00:00.000Z"]
    );
    let over = fixture.get(&made).await;
    assert_eq!(
        (&over["status"], &over["fire_count"], &over["next_fire_at"]),
        (&json!("fired"), &json!(3), &Value::Null)
    );
    // An end by date, with a cron expression.
    let hourly = json!({ "type": "cron", "rule": "0 * * * *", "until": fixture.after(150) });
    let made = fixture.create(json!({ "title": "x", "recurrence": hourly })).await;
    for _ in 0..5 {
        fixture.wait(60).await;
    }
    assert_eq!(fixture.get(&made).await["fire_count"], 2);
    assert_eq!(fixture.get(&made).await["status"], "fired");
}

#[testkit::both]
async fn rules_that_rfc_5545_does_not_allow_are_refused(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    for (rule, words) in [
        ("FREQ=WEEKLY;BYDAY=1MO", "cannot have `1MO` in BYDAY with FREQ=WEEKLY"),
        ("FREQ=DAILY;BYDAY=1MO", "cannot have `1MO` in BYDAY with FREQ=DAILY"),
        ("FREQ=MINUTELY;INTERVAL=30;BYDAY=1MO", "cannot have `1MO` in BYDAY with FREQ=MINUTELY"),
        ("FREQ=MONTHLY;BYDAY=6MO", "numbers in BYDAY from 1 to 5, or from -5 to -1"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY from 1 to 31, or from -31 to -1"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "cannot have BYMONTHDAY with FREQ=WEEKLY"),
        ("FREQ=WEEKLY;BYYEARDAY=1", "cannot have BYYEARDAY with FREQ=WEEKLY"),
        ("FREQ=HOURLY;BYWEEKNO=20", "cannot have BYWEEKNO with FREQ=HOURLY"),
        ("FREQ=DAILY;BYSETPOS=1", "another part with BY, such as BYDAY, with BYSETPOS"),
        ("FREQ=DAILY;BYHOUR=9;BYSETPOS=0", "BYSETPOS from 1 to 366"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR from 0 to 23"),
        ("FREQ=DAILY;BYMINUTE=60", "BYMINUTE from 0 to 59"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL from 1 to 65,535"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20310101", "either COUNT or UNTIL"),
        ("FREQ=DAILY;UNTIL=20310101", "must not have `COUNT` or `UNTIL`"),
        ("FREQ=DAILY;FREQ=WEEKLY", "FREQ only once"),
        ("FREQ=DAILY;BYEASTER=1", "cannot have `BYEASTER`"),
        ("FREQ=DAILY;BYHOUR=9;BYMINUTE=0,4", "at least 5 minutes between two dates"),
        ("FREQ=MINUTELY;INTERVAL=60;BYDAY=MO;BYMINUTE=61", "BYMINUTE from 0 to 59"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "has no date after `due_at`"),
        ("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=31", "has no date after `due_at`"),
    ] {
        let body = json!({ "title": "x", "due_at": "2030-01-05T04:30:00Z", "recurrence": { "type": "rrule", "rule": rule } });
        let answer = fixture.app.post("/reminders", &fixture.key, body).await;
        let message = answer.body["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            answer.expect_error(400, "validation_error").as_deref(),
            Some("recurrence.rule"),
            "{rule}"
        );
        assert!(message.contains(words), "{rule}: {message}");
    }
}

#[testkit::both]
async fn steps_leave_no_date_out(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let office = "BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16,17";
    for (rule, first) in [
        (format!("FREQ=MINUTELY;INTERVAL=30;{office}"), "2030-01-07T09:00"),
        ("FREQ=MINUTELY;INTERVAL=20;BYDAY=MO;BYHOUR=9".into(), "2030-01-07T09:10"),
        ("FREQ=MINUTELY;INTERVAL=7;BYHOUR=9".into(), "2030-01-05T09:03"),
        ("FREQ=MINUTELY;INTERVAL=45;BYDAY=MO;BYHOUR=9".into(), "2030-01-07T09:00"),
        ("FREQ=MINUTELY;INTERVAL=5;BYMONTH=2;BYMONTHDAY=29".into(), "2032-02-29T00:00"),
        ("FREQ=HOURLY;INTERVAL=5;BYDAY=MO".into(), "2030-01-07T01:30"),
        ("FREQ=HOURLY;BYYEARDAY=-1;BYHOUR=8".into(), "2030-12-31T08:30"),
        ("FREQ=MONTHLY;BYDAY=-5FR".into(), "2030-03-01T04:30"),
        ("FREQ=YEARLY;BYWEEKNO=20".into(), "2030-05-18T04:30"),
    ] {
        let body = json!({ "title": "x", "timezone": "UTC", "due_at": "2030-01-05T04:30:00Z", "recurrence": { "type": "rrule", "rule": rule } });
        assert_eq!(fixture.create(body).await["next_fire_at"], format!("{first}:00.000Z"), "{rule}");
    }
    // Fractions of seconds in `due_at` do not make the rule skip its first date.
    let daily = json!({ "type": "rrule", "rule": "FREQ=DAILY" });
    let body =
        json!({ "title": "x", "timezone": "UTC", "due_at": "2030-01-05T04:30:00.345Z", "recurrence": daily });
    assert_eq!(fixture.create(body).await["next_fire_at"], "2030-01-05T04:30:00.000Z");
    // After the date on Friday comes Monday.
    let friday = Timestamp::parse("2030-01-11T10:00:00Z").unwrap();
    fixture.app.data.clock.advance(Duration::seconds(friday.seconds() - fixture.now().seconds()));
    let rule = json!({ "type": "rrule", "rule": "FREQ=MINUTELY;INTERVAL=60;BYDAY=FR,MO;BYHOUR=10" });
    let made = fixture
        .create(json!({ "title": "y", "timezone": "UTC", "due_at": friday, "recurrence": rule }))
        .await;
    assert_eq!(made["next_fire_at"], "2030-01-11T10:00:00.000Z");
    fixture.wait(1).await;
    let fired = fixture.get(&made).await;
    assert_eq!(
        (&fired["fire_count"], &fired["next_fire_at"]),
        (&json!(1), &json!("2030-01-14T10:00:00.000Z"))
    );
}

#[testkit::both]
async fn a_stored_rule_that_is_refused_by_now_means_its_weekdays(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let monday = Timestamp::parse("2030-01-07T09:00:00Z").unwrap();
    fixture.app.data.clock.advance(Duration::seconds(monday.seconds() - fixture.now().seconds()));
    let weekly = json!({ "type": "rrule", "rule": "FREQ=WEEKLY;BYDAY=MO" });
    let made = fixture
        .create(json!({ "title": "x", "timezone": "UTC", "due_at": monday, "recurrence": weekly }))
        .await;
    fixture
        .app
        .sql(format!(
            "UPDATE reminders SET recurrence = REPLACE(recurrence, 'BYDAY=MO', 'BYDAY=1MO') WHERE id = {}",
            made["id"]
        ))
        .await;
    fixture.wait(1).await;
    let fired = fixture.get(&made).await;
    assert_eq!(
        (&fired["status"], &fired["next_fire_at"]),
        (&json!("scheduled"), &json!("2030-01-14T09:00:00.000Z"))
    );
}
