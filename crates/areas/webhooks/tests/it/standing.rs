//! What becomes of an endpoint when the key behind it is lost: nothing is sent any more, it is switched off once, and the
//! others are told.

use crate::{contact, deliveries, key};
use chrono::Duration;
use model::{Env, WorkspaceId};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{Key, Kind, Receiver, TestApp};

/// How a key is lost.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// As `svc key revoke` does it.
    Revoked,
    /// By time alone.
    Expired,
    /// Without the right to have subscriptions.
    Unmanaged,
    /// Without the scope behind one of the two events.
    Unscoped,
    /// Its partner no longer has the workspace.
    Unattributed,
}

const LOSSES: [Loss; 5] = [Loss::Revoked, Loss::Expired, Loss::Unmanaged, Loss::Unscoped, Loss::Unattributed];

impl Loss {
    /// A key that can be lost so.
    async fn key(self, app: &TestApp, workspace: WorkspaceId) -> Key {
        let scopes = ["webhooks:manage", "conversations:read", "runs:read"];
        match self {
            Self::Expired => {
                let end = app.db().now().plus_seconds(3600);
                app.key_with(workspace, Env::Live, &scopes, move |new| new.expires_at = Some(end)).await
            }
            Self::Unattributed => app.partner_key(Env::Live, &scopes, &[workspace]).await.1,
            _ => app.key(workspace, Env::Live, &scopes).await,
        }
    }

    async fn happen(self, app: &TestApp, key: &Key) {
        let set = |scopes: &str| format!("UPDATE api_keys SET scopes = '{scopes}' WHERE id = '{}'", key.id);
        match self {
            Self::Revoked => revoke(app, key).await,
            Self::Expired => app.data.clock.advance(Duration::hours(1)),
            Self::Unmanaged => app.sql(set("conversations:read,runs:read")).await,
            Self::Unscoped => app.sql(set("conversations:read,webhooks:manage")).await,
            Self::Unattributed => {
                app.sql(format!("UPDATE workspaces SET partner_id = NULL WHERE id = {}", key.workspace))
                    .await;
            }
        }
    }
}

async fn revoke(app: &TestApp, key: &Key) {
    let id = key.id.clone();
    app.db().write(move |tx| auth::keys::revoke(tx, &id).map(drop)).await.unwrap();
    app.service.pipeline.directory.forget();
}

/// The longest that it takes until somebody looks, however little happens.
async fn look_around(app: &TestApp) {
    app.data.clock.advance(Duration::seconds(15));
    app.service.jobs.run_due().await.unwrap();
}

fn at(endpoint: &Value) -> String {
    format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap())
}

/// Why an endpoint is off, or `enabled`.
async fn standing(app: &TestApp, key: &Key, endpoint: &Value) -> String {
    let read = app.get(&at(endpoint), key).await.expect(200);
    let is_on = read["status"] == "enabled";
    assert_eq!(read["disabled_reason"].is_null(), is_on, "{read}");
    read[if is_on { "status" } else { "disabled_reason" }].as_str().unwrap().to_owned()
}

/// What the log says of endpoints that were switched off: which, and why.
async fn reported(app: &TestApp, key: &Key) -> Vec<(String, String)> {
    app.deliver().await;
    let events = app.get("/events?type=webhook_endpoint.disabled&limit=100", key).await.expect(200);
    let text = |event: &Value, name: &str| event["data"][name].as_str().unwrap().to_owned();
    events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (text(event, "endpoint_id"), text(event, "reason")))
        .collect()
}

#[testkit::both]
async fn an_endpoint_without_deliveries_ends_with_its_key(kind: Kind) {
    let app = TestApp::new(kind).await;
    for loss in LOSSES {
        let owner = key(&app).await;
        let lost = loss.key(&app, owner.workspace).await;
        let (receiver, watcher) = (Receiver::start().await, Receiver::start().await);
        let both = json!({ "enabled_events": ["contact.*", "run.completed"] });
        let endpoint = app.subscribe(&lost, &receiver.url("/"), both).await;
        let other = app
            .subscribe(&owner, &watcher.url("/"), json!({ "enabled_events": ["webhook_endpoint.*"] }))
            .await;
        look_around(&app).await;
        assert_eq!(standing(&app, &owner, &endpoint).await, "enabled", "{loss:?}");

        loss.happen(&app, &lost).await;
        app.emit(owner.workspace, contact(1, "unseen")).await;
        app.deliver().await;
        assert_eq!(receiver.count(), 0, "{loss:?}: nothing is sent from then on");
        look_around(&app).await;
        assert_eq!(standing(&app, &owner, &endpoint).await, "scope_lost", "{loss:?}");
        let id = endpoint["id"].as_str().unwrap().to_owned();
        assert_eq!(reported(&app, &owner).await, [(id, "scope_lost".to_owned())], "{loss:?}");
        app.deliver().await;
        assert_eq!(watcher.count(), 1, "{loss:?}");
        let heard = watcher.delivered().remove(0).json();
        assert_eq!(
            (&heard["type"], &heard["data"]["reason"]),
            (&json!("webhook_endpoint.disabled"), &json!("scope_lost"))
        );
        assert_eq!(heard["data"]["endpoint_id"], endpoint["id"]);

        look_around(&app).await;
        app.deliver().await;
        assert_eq!(
            (reported(&app, &owner).await.len(), watcher.count()),
            (1, 1),
            "{loss:?}: it is told once"
        );
        assert_eq!(standing(&app, &owner, &other).await, "enabled", "{loss:?}");
        assert!(deliveries(&app, &owner, &endpoint).await.is_empty(), "{loss:?}");
    }
}

#[testkit::both]
async fn what_waits_for_an_endpoint_is_skipped_with_its_key(kind: Kind) {
    let app = TestApp::new(kind).await;
    for (loss, engine_sees_it) in LOSSES.into_iter().flat_map(|loss| [(loss, true), (loss, false)]) {
        let owner = key(&app).await;
        let lost = loss.key(&app, owner.workspace).await;
        let receiver = Receiver::start().await;
        let both = json!({ "enabled_events": ["contact.*", "run.completed"], "rate_limit_per_second": 100 });
        let endpoint = app.subscribe(&lost, &receiver.url("/"), both).await;
        receiver.answer_status(500);
        for number in 0..3 {
            app.emit(owner.workspace, contact(number, "a")).await;
        }
        app.deliver().await;
        receiver.answer_status(200);
        receiver.forget();
        loss.happen(&app, &lost).await;
        app.emit(owner.workspace, contact(3, "after")).await;
        app.data.clock.advance(Duration::seconds(10));
        if engine_sees_it {
            app.deliver().await;
        } else {
            look_around(&app).await;
        }
        assert_eq!(standing(&app, &owner, &endpoint).await, "scope_lost", "{loss:?} {engine_sees_it}");
        look_around(&app).await;
        app.deliver().await;
        assert_eq!(receiver.count(), 0, "{loss:?} {engine_sees_it}");
        let all = deliveries(&app, &owner, &endpoint).await;
        assert_eq!(all.len(), 3, "{loss:?} {engine_sees_it}");
        assert!(all.iter().all(|one| one["status"] == "skipped"), "{loss:?} {engine_sees_it}: {all:?}");
        assert_eq!(reported(&app, &owner).await.len(), 1, "{loss:?} {engine_sees_it}");
    }
}

#[testkit::both]
async fn who_enables_an_endpoint_stands_behind_it(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = key(&app).await;
    let lost = app.key(owner.workspace, Env::Live, &["webhooks:manage", "conversations:read"]).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&lost, &receiver.url("/"), json!({})).await;
    revoke(&app, &lost).await;
    app.emit(owner.workspace, contact(1, "missed")).await;
    app.deliver().await;
    look_around(&app).await;

    let weak = app.key(owner.workspace, Env::Live, &["webhooks:manage"]).await;
    for way in ["enable", ""] {
        let refused = match way {
            "" => app.patch(&at(&endpoint), &weak, json!({ "status": "enabled" })).await,
            way => app.post(&format!("{}/{way}", at(&endpoint)), &weak, json!({})).await,
        };
        assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("conversations:read"));
    }
    let second = app.key(owner.workspace, Env::Live, &["webhooks:manage", "conversations:read"]).await;
    app.post(&format!("{}/enable", at(&endpoint)), &second, json!({})).await.expect(200);
    app.emit(owner.workspace, contact(2, "new")).await;
    app.deliver().await;
    look_around(&app).await;
    assert_eq!((standing(&app, &owner, &endpoint).await, receiver.count()), ("enabled".to_owned(), 1));
    // What was missed is there to be asked for.
    let missing = json!({ "since": endpoint["created_at"], "status": "missing" });
    assert_eq!(
        app.post(&format!("{}/replay", at(&endpoint)), &second, missing).await.expect(200)["count"],
        1
    );

    revoke(&app, &second).await;
    look_around(&app).await;
    assert_eq!(standing(&app, &owner, &endpoint).await, "scope_lost", "it is the second key's now");
    app.patch(&at(&endpoint), &owner, json!({ "status": "enabled" })).await.expect(200);
    look_around(&app).await;
    assert_eq!(standing(&app, &owner, &endpoint).await, "enabled");
}

#[testkit::both]
async fn an_endpoint_is_taken_over_before_it_is_switched_off(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = key(&app).await;
    let receiver = Receiver::start().await;
    let ways = [
        ("POST", "/enable", json!({})),
        ("PATCH", "", json!({ "status": "enabled" })),
        ("PATCH", "", json!({ "enabled_events": ["contact.*"] })),
    ];
    for (method, rest, body) in ways {
        let lost = app.key(owner.workspace, Env::Live, &["webhooks:manage", "conversations:read"]).await;
        let endpoint = app.subscribe(&lost, &receiver.url("/"), json!({})).await;
        revoke(&app, &lost).await;
        let path = format!("{}{rest}", at(&endpoint));
        app.ask(method, &path).key(&owner).json(&body).send().await.expect(200);
        look_around(&app).await;
        assert_eq!(standing(&app, &owner, &endpoint).await, "enabled", "{method} {body}");
        app.delete(&at(&endpoint), &owner).await.expect(200);
    }
    assert!(reported(&app, &owner).await.is_empty());
}

#[testkit::both]
async fn a_rotated_key_is_not_lost(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = key(&app).await;
    let scopes = ["webhooks:manage", "conversations:read"];
    let first = app.key(owner.workspace, Env::Live, &scopes).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&first, &receiver.url("/"), json!({})).await;
    let second = app.key(owner.workspace, Env::Live, &scopes).await;
    app.sql(format!("UPDATE api_keys SET lineage_id = '{}' WHERE id = '{}'", first.id, second.id)).await;
    revoke(&app, &first).await;
    look_around(&app).await;
    app.emit(owner.workspace, contact(1, "a")).await;
    app.deliver().await;
    assert_eq!((standing(&app, &owner, &endpoint).await, receiver.count()), ("enabled".to_owned(), 1));
    revoke(&app, &second).await;
    look_around(&app).await;
    assert_eq!(standing(&app, &owner, &endpoint).await, "scope_lost", "all of them are revoked");
}

#[testkit::both]
async fn a_pattern_stands_while_its_key_may_see_some_of_it(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = key(&app).await;
    let lost =
        app.key(owner.workspace, Env::Live, &["webhooks:manage", "conversations:read", "runs:read"]).await;
    let receiver = Receiver::start().await;
    let all = app.subscribe(&lost, &receiver.url("/"), json!({ "enabled_events": ["*"] })).await;
    let contacts = app.subscribe(&lost, &receiver.url("/"), json!({})).await;
    app.sql(format!("UPDATE api_keys SET scopes = 'runs:read,webhooks:manage' WHERE id = '{}'", lost.id))
        .await;
    look_around(&app).await;
    assert_eq!(standing(&app, &owner, &all).await, "enabled");
    assert_eq!(standing(&app, &owner, &contacts).await, "scope_lost");
    app.emit(owner.workspace, contact(1, "a")).await;
    app.deliver().await;
    let kinds: Vec<Value> = receiver.delivered().iter().map(|one| one.json()["type"].clone()).collect();
    assert_eq!(kinds, ["webhook_endpoint.disabled"]);
}

#[testkit::both]
async fn endpoints_end_with_their_workspace(kind: Kind) {
    let app = TestApp::new(kind).await;
    // Blocked by hand, and by a trial that ends as time passes.
    for block in ["blocked_reason = 'Unpaid.'", "subscription_status = 'trialing', period_end = created_at"] {
        let owner = key(&app).await;
        let receiver = Receiver::start().await;
        let idle = app.subscribe(&owner, &receiver.url("/"), json!({ "enabled_events": ["run.*"] })).await;
        let endpoint = app.subscribe(&owner, &receiver.url("/"), json!({})).await;
        receiver.answer_status(500);
        app.emit(owner.workspace, contact(1, "waits")).await;
        app.deliver().await;
        assert_eq!(receiver.count(), 1);
        receiver.answer_status(200);
        app.sql(format!("UPDATE workspaces SET {block} WHERE id = {}", owner.workspace)).await;
        app.emit(owner.workspace, contact(2, "missed")).await;
        app.data.clock.advance(Duration::seconds(10));
        app.deliver().await;
        assert_eq!(receiver.count(), 1, "{block}: nothing is sent for a blocked workspace");
        look_around(&app).await;
        let back = "blocked_reason = NULL, subscription_status = 'active', period_end = NULL";
        app.sql(format!("UPDATE workspaces SET {back} WHERE id = {}", owner.workspace)).await;
        for endpoint in [&idle, &endpoint] {
            assert_eq!(standing(&app, &owner, endpoint).await, "scope_lost", "{block}");
        }
        let reported: BTreeSet<(String, String)> = reported(&app, &owner).await.into_iter().collect();
        let of = |endpoint: &Value| (endpoint["id"].as_str().unwrap().to_owned(), "scope_lost".to_owned());
        assert_eq!(reported, BTreeSet::from([of(&idle), of(&endpoint)]));

        // It is switched on by hand, and gets what happens from then on; the rest is there to be asked for.
        look_around(&app).await;
        app.post(&format!("{}/enable", at(&endpoint)), &owner, json!({})).await.expect(200);
        app.emit(owner.workspace, contact(3, "new")).await;
        app.deliver().await;
        assert_eq!(receiver.count(), 2);
        for (status, count) in [("failed", 1), ("missing", 1)] {
            let range = json!({ "since": endpoint["created_at"], "status": status, "dry_run": true });
            let found = app.post(&format!("{}/replay", at(&endpoint)), &owner, range).await.expect(200);
            assert_eq!(found["count"], count, "{block} {status}");
        }
    }
}

#[testkit::both]
async fn a_workspace_that_is_let_go_in_time_loses_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&owner, &receiver.url("/"), json!({})).await;
    receiver.answer_status(500);
    app.emit(owner.workspace, contact(1, "waits")).await;
    app.deliver().await;
    let set = async |reason: &str| app.sql(format!("UPDATE workspaces SET blocked_reason = {reason}")).await;
    set("'Unpaid.'").await;
    set("NULL").await;
    receiver.answer_status(200);
    look_around(&app).await;
    app.deliver().await;
    assert_eq!((standing(&app, &owner, &endpoint).await, receiver.count()), ("enabled".to_owned(), 2));
}

#[testkit::both]
async fn what_owners_switched_off_stays_theirs(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = key(&app).await;
    let lost = app.key(owner.workspace, Env::Live, &["webhooks:manage", "conversations:read"]).await;
    let receiver = Receiver::start().await;
    let off = app.subscribe(&lost, &receiver.url("/"), json!({ "status": "disabled" })).await;
    let gone = app.subscribe(&lost, &receiver.url("/"), json!({})).await;
    app.delete(&at(&gone), &owner).await.expect(200);
    revoke(&app, &lost).await;
    look_around(&app).await;
    assert_eq!(standing(&app, &owner, &off).await, "manual");
    app.get(&at(&gone), &owner).await.expect_error(404, "not_found");
    assert!(reported(&app, &owner).await.is_empty());
}

#[testkit::both]
async fn what_is_queued_for_a_disabled_endpoint_is_skipped(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&owner, &receiver.url("/"), json!({})).await;
    receiver.answer_status(500);
    app.emit(owner.workspace, contact(1, "a")).await;
    app.deliver().await;
    // As if the delivery had been added by a transaction that did not see it switched off yet.
    app.sql("UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = 'manual'").await;
    app.data.clock.advance(Duration::seconds(10));
    app.deliver().await;
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(receiver.count(), 1);
    assert_eq!(deliveries(&app, &owner, &endpoint).await[0]["status"], "skipped");
}

#[testkit::both]
async fn many_who_notice_at_once_switch_off_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let replica = app.replica(auth::RateWindows::local()).await;
    let owner = key(&app).await;
    let lost = app.key(owner.workspace, Env::Live, &["webhooks:manage", "conversations:read"]).await;
    let receiver = Receiver::start().await;
    receiver.answer_status(500);
    let mut endpoints = Vec::new();
    for _ in 0..8 {
        endpoints.push(app.subscribe(&lost, &receiver.url("/"), json!({})).await);
    }
    app.emit(owner.workspace, contact(1, "a")).await;
    app.deliver().await;
    assert_eq!(receiver.count(), 8);
    revoke(&app, &lost).await;
    app.data.clock.advance(Duration::seconds(15));
    // One of them is switched off by its owner meanwhile, another is changed.
    let by_hand = async {
        app.post(&format!("{}/disable", at(&endpoints[3])), &owner, json!({})).await.expect(200);
        app.patch(&at(&endpoints[5]), &owner, json!({ "description": "Ours" })).await.expect(200);
    };
    let (one, two, _, _, ()) = tokio::join!(
        app.service.jobs.run_due(),
        replica.service.jobs.run_due(),
        app.deliver(),
        replica.deliver(),
        by_hand
    );
    one.unwrap();
    two.unwrap();
    look_around(&app).await;
    assert_eq!(receiver.count(), 8);
    let mut expected = BTreeSet::new();
    for endpoint in &endpoints {
        let reason = standing(&app, &owner, endpoint).await;
        let is_manual = endpoint == &endpoints[3] && reason == "manual";
        assert!(is_manual || reason == "scope_lost", "{reason}");
        if !is_manual {
            expected.insert((endpoint["id"].as_str().unwrap().to_owned(), reason));
        }
        assert!(deliveries(&app, &owner, endpoint).await.iter().all(|one| one["status"] == "skipped"));
    }
    let reported = reported(&app, &owner).await;
    assert_eq!(reported.len(), expected.len(), "each is reported once: {reported:?}");
    assert_eq!(reported.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(
        app.get(&at(&endpoints[5]), &owner).await.expect(200)["description"],
        "Ours",
        "no change is lost"
    );
    assert_eq!(app.data.deadlocks().await, 0);
}

#[testkit::both]
async fn a_change_beside_an_end_is_kept(kind: Kind) {
    let app = TestApp::new(kind).await;
    let replica = app.replica(auth::RateWindows::local()).await;
    let owner = key(&app).await;
    let receiver = Receiver::start().await;
    receiver.answer_status(410);
    let mut endpoints = Vec::new();
    for _ in 0..12 {
        endpoints.push(app.subscribe(&owner, &receiver.url("/"), json!({})).await);
    }
    app.emit(owner.workspace, contact(1, "a")).await;
    let changes = async {
        for endpoint in &endpoints {
            app.patch(&at(endpoint), &owner, json!({ "description": "Ours" })).await.expect(200);
        }
    };
    tokio::join!(app.deliver(), replica.deliver(), changes);
    for endpoint in &endpoints {
        assert_eq!(standing(&app, &owner, endpoint).await, "gone");
        assert_eq!(app.get(&at(endpoint), &owner).await.expect(200)["description"], "Ours");
    }
    assert_eq!(reported(&app, &owner).await.len(), endpoints.len());
    assert_eq!(app.data.deadlocks().await, 0);
}
