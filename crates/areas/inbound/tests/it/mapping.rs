//! Mapping: what is made of a request, trying it out, proposals, and mapping once more.

use crate::webhooks::{at, bare, log, made, next, path};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

/// The data of all `webhook.received` events, in order.
async fn events(app: &TestApp) -> Vec<Value> {
    use diesel::prelude::*;
    use store::schema::events;
    let rows = app.db().read(|read| {
        let own = events::table.filter(events::kind.eq("webhook.received")).order(events::sequence.asc());
        Ok(own.select(events::data).load::<String>(read.connection())?)
    });
    rows.await.unwrap().iter().map(|row| serde_json::from_str(row).unwrap()).collect()
}

#[testkit::both]
async fn a_request_is_mapped(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let mapping = json!({
        "event_type": "header:X-Topic",
        "conditions": [
            { "from": "$.order.total", "op": "gte", "value": 10 }, { "from": "$.test", "op": "not_exists" },
            { "from": "$.order.state", "op": "in", "value": ["paid", "sent"] },
        ],
        "vars": {
            "total": { "from": "$.order.total", "type": "number" }, "id": { "from": "$.order.id", "type": "string" },
            "first": { "from": "$.order.items[0].sku" }, "last": { "from": "$.order.items[-1].sku" },
            "page": { "from": "query:page", "type": "integer" }, "note": { "from": "$.note", "default": "none" },
            "missing": { "from": "$.nothing" }, "all": { "from": "$.order.items", "type": "array" },
        },
        "contact": { "match_on": "email", "create": true, "fields": { "email": "$.buyer.email", "name": "$.buyer.name", "phone": "$.buyer.phone" } },
    });
    let webhook = made(&app, &key, json!({ "mapping": mapping })).await;
    let order = json!({
        "order": { "total": "12.50", "id": 7, "state": "paid", "items": [{ "sku": "a" }, { "sku": "b" }] },
        "buyer": { "email": "a@b.c", "name": "Ä" },
    });
    let asking =
        app.ask_beside("POST", &format!("{}?page=3", path(&webhook))).header("x-topic", "orders/paid");
    let id = asking.json(&order).send().await.expect(202)["id"].clone();
    let row = log(&app, &key, &webhook).await.remove(0);
    assert_eq!((&row["id"], &row["status"]), (&id, &json!("processed")));
    let vars = json!({
        "total": 12.5, "id": "7", "first": "a", "last": "b", "page": 3, "note": "none", "missing": null,
        "all": [{ "sku": "a" }, { "sku": "b" }],
    });
    let contact = json!({ "match_on": "email", "key": "email", "value": "a@b.c", "create": true, "fields": { "email": "a@b.c", "name": "Ä" } });
    assert_eq!(row["result"], json!({ "event_type": "orders/paid", "vars": vars, "contact": contact }));
    let event = events(&app).await.remove(0);
    assert_eq!(
        (&event["vars"], &event["contact"], &event["event_type"]),
        (&vars, &contact, &json!("orders/paid"))
    );
    assert_eq!(
        (&event["request_id"], &event["inbound_webhook_id"], &event["body"]),
        (&id, &webhook["id"], &order)
    );

    // A condition that does not hold keeps the request and tells nobody.
    for (field, value) in [("total", json!(9)), ("state", json!("open")), ("total", json!("x"))] {
        let mut other = order.clone();
        other["order"][field] = value;
        assert_eq!(next(&app, &webhook, &other).await.status, 202);
        assert_eq!(log(&app, &key, &webhook).await[0]["status"], "unmatched");
    }
    // A value that does not fit says where.
    let mut other = order.clone();
    other["order"]["items"] = json!("none");
    assert_eq!(next(&app, &webhook, &other).await.status, 202);
    let row = log(&app, &key, &webhook).await.remove(0);
    assert_eq!((&row["status"], &row["error"]["param"]), (&json!("failed"), &json!("mapping.vars.all")));
    other = order.clone();
    other["buyer"] = json!({});
    assert_eq!(next(&app, &webhook, &other).await.status, 202);
    assert_eq!(log(&app, &key, &webhook).await[0]["error"]["param"], "mapping.contact.fields.email");
    assert_eq!(events(&app).await.len(), 1);
}

#[testkit::both]
async fn forms_texts_and_bytes_are_mapped_too(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(
        &app,
        &key,
        json!({ "mapping": { "vars": { "whole": { "from": "$" }, "a": { "from": "$.a" } } } }),
    )
    .await;
    for (content_type, body, whole, a) in [
        (
            "application/x-www-form-urlencoded",
            &b"a=1&b=%C3%BC"[..],
            json!({ "a": "1", "b": "ü" }),
            json!("1"),
        ),
        ("application/vnd.api+json; charset=utf-8", b"{\"a\":[1]}", json!({ "a": [1] }), json!([1])),
        ("text/plain", b"hello", json!("hello"), json!(null)),
        ("application/json", b"{broken", json!("{broken"), json!(null)),
        ("application/octet-stream", b"\x00\xff", json!("AP8="), json!(null)),
        ("multipart/form-data; boundary=x", b"--x--", json!("--x--"), json!(null)),
        ("application/json", b"{\"a\":\"\\u0000\"}", json!({ "a": "\0" }), json!("\0")),
    ] {
        let answer = app.ask_beside("POST", &path(&webhook)).bytes(content_type, body).send().await;
        assert_eq!(answer.status, 202, "{content_type}: {}", answer.text);
        let event = events(&app).await.pop().unwrap();
        assert_eq!((&event["vars"]["whole"], &event["vars"]["a"]), (&whole, &a), "{content_type}");
        let encoding = if body.contains(&0xff) { json!("base64") } else { json!(null) };
        assert_eq!((&event["body"], &event["body_encoding"]), (&whole, &encoding), "{content_type}");
    }
    // What is too large for an event is not told in it, and a result that is too large fails.
    let large = "x".repeat(30_000);
    app.data.clock.advance(chrono::Duration::milliseconds(1));
    assert_eq!(
        app.ask_beside("POST", &path(&webhook)).bytes("text/plain", large.as_bytes()).send().await.status,
        202
    );
    let row = log(&app, &key, &webhook).await.remove(0);
    assert_eq!((&row["status"], &row["error"]["param"]), (&json!("failed"), &json!("mapping")));
    assert_eq!((row["body"].as_str().unwrap().len(), &row["body_truncated"]), (4096, &json!(true)));
    app.patch(&at(&webhook), &key, json!({ "mapping": null })).await.expect(200);
    assert_eq!(
        app.ask_beside("POST", &path(&webhook)).bytes("text/plain", large.as_bytes()).send().await.status,
        202
    );
    let event = events(&app).await.pop().unwrap();
    assert_eq!((&event["body"], &event["body_truncated"]), (&json!(null), &json!(true)));
}

#[testkit::both]
async fn a_mapping_is_tried_without_being_stored(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({})).await;
    let first = next(&app, &webhook, &json!({ "n": 1 })).await.expect(202)["id"].clone();
    next(&app, &webhook, &json!({ "n": "one" })).await.expect(202);
    let mapping = json!({ "vars": { "n": { "from": "$.n", "type": "integer" } } });
    let dry = format!("{}?dry_run=true", at(&webhook));
    let tried = app.patch(&dry, &key, json!({ "mapping": mapping })).await.expect(200);
    assert_eq!(tried["mapping"]["vars"]["n"]["type"], "integer");
    let preview = tried["preview"].as_array().unwrap();
    assert_eq!(preview.len(), 2);
    assert_eq!(
        (&preview[0]["status"], &preview[0]["error"]["param"]),
        (&json!("failed"), &json!("mapping.vars.n"))
    );
    assert_eq!(
        (&preview[1]["status"], &preview[1]["request_id"], &preview[1]["result"]["vars"]),
        (&json!("processed"), &first, &json!({ "n": 1 }))
    );
    let made_up = json!({ "body": "{\"n\":5}", "headers": { "X-A": "b" }, "query": "q=1" });
    let mapping =
        json!({ "event_type": "header:x-a", "vars": { "n": { "from": "$.n" }, "q": { "from": "query:q" } } });
    let tried = app.patch(&dry, &key, json!({ "mapping": mapping, "sample": made_up })).await.expect(200);
    let expected = json!([{ "request_id": null, "status": "processed", "error": null,
        "result": { "event_type": "b", "vars": { "n": 5, "q": "1" }, "contact": null } }]);
    assert_eq!(tried["preview"], expected);
    let tried = app.patch(&dry, &key, json!({ "sample": { "request_id": first } })).await.expect(200);
    assert_eq!(tried["preview"][0]["status"], "accepted");
    for (path, body, param) in [
        (&dry, json!({ "sample": { "request_id": "whr_none" } }), "sample.request_id"),
        (&dry, json!({ "sample": { "request_id": first, "body": "x" } }), "sample"),
        (&at(&webhook), json!({ "sample": { "body": "x" } }), "sample"),
    ] {
        let refused = app.patch(path, &key, body).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    assert_eq!(app.get(&at(&webhook), &key).await.expect(200), webhook);
    assert_eq!(events(&app).await.len(), 2);
}

#[testkit::both]
async fn what_failed_is_mapped_once_more(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let mapping = |kind: &str| json!({ "vars": { "n": { "from": "$.n", "type": kind } } });
    let webhook = made(&app, &key, json!({ "mapping": mapping("integer") })).await;
    for body in [json!({ "n": "one" }), json!({ "n": 2 }), json!({ "n": [] })] {
        assert_eq!(next(&app, &webhook, &body).await.status, 202);
    }
    assert_eq!(events(&app).await.len(), 1);
    app.patch(&at(&webhook), &key, json!({ "mapping": mapping("string"), "reprocess_failed": true }))
        .await
        .expect(200);
    app.service.jobs.run_due().await.unwrap();
    let rows = log(&app, &key, &webhook).await;
    let states: Vec<&Value> = rows.iter().map(|row| &row["status"]).collect();
    assert_eq!(states, ["failed", "processed", "processed"]);
    let reported = events(&app).await;
    assert_eq!(reported.len(), 2);
    assert_eq!((&reported[1]["vars"]["n"], &reported[1]["request_id"]), (&json!("one"), &rows[2]["id"]));
    assert_eq!(rows[2]["error"], Value::Null);
    assert!(rows[2]["event_id"].as_str().unwrap().starts_with("evt_"));
    // Once more finds nothing that fits.
    app.patch(&at(&webhook), &key, json!({ "reprocess_failed": true })).await.expect(200);
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(events(&app).await.len(), 2);
    // One with the mapping taken away takes the rest.
    app.patch(&at(&webhook), &key, json!({ "mapping": null, "reprocess_failed": true })).await.expect(200);
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(log(&app, &key, &webhook).await[0]["status"], "accepted");
    assert_eq!(events(&app).await.len(), 3);
}

#[testkit::both]
async fn what_came_in_makes_a_proposal(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let webhook = made(&app, &key, json!({ "capture": true })).await;
    assert_eq!(app.get(&at(&webhook), &key).await.expect(200)["sample"], Value::Null);
    for number in 0..12 {
        let body = json!({ "type": "paid", "order": { "id": number, "email": "a@b.c" } });
        assert_eq!(next(&app, &webhook, &body).await.status, 202);
    }
    let sample = app.get(&at(&webhook), &key).await.expect(200)["sample"].clone();
    assert_eq!(sample["request_ids"].as_array().unwrap().len(), 10);
    assert_eq!(sample["schema"]["properties"]["order"]["properties"]["id"], json!({ "type": "integer" }));
    assert_eq!(sample["mapping"]["event_type"], "$.type");
    assert_eq!(sample["mapping"]["contact"]["fields"], json!({ "email": "$.order.email" }));
    // The proposal can be stored as it is, and fits.
    app.patch(&at(&webhook), &key, json!({ "mapping": sample["mapping"], "capture": false }))
        .await
        .expect(200);
    next(&app, &webhook, &json!({ "type": "paid", "order": { "id": 99, "email": "d@e.f" } }))
        .await
        .expect(202);
    let row = log(&app, &key, &webhook).await.remove(0);
    assert_eq!((&row["status"], &row["result"]["vars"]["order_id"]), (&json!("processed"), &json!(99)));
    assert_eq!(app.get(&at(&webhook), &key).await.expect(200)["sample"], Value::Null);
}
