//! The public receiver: what it takes, once, and what it refuses.

use crate::webhooks::{at, bare, count, log, made, path, send};
use auth::RateWindows;
use futures::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{Answer, Kind, TestApp};

/// The kinds of all events, in order.
async fn kinds(app: &TestApp) -> Vec<String> {
    use diesel::prelude::*;
    use store::schema::events;
    let rows = app.db().read(|read| {
        Ok(events::table
            .order(events::sequence.asc())
            .select(events::kind)
            .load::<String>(read.connection())?)
    });
    rows.await.unwrap()
}

#[testkit::both]
async fn a_request_is_kept_before_it_is_answered(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({})).await;
    let asking = app.ask_beside("POST", &format!("{}?a=1&token=t", path(&webhook)));
    let asking = asking.header("authorization", "Bearer x").header("x-event", "push");
    let answer = asking.json(&json!({ "a": "ü" })).send().await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let id = answer.body["data"]["id"].clone();
    assert_eq!(answer.body, json!({ "success": true, "data": { "id": id } }));
    assert!(id.as_str().unwrap().starts_with("whr_") && answer.headers["x-request-id"].starts_with("req_"));
    let row = log(&app, &key, &webhook).await.remove(0);
    for (field, value) in [
        ("id", id),
        ("object", json!("received_request")),
        ("inbound_webhook_id", webhook["id"].clone()),
        ("status", json!("accepted")),
        ("method", json!("POST")),
        ("ip", json!("127.0.0.1")),
        ("query", json!("a=1&token=%5Bredacted%5D")),
        ("content_type", json!("application/json")),
        ("body", json!("{\"a\":\"ü\"}")),
        ("body_encoding", json!("utf8")),
        ("body_bytes", json!(10)),
        ("body_truncated", json!(false)),
        ("duplicate_of", json!(null)),
        ("error", json!(null)),
        ("result", json!(null)),
        ("received_at", json!("2026-01-15T12:00:00.000Z")),
    ] {
        assert_eq!(row[field], value, "{field}");
    }
    assert_eq!(
        (&row["headers"]["x-event"], &row["headers"]["authorization"]),
        (&json!("push"), &json!("[redacted]"))
    );
    assert!(row["event_id"].as_str().unwrap().starts_with("evt_"));
    assert_eq!(kinds(&app).await, ["webhook.received"]);
    app.deliver().await;
    let event = app.get(&format!("/events/{}", row["event_id"].as_str().unwrap()), &key).await.expect(200);
    let sender = json!({ "type": "inbound_webhook", "id": webhook["id"] });
    assert_eq!((&event["request"], &event["caused_by"]["actor"]), (&json!(null), &sender));
}

#[testkit::both]
async fn urls_that_are_not_ours_look_the_same(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({})).await;
    let right = path(&webhook);
    let mut wrong = right.clone();
    let last = if wrong.pop() == Some('A') { 'B' } else { 'A' };
    wrong.push(last);
    let mut shapes = BTreeSet::new();
    let long = format!("/hooks/{}", "x".repeat(1900));
    for path in [
        wrong.as_str(),
        "/hooks/",
        "/hooks/x",
        &long,
        "/hooks/%00",
        "/hooks/a/b",
        &format!("{right}/"),
        &right.to_uppercase().replace("/HOOKS", "/hooks"),
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let answer = app.ask_beside(method, path).json(&json!({})).send().await;
            answer.expect_error(404, "not_found");
            let names: Vec<&str> = answer.headers.keys().map(String::as_str).collect();
            shapes.insert((names.join(","), answer.text.len()));
        }
    }
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    assert_eq!(log(&app, &key, &webhook).await.len(), 0);
    // Whoever goes on guessing is told to wait; the webhook itself goes on.
    let mut answers = Vec::new();
    for _ in 0..300 {
        answers.push(app.ask_beside("POST", &wrong).json(&json!({})).send().await);
    }
    let refused = answers.last().unwrap();
    refused.expect_error(429, "rate_limited");
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(send(&app, &webhook, &json!({})).await.status, 202);
}

#[testkit::both]
async fn states_methods_and_sizes_are_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({})).await;
    for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let answer = app.ask_beside(method, &path(&webhook)).json(&json!({})).send().await;
        answer.expect_error(405, "method_not_allowed");
        assert_eq!(answer.headers["allow"], "POST");
    }
    let largest = vec![b'x'; 1 << 20];
    let post =
        async |bytes: &[u8]| app.ask_beside("POST", &path(&webhook)).bytes("text/plain", bytes).send().await;
    assert_eq!(post(&largest).await.status, 202);
    assert_eq!(post(&[&largest[..], b"x"].concat()).await.status, 413);
    assert_eq!(post(b"").await.status, 202);
    let rows = log(&app, &key, &webhook).await;
    assert_eq!(rows.len(), 2);
    let largest = rows.iter().find(|row| row["body_bytes"] == 1 << 20).unwrap();
    assert_eq!((largest["body"].as_str().unwrap().len(), &largest["body_truncated"]), (4096, &json!(true)));
    let whole = app
        .get(&format!("{}/requests?id={}", at(&webhook), largest["id"].as_str().unwrap()), &key)
        .await
        .expect(200);
    assert_eq!(
        (whole[0]["body"].as_str().unwrap().len(), &whole[0]["body_truncated"]),
        (1 << 20, &json!(false))
    );
    app.patch(&at(&webhook), &key, json!({ "status": "disabled" })).await.expect(200);
    send(&app, &webhook, &json!({})).await.expect_error(410, "endpoint_retired");
    app.patch(&at(&webhook), &key, json!({ "status": "enabled" })).await.expect(200);
    app.sql(format!("UPDATE workspaces SET subscription_status = 'inactive' WHERE id = {}", key.workspace))
        .await;
    send(&app, &webhook, &json!({})).await.expect_error(403, "workspace_blocked");
    assert_eq!(count(&app, "inbound_requests").await, 2);
}

#[testkit::both]
async fn only_so_many_are_taken(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({ "rate_limit": { "per_minute": 60, "burst": 3 } })).await;
    let statuses = async |times: usize| {
        let mut statuses = Vec::new();
        for _ in 0..times {
            statuses.push(send(&app, &webhook, &json!({})).await.status);
        }
        statuses
    };
    assert_eq!(statuses(4).await, [202, 202, 202, 429]);
    let refused = send(&app, &webhook, &json!({})).await;
    refused.expect_error(429, "rate_limited");
    assert_eq!(refused.headers["retry-after"], "1");
    // A change of the webhook does not open the gate anew.
    app.patch(&at(&webhook), &key, json!({ "description": "d" })).await.expect(200);
    app.data.clock.advance(chrono::Duration::seconds(2));
    assert_eq!(statuses(3).await, [202, 202, 429]);
    let other = made(&app, &key, json!({})).await;
    assert_eq!(send(&app, &other, &json!({})).await.status, 202);
    assert_eq!(log(&app, &key, &webhook).await.len(), 5);
}

#[testkit::both]
async fn what_comes_twice_is_taken_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let rules = [
        json!({ "by": "header", "header": "X-Delivery" }),
        json!({ "by": "json_path", "path": "$.event.id" }),
        json!({ "by": "body", "window_seconds": 3600 }),
    ];
    for rule in rules {
        let webhook = made(&app, &key, json!({ "dedupe": rule })).await;
        let post = async |delivery: &str, body: Value| -> Answer {
            let asking = app.ask_beside("POST", &path(&webhook)).header("x-delivery", delivery);
            asking.json(&body).send().await
        };
        let body = |id: i64| json!({ "event": { "id": id } });
        let first = post("a", body(1)).await.expect(202)["id"].clone();
        app.data.clock.advance(chrono::Duration::milliseconds(1));
        let repeated = post("a", body(1)).await.expect(200);
        assert_eq!(repeated, json!({ "id": first, "duplicate": true }));
        app.data.clock.advance(chrono::Duration::milliseconds(1));
        post("b", body(2)).await.expect(202);
        let rows = log(&app, &key, &webhook).await;
        let states: Vec<&Value> = rows.iter().map(|row| &row["status"]).collect();
        assert_eq!(states, ["accepted", "duplicate", "accepted"]);
        assert_eq!(
            (&rows[1]["duplicate_of"], &rows[1]["body"], &rows[1]["event_id"]),
            (&first, &json!(""), &json!(null))
        );
        // It is remembered for as long as was said.
        let window = webhook["dedupe"]["window_seconds"].as_i64().unwrap();
        app.data.clock.advance(chrono::Duration::seconds(window - 2));
        post("a", body(1)).await.expect(200);
        app.data.clock.advance(chrono::Duration::seconds(2));
        let later = post("a", body(1)).await.expect(202)["id"].clone();
        assert_eq!(post("a", body(1)).await.expect(200)["id"], later);
    }
    assert_eq!(kinds(&app).await.len(), 9);
    // Without the header or the value every request is new.
    let webhook = made(&app, &key, json!({ "dedupe": { "by": "json_path", "path": "$.id" } })).await;
    for body in [
        json!({}),
        json!({}),
        json!({ "id": null }),
        json!({ "id": null }),
        json!({ "id": "" }),
        json!({ "id": "" }),
    ] {
        send(&app, &webhook, &body).await.expect(202);
    }
    // A preset knows its header.
    let github = made(&app, &key, json!({ "verification": { "type": "github", "secrets": ["s"] } })).await;
    assert_eq!(
        github["dedupe"],
        json!({ "by": "header", "header": "x-github-delivery", "path": null, "window_seconds": 86400 })
    );
}

#[testkit::both]
async fn duplicates_that_come_at_once_are_distinguished(kind: Kind) {
    let app = TestApp::new(kind).await;
    let replica = app.replica(RateWindows::local()).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({ "dedupe": { "by": "body" } })).await;
    let answers = join_all((0..60).map(async |number| {
        let app = if number % 2 == 0 { &app } else { &replica };
        (number % 5, send(app, &webhook, &json!({ "n": number % 5 })).await)
    }))
    .await;
    let mut firsts: [BTreeSet<String>; 5] = Default::default();
    let mut taken = 0;
    for (group, answer) in &answers {
        assert!(matches!(answer.status, 200 | 202), "{}", answer.text);
        taken += usize::from(answer.status == 202);
        firsts[*group].insert(answer.body["data"]["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(taken, 5);
    assert!(firsts.iter().all(|ids| ids.len() == 1), "{firsts:?}");
    assert_eq!((kinds(&app).await.len(), count(&app, "inbound_requests").await), (5, 60));
}

#[testkit::both]
async fn the_answer_can_be_chosen(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    for (response, status, text, content_type) in [
        (json!({ "type": "static" }), 200, "", None),
        (json!({ "type": "static", "status": 204 }), 204, "", None),
        (json!({ "type": "static", "body": "ok" }), 200, "ok", Some("text/plain; charset=utf-8")),
        (
            json!({ "type": "static", "status": 201, "body": "<Response/>", "content_type": "text/xml" }),
            201,
            "<Response/>",
            Some("text/xml"),
        ),
    ] {
        let webhook = made(&app, &key, json!({ "response": response, "dedupe": { "by": "body" } })).await;
        for _ in 0..2 {
            let answer = send(&app, &webhook, &json!({})).await;
            assert_eq!((answer.status, answer.text.as_str()), (status, text), "{response}");
            assert_eq!(answer.headers.get("content-type").map(String::as_str), content_type, "{response}");
        }
        assert_eq!(log(&app, &key, &webhook).await.len(), 2);
    }
}

#[testkit::both]
async fn senders_can_be_limited_to_networks(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    for (networks, status) in [
        (json!(["127.0.0.1"]), 202),
        (json!(["203.0.113.0/24", "127.0.0.0/8"]), 202),
        (json!([]), 202),
        (json!(["203.0.113.0/24"]), 400),
        (json!(["::1"]), 400),
    ] {
        let webhook = made(&app, &key, json!({ "allowed_ips": networks })).await;
        assert_eq!(send(&app, &webhook, &json!({})).await.status, status, "{networks}");
        let reason = log(&app, &key, &webhook).await[0]["error"]["message"].clone();
        assert_eq!(reason == "address_not_allowed", status == 400);
    }
}

#[testkit::both]
async fn many_refusals_emit_an_event(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({ "verification": { "type": "bearer", "secrets": ["s"] } })).await;
    let refuse = async |times: usize| {
        for _ in 0..times {
            send(&app, &webhook, &json!({})).await.expect_error(400, "invalid_signature");
        }
    };
    refuse(19).await;
    assert_eq!(kinds(&app).await, [""; 0]);
    let shown = app.get(&at(&webhook), &key).await.expect(200);
    assert_eq!(
        (&shown["verification_failures"], &shown["failing_since"]),
        (&json!(19), &json!("2026-01-15T12:00:00.000Z"))
    );
    refuse(3).await;
    assert_eq!(kinds(&app).await, ["inbound_webhook.failing"]);
    app.data.clock.advance(chrono::Duration::seconds(600));
    let shown = app.get(&at(&webhook), &key).await.expect(200);
    assert_eq!((&shown["verification_failures"], &shown["failing_since"]), (&json!(0), &json!(null)));
    refuse(20).await;
    assert_eq!(kinds(&app).await.len(), 2);
}

#[testkit::both]
async fn the_log_is_filtered_and_comes_in_pages(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({ "dedupe": { "by": "body" }, "mapping": { "vars": { "n": { "from": "$.n", "type": "integer" } } } })).await;
    for body in
        [json!({ "n": 1 }), json!({ "n": 1 }), json!({ "n": "x" }), json!({ "n": 2 }), json!({ "n": 3 })]
    {
        send(&app, &webhook, &body).await;
        app.data.clock.advance(chrono::Duration::milliseconds(1));
    }
    let list = async |query: &str| app.get(&format!("{}/requests?{query}", at(&webhook)), &key).await;
    for (status, number) in [
        ("processed", 3),
        ("duplicate", 1),
        ("failed", 1),
        ("rejected", 0),
        ("accepted", 0),
        ("unmatched", 0),
    ] {
        let found = list(&format!("status={status}")).await;
        assert_eq!(found.expect(200).as_array().unwrap().len(), number, "{status}");
        assert_eq!(found.body["pagination"]["total"], number, "{status}");
    }
    let all: Vec<Value> =
        list("").await.expect(200).as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    let page = list("limit=2&offset=1").await;
    let ids: Vec<Value> = page.expect(200).as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, all[1..3]);
    assert_eq!(page.body["pagination"], json!({ "page": 1, "limit": 2, "total": 5, "pages": 3 }));
    assert_eq!(list(&format!("id={}", all[4].as_str().unwrap())).await.expect(200)[0]["id"], all[4]);
    assert_eq!(list("id=whr_none").await.expect(200), json!([]));
    assert_eq!(list("id=nonsense").await.expect(200), json!([]));
    assert_eq!(list("status=odd").await.expect_error(400, "validation_error").as_deref(), Some("status"));
}

#[testkit::both]
async fn old_requests_are_purged(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({ "dedupe": { "by": "body", "window_seconds": 604_800 } })).await;
    app.service.jobs.run_due().await.unwrap();
    for (body, days) in [(json!(1), 7), (json!(2), 6), (json!(3), 1)] {
        send(&app, &webhook, &body).await.expect(202);
        app.data.clock.advance(chrono::Duration::days(days));
    }
    app.service.jobs.run_due().await.unwrap();
    assert_eq!((log(&app, &key, &webhook).await.len(), count(&app, "inbound_keys").await), (3, 1));
    app.data.clock.advance(chrono::Duration::hours(1));
    app.service.jobs.run_due().await.unwrap();
    let rows = log(&app, &key, &webhook).await;
    assert_eq!((rows.len(), &rows[1]["body"]), (2, &json!("2")));
    app.data.clock.advance(chrono::Duration::days(14));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!((log(&app, &key, &webhook).await.len(), count(&app, "inbound_keys").await), (0, 0));
}

#[testkit::both]
async fn a_replica_notices_within_ten_seconds(kind: Kind) {
    let app = TestApp::new(kind).await;
    let replica = app.replica(RateWindows::local()).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({})).await;
    assert_eq!(send(&replica, &webhook, &json!({})).await.status, 202);
    app.delete(&at(&webhook), &key).await.expect(200);
    assert_eq!(send(&app, &webhook, &json!({})).await.status, 404);
    app.data.clock.advance(chrono::Duration::seconds(10));
    assert_eq!(send(&replica, &webhook, &json!({})).await.status, 404);
}

#[testkit::both]
async fn nothing_that_is_sent_is_our_failure(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let mapping = json!({
        "event_type": "header:x-a", "conditions": [{ "from": "$", "op": "neq", "value": 0 }],
        "vars": { "a": { "from": "$" }, "b": { "from": "$['\u{0}'][0]", "type": "number" } },
        "contact": { "match_on": "field", "field": "k", "fields": { "k": "$.a" } },
    });
    let secrets = json!(["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]);
    let mut webhooks = vec![
        made(&app, &key, json!({ "rate_limit": { "per_minute": 100_000 } })).await,
        made(&app, &key, json!({ "rate_limit": { "per_minute": 100_000 }, "dedupe": { "by": "json_path", "path": "$.a" } })).await,
    ];
    let mut refused = mapping.clone();
    refused["vars"].as_object_mut().unwrap().remove("b");
    webhooks
        .push(made(&app, &key, json!({ "mapping": refused, "rate_limit": { "per_minute": 100_000 } })).await);
    for kind in [
        "standard_webhooks",
        "stripe",
        "github",
        "slack",
        "meta",
        "zoom",
        "twilio",
        "microsoft_graph",
        "dropbox",
        "bearer",
    ] {
        let new = json!({ "verification": { "type": kind, "secrets": secrets }, "rate_limit": { "per_minute": 100_000 } });
        webhooks.push(made(&app, &key, new).await);
    }
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let bodies: Vec<&[u8]> = vec![
        b"",
        b"\0",
        b"\xff\xfe",
        b"{",
        b"null",
        b"[]",
        b"{\"a\":\"\\u0000\"}",
        b"{\"a\":1e999}",
        b"{\"\\u0000\":[1]}",
        b"{\"a\":123456789012345678901234567890}",
        b"a=%00&a=%ff&%=",
        deep.as_bytes(),
        b"{\"value\":[{\"clientState\":1}]}",
        b"{\"a\":\"\\ud800\"}",
    ];
    for webhook in &webhooks {
        for body in &bodies {
            for content_type in
                ["application/json", "application/x-www-form-urlencoded", "text/plain; charset=\"", "\u{e9}"]
            {
                let asking = app
                    .ask_beside("POST", &format!("{}?a=%00%ff&validationToken=&hub.mode=%zz", path(webhook)));
                let asking = asking
                    .header("x-a", "\u{e9}\u{1f600}")
                    .header("stripe-signature", "t=,v1=,,=")
                    .header("authorization", "Bearer \u{e9}");
                let answer = asking.bytes(content_type, body).send().await;
                assert!(answer.status < 500, "{}: {}", String::from_utf8_lossy(body), answer.text);
            }
        }
        log(&app, &key, webhook).await;
    }
}
