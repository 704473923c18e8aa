//! Policies: how often an automation fires, and for whom.

use crate::Shop;
use chrono::Duration;
use serde_json::{Value, json};
use testkit::Kind;

/// An automation that requests fire, with a policy.
async fn with_policy(shop: &Shop, policy: Value) -> String {
    shop.automation(json!({ "type": "manual" }), json!({ "policy": policy })).await
}

/// Fires it, and returns the status and the reason.
async fn fire(shop: &Shop, path: &str, body: Value) -> (String, Value) {
    let fired = shop.app.post(&format!("{path}/trigger"), &shop.key, body).await.expect(200);
    let firing = &fired["execution"];
    (firing["status"].as_str().unwrap().to_owned(), firing["reason"].clone())
}

fn pending() -> (String, Value) {
    ("pending".to_owned(), Value::Null)
}

fn skipped(reason: &str) -> (String, Value) {
    ("skipped".to_owned(), json!(reason))
}

#[testkit::both]
async fn once_per_contact_and_cooldown_are_for_each_contact(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (ana, bob) =
        (shop.contact(json!({ "$name": "Ana" })).await, shop.contact(json!({ "$name": "Bob" })).await);
    let of = |contact: i64| json!({ "contact_id": contact });
    let once = with_policy(&shop, json!({ "once_per_contact": "once" })).await;
    assert_eq!(fire(&shop, &once, of(ana)).await, pending());
    assert_eq!(fire(&shop, &once, of(ana)).await, skipped("once_per_contact"));
    assert_eq!(fire(&shop, &once, of(bob)).await, pending());
    assert_eq!(fire(&shop, &once, json!({})).await, pending());
    shop.app.patch(&once, &shop.key, json!({ "name": "b" })).await.expect(200);
    let daily = with_policy(&shop, json!({ "once_per_contact": "per_day" })).await;
    assert_eq!(fire(&shop, &daily, of(ana)).await, pending());
    assert_eq!(fire(&shop, &daily, of(ana)).await, skipped("once_per_contact"));
    shop.app.data.clock.advance(Duration::days(1));
    assert_eq!(fire(&shop, &daily, of(ana)).await, pending());
    assert_eq!(fire(&shop, &once, of(ana)).await, skipped("once_per_contact"));
    shop.app.patch(&daily, &shop.key, json!({ "name": "c" })).await.expect(200);
    let cooling = with_policy(&shop, json!({ "cooldown_seconds": 60 })).await;
    assert_eq!(fire(&shop, &cooling, of(ana)).await, pending());
    shop.app.data.clock.advance(Duration::seconds(59));
    assert_eq!(fire(&shop, &cooling, of(ana)).await, skipped("cooldown"));
    assert_eq!(fire(&shop, &cooling, of(bob)).await, pending());
    shop.app.data.clock.advance(Duration::seconds(1));
    assert_eq!(fire(&shop, &cooling, of(ana)).await, pending());
}

#[testkit::both]
async fn duplicates_and_what_is_too_often_are_skipped(kind: Kind) {
    let shop = Shop::open(kind).await;
    let order = |number: i64| json!({ "data": { "order": number } });
    let policy = json!({ "dedupe": { "key": "{{ $trigger.order }}", "window_seconds": 60 } });
    let deduped = with_policy(&shop, policy).await;
    assert_eq!(fire(&shop, &deduped, order(1)).await, pending());
    assert_eq!(fire(&shop, &deduped, order(1)).await, skipped("duplicate"));
    assert_eq!(fire(&shop, &deduped, order(2)).await, pending());
    shop.app.data.clock.advance(Duration::seconds(60));
    assert_eq!(fire(&shop, &deduped, order(1)).await, pending());
    shop.app.patch(&deduped, &shop.key, json!({ "name": "b" })).await.expect(200);
    let policy = json!({ "throttle": { "limit": 2, "per_seconds": 60, "key": "{{ $trigger.order }}" } });
    let throttled = with_policy(&shop, policy).await;
    for wanted in [pending(), pending(), skipped("throttled")] {
        assert_eq!(fire(&shop, &throttled, order(1)).await, wanted);
    }
    assert_eq!(fire(&shop, &throttled, order(2)).await, pending());
    shop.app.data.clock.advance(Duration::seconds(60));
    assert_eq!(fire(&shop, &throttled, order(1)).await, pending());
    shop.app.patch(&throttled, &shop.key, json!({ "name": "c" })).await.expect(200);
    let broken =
        with_policy(&shop, json!({ "dedupe": { "key": "{{ 1 / $trigger.order }}", "window_seconds": 60 } }))
            .await;
    assert_eq!(fire(&shop, &broken, order(0)).await, skipped("template_error"));
}

#[testkit::both]
async fn of_several_in_a_row_the_last_fires(kind: Kind) {
    let shop = Shop::open(kind).await;
    let policy =
        json!({ "debounce": { "key": "{{ $trigger.order }}", "seconds": 10, "max_wait_seconds": 25 } });
    let path = with_policy(&shop, policy).await;
    let order = |order: i64, n: i64| json!({ "data": { "order": order, "n": n } });
    for n in 1..=4 {
        assert_eq!(fire(&shop, &path, order(1, n)).await, pending());
        shop.work().await;
        assert_eq!(shop.flows.started().len(), 0);
        shop.app.data.clock.advance(Duration::seconds(7));
    }
    // 28 seconds after the first: the longest wait is over.
    shop.work().await;
    let started = shop.flows.started();
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].payload["n"], 4);
    let debounced = ("skipped".to_owned(), json!("debounced"));
    let dispatched = ("dispatched".to_owned(), Value::Null);
    assert_eq!(shop.firings(&path).await, [debounced.clone(), debounced.clone(), debounced, dispatched]);
    // The next one begins a row of its own, and so does another key.
    fire(&shop, &path, order(1, 5)).await;
    fire(&shop, &path, order(2, 6)).await;
    shop.app.data.clock.advance(Duration::seconds(9));
    shop.work().await;
    assert_eq!(shop.flows.started().len(), 0);
    shop.app.data.clock.advance(Duration::seconds(1));
    shop.work().await;
    assert_eq!(shop.flows.started().len(), 2);
}

#[testkit::both]
async fn what_waits_is_discarded_when_the_automation_is_switched_off(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = with_policy(&shop, json!({ "debounce": { "seconds": 60 } })).await;
    fire(&shop, &path, json!({})).await;
    shop.app.post(&format!("{path}/disable"), &shop.key, json!({})).await.expect(200);
    let discarded = ("discarded".to_owned(), json!("switched_off"));
    assert_eq!(shop.firings(&path).await, std::slice::from_ref(&discarded));
    shop.app.post(&format!("{path}/enable"), &shop.key, json!({})).await.expect(200);
    shop.app.data.clock.advance(Duration::seconds(61));
    shop.work().await;
    assert_eq!((shop.flows.started().len(), shop.firings(&path).await), (0, vec![discarded]));
}

#[testkit::both]
async fn people_and_those_who_want_nothing_are_left_alone(kind: Kind) {
    let shop = Shop::open(kind).await;
    let ana = shop.contact(json!({ "$name": "Ana" })).await;
    let path = with_policy(&shop, json!({ "when_human_active": "skip", "skip_opted_out": true })).await;
    let about = json!({ "contact_id": ana });
    assert_eq!(fire(&shop, &path, about.clone()).await, pending());
    let autopilot = format!("/contacts/{ana}/autopilot");
    shop.app.put(&autopilot, &shop.key, json!({ "enabled": false })).await.expect(200);
    assert_eq!(fire(&shop, &path, about.clone()).await, skipped("human_active"));
    shop.app.put(&autopilot, &shop.key, json!({ "enabled": true })).await.expect(200);
    assert_eq!(fire(&shop, &path, about).await, pending());
}

#[derive(diesel::QueryableByName)]
struct Found {
    #[diesel(sql_type = diesel::sql_types::Bool)]
    is_so: bool,
}

/// Asks PostgreSQL.
fn ask(tx: &mut store::Tx, sql: String) -> bool {
    use diesel::RunQueryDsl;
    diesel::sql_query(sql).get_result::<Found>(tx.connection()).unwrap().is_so
}

#[tokio::test(flavor = "multi_thread")]
async fn automations_that_remember_are_locked_in_the_order_of_their_ids() {
    let shop = Shop::open(Kind::Postgres).await;
    let policy = |priority: i64| json!({ "cooldown_seconds": 60, "priority": priority });
    let mut ids = Vec::new();
    // The later one is considered first.
    for (name, priority) in [("low", 1), ("high", 9)] {
        let more = json!({ "name": name, "policy": policy(priority) });
        let path = shop.automation(json!({ "type": "contact.created" }), more).await;
        ids.push(path.rsplit('/').next().unwrap().to_owned());
    }
    shop.work().await;
    shop.contact(json!({ "$name": "Ana" })).await;
    shop.app.deliver().await;
    let (low, high) =
        (format!("firings of automation {}", ids[0]), format!("firings of automation {}", ids[1]));
    let (holds, is_held) = tokio::sync::oneshot::channel();
    let holds = std::sync::Mutex::new(Some(holds));
    let db = shop.app.db().clone();
    let holder = tokio::spawn(async move {
        db.write(move |tx| {
            tx.lock(&low)?;
            if let Some(holds) = holds.lock().unwrap().take() {
                holds.send(()).unwrap();
            }
            // The reader waits for the lower id, and has not locked the higher one meanwhile.
            let waits = "SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database \
                         WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted) AS is_so";
            while !ask(tx, waits.to_owned()) {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            Ok(ask(tx, format!("SELECT pg_try_advisory_xact_lock(hashtextextended('{high}', 0)) AS is_so")))
        })
        .await
    });
    is_held.await.unwrap();
    shop.app.service.readers.run_due().await.unwrap();
    assert!(holder.await.unwrap().unwrap());
    shop.work().await;
    assert_eq!(shop.flows.started().len(), 2);
}
