//! Schedules.

use super::moment;
use crate::{Shop, automation};
use chrono::Duration;
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

fn schedule(config: &Value) -> Value {
    json!({ "type": "schedule", "config": config })
}

fn fired(slots: &[&str]) -> Vec<(Value, Value)> {
    slots.iter().map(|slot| (json!(moment(slot)), json!("dispatched"))).collect()
}

#[testkit::both]
async fn a_slot_fires_once(kind: Kind) {
    let shop = Shop::open(kind).await;
    let config = json!({ "cron": "0 9 * * *", "timezone": "Europe/Madrid" });
    let path = shop.automation(schedule(&config), json!({})).await;
    assert_eq!(shop.next(&path).await, Some(moment("2026-01-16T08:00Z")));
    shop.at(moment("2026-01-16T07:59Z")).await;
    assert_eq!(shop.executions(&path).await, Vec::<Value>::new());
    shop.at(moment("2026-01-16T08:00Z")).await;
    shop.wait(1).await;
    assert_eq!(shop.fired(&path, "slot").await, fired(&["2026-01-16T08:00Z"]));
    assert_eq!(shop.next(&path).await, Some(moment("2026-01-17T08:00Z")));
    let started = shop.flows.started();
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].payload, json!({ "slot": "2026-01-16T08:00:00.000Z", "is_missed": false }));
    let firing = shop.executions(&path).await[0].clone();
    assert_eq!((&firing["kind"], &firing["contact_id"]), (&json!("schedule"), &Value::Null));
}

/// Goes from slot to slot through the hour that is skipped, and through the one that comes twice.
#[testkit::both]
async fn changes_of_clocks_neither_skip_nor_double(kind: Kind) {
    let shop = Shop::open(kind).await;
    let madrid = |cron: &str| schedule(&json!({ "cron": cron, "timezone": "Europe/Madrid" }));
    for (start, first, daily) in [
        ("2026-03-28T23:45Z", "2026-03-29T00:00Z", ["2026-03-29T01:30Z", "2026-03-30T00:30Z"]),
        ("2026-10-24T23:15Z", "2026-10-24T23:30Z", ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]),
    ] {
        shop.at(moment(start)).await;
        let at_night = shop.automation(madrid("30 2 * * *"), json!({ "name": "daily" })).await;
        let often = shop.automation(madrid("*/30 * * * *"), json!({ "name": "often" })).await;
        for _ in 0..7 {
            shop.at(shop.next(&often).await.unwrap()).await;
        }
        let slots = shop.fired(&often, "slot").await;
        let half_hours = (0..7).map(|number| moment(first).plus_seconds(1_800 * number));
        let half_hours: Vec<_> = half_hours.map(|slot| (json!(slot), json!("dispatched"))).collect();
        assert_eq!(slots, half_hours, "{start}");
        shop.app.delete(&often, &shop.key).await.expect(200);
        shop.at(shop.next(&at_night).await.unwrap()).await;
        assert_eq!(shop.fired(&at_night, "slot").await, fired(&daily), "{start}");
        shop.app.delete(&at_night, &shop.key).await.expect(200);
    }
}

#[testkit::both]
async fn slots_that_were_missed_are_made_up_for(kind: Kind) {
    let shop = Shop::open(kind).await;
    let hourly = |catch_up: &str, cron: &str| schedule(&json!({ "cron": cron, "catch_up": catch_up }));
    let none = shop.automation(hourly("none", "0 * * * *"), json!({ "name": "none" })).await;
    let latest = shop.automation(hourly("latest", "0 * * * *"), json!({ "name": "latest" })).await;
    let all = shop.automation(hourly("all", "0 * * * *"), json!({ "name": "all" })).await;
    let dense = shop.automation(hourly("all", "* * * * *"), json!({ "name": "dense" })).await;
    shop.at(moment("2026-01-15T15:20Z")).await;
    let missed = |slot: &str| vec![(json!(moment(slot)), json!("missed"))];
    assert_eq!(shop.fired(&none, "slot").await, missed("2026-01-15T15:00Z"));
    assert_eq!(shop.fired(&latest, "slot").await, fired(&["2026-01-15T15:00Z"]));
    let slots = ["2026-01-15T13:00Z", "2026-01-15T14:00Z", "2026-01-15T15:00Z"];
    assert_eq!(shop.fired(&all, "slot").await, fired(&slots));
    assert!(shop.executions(&all).await.iter().all(|firing| firing["data"]["is_missed"] == true));
    let found = shop.fired(&dense, "slot").await;
    let first = moment("2026-01-15T15:11Z");
    let expected: Vec<_> =
        (0..10).map(|ahead| (json!(first.plus_seconds(ahead * 60)), json!("dispatched"))).collect();
    assert_eq!(found, expected);
    // The next slot follows from the rule and the present moment.
    for path in [&none, &latest, &all] {
        assert_eq!(shop.next(path).await, Some(moment("2026-01-15T16:00Z")));
    }
    shop.at(moment("2026-01-15T16:00Z")).await;
    for (path, count) in [(&none, 2), (&latest, 2), (&all, 4)] {
        let found = shop.fired(path, "slot").await;
        assert_eq!((found.len(), found.last()), (count, fired(&["2026-01-15T16:00Z"]).last()));
    }
}

#[testkit::both]
async fn a_slot_can_wait_for_the_run_of_an_earlier_one(kind: Kind) {
    let shop = Shop::open(kind).await;
    let each =
        |overlap: &str| schedule(&json!({ "every": { "n": 10, "unit": "minutes" }, "overlap": overlap }));
    let skip = shop.automation(each("skip"), json!({ "name": "skip" })).await;
    let queue = shop.automation(each("queue"), json!({ "name": "queue" })).await;
    let allow = shop.automation(each("allow"), json!({ "name": "allow" })).await;
    shop.wait(10).await;
    shop.wait(10).await;
    let outcomes = async |path: &str| {
        let fired = shop.fired(path, "slot").await;
        fired.into_iter().map(|(_, outcome)| outcome.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&skip).await, ["dispatched", "overlap"]);
    assert_eq!(outcomes(&queue).await, ["dispatched"]);
    assert_eq!(outcomes(&allow).await, ["dispatched", "dispatched"]);
    // A new name leaves the slot in the queue.
    shop.app.patch(&queue, &shop.key, json!({ "name": "renamed" })).await.expect(200);
    shop.app.sql("UPDATE automation_firings SET outcome = 'completed' WHERE status = 'dispatched'").await;
    shop.at(shop.now().plus_seconds(5)).await;
    assert_eq!(outcomes(&queue).await, ["dispatched", "dispatched"]);
    let slots = shop.fired(&queue, "slot").await;
    assert_eq!(slots[1].0, shop.fired(&allow, "slot").await[1].0);
    shop.at(shop.now().plus_seconds(595)).await;
    assert_eq!(outcomes(&skip).await, ["dispatched", "overlap", "dispatched"]);
    assert_eq!(outcomes(&queue).await, ["dispatched", "dispatched"]);
}

#[testkit::both]
async fn a_changed_rule_counts_at_once(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.automation(schedule(&json!({ "cron": "0 13 * * *" })), json!({})).await;
    let change = async |patch: Value| shop.app.patch(&path, &shop.key, patch).await.expect(200);
    // A slot that is due is not lost by a change that leaves the rule as it is.
    shop.app.data.clock.advance(Duration::hours(1));
    change(json!({ "description": "x" })).await;
    shop.work().await;
    assert_eq!(shop.fired(&path, "slot").await, fired(&["2026-01-15T13:00Z"]));
    change(json!({ "trigger": schedule(&json!({ "cron": "30 13 * * *" })) })).await;
    assert_eq!(shop.next(&path).await, Some(moment("2026-01-15T13:30Z")));
    shop.wait(30).await;
    assert_eq!(shop.executions(&path).await.len(), 2);
    // Switched off, nothing fires, and nothing is made up for.
    shop.app.post(&format!("{path}/disable"), &shop.key, json!({})).await.expect(200);
    assert_eq!(shop.next(&path).await, None);
    shop.wait(24 * 60).await;
    shop.app.post(&format!("{path}/enable"), &shop.key, json!({})).await.expect(200);
    shop.wait(1).await;
    assert_eq!(shop.executions(&path).await.len(), 2);
    // It fires from one moment to another.
    let (from, until) = (moment("2026-02-01T00:00Z"), moment("2026-02-02T13:30Z"));
    change(json!({ "active_from": from, "active_until": until })).await;
    assert_eq!(shop.next(&path).await, Some(moment("2026-02-01T13:30Z")));
    shop.at(moment("2026-02-01T13:30Z")).await;
    assert_eq!(shop.executions(&path).await.len(), 3);
    assert_eq!(shop.next(&path).await, None);
}

#[testkit::both]
async fn two_processes_fire_a_slot_once(kind: Kind) {
    let shop = Shop::open(kind).await;
    let mut paths = Vec::new();
    for place in 0..25 {
        let trigger = schedule(&json!({ "every": { "n": 1, "unit": "hours" }, "catch_up": "all" }));
        paths.push(shop.automation(trigger, json!({ "name": format!("{place}") })).await);
    }
    let replica = shop.app.replica(auth::RateWindows::local()).await;
    shop.app.data.clock.advance(Duration::hours(2));
    let sweep = |app: &TestApp| {
        let sweep = app.service.pipeline.services.get::<automations::Sweep>().unwrap();
        let db = app.db().clone();
        async move {
            for _ in 0..4 {
                sweep.round(&db).await.unwrap();
            }
        }
    };
    let (one, other) = (&shop.app, &replica);
    futures::join!(sweep(one), sweep(other), sweep(one), sweep(other));
    for path in paths {
        assert_eq!(shop.fired(&path, "is_missed").await.len(), 2, "{path}");
    }
}

#[testkit::both]
async fn rules_that_cannot_be_used_are_refused(kind: Kind) {
    let shop = Shop::open(kind).await;
    for (config, param) in [
        (json!({ "cron": "0 0 31 2 *" }), "trigger.config.cron"),
        (json!({ "cron": "* * * *" }), "trigger.config.cron"),
        (json!({ "cron": "0 * * * * *" }), "trigger.config.cron"),
        (json!({ "cron": "61 * * * *" }), "trigger.config.cron"),
        (json!({ "cron": "0 9 * * *", "timezone": "Mars/Base" }), "trigger.config.timezone"),
        (json!({ "cron": "0 9 * * *", "every": { "n": 1, "unit": "days" } }), "trigger.config.every"),
        (json!({ "every": { "n": 0, "unit": "days" } }), "trigger.config.every.n"),
        (json!({ "every": { "n": 1, "unit": "seconds" } }), "trigger.config.every.unit"),
        (json!({}), "trigger.config.cron"),
        (json!({ "cron": "0 9 * * *", "catch_up": "some" }), "trigger.config.catch_up"),
        (json!({ "cron": 9 }), "trigger.config.cron"),
    ] {
        let body = automation(schedule(&config), json!({ "enable": false }));
        let answer = shop.app.post("/automations", &shop.key, body).await;
        answer.expect_error(400, "validation_error");
        assert_eq!(answer.body["error"]["param"], param, "{config} {}", answer.body);
    }
}
