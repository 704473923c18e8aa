//! Requests that a flow answers, with scripted flows.

use crate::webhooks::{at, bare, log, made, next, send};
use model::{Code, Env, Error, FlowId};
use ports::{FlowResponse, FlowStarter, Unstartable};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{FlowEnd, Key, Kind, ScriptedFlows, TestApp};

async fn open(kind: Kind) -> (ScriptedFlows, TestApp, Key) {
    let flows = ScriptedFlows::default();
    let app = TestApp::with_services(kind, flows.services()).await;
    let key = bare(&app).await;
    flows.publish(key.workspace, 7, json!({}));
    (flows, app, key)
}

fn by_flow(more: Value) -> Value {
    let mut body = json!({ "response": { "type": "flow", "flow_id": 7 } });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn response(status: u16, headers: &[(&str, &str)], body: Value) -> FlowEnd {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    FlowEnd::Response(FlowResponse { status, headers, body })
}

#[testkit::both]
async fn a_run_gets_the_request_and_answers_it(kind: Kind) {
    let (flows, app, key) = open(kind).await;
    let contact = json!({ "data": { "$name": "Ana", "$email": "ana@example.com" } });
    let contact = app.post("/contacts", &key, contact).await.expect(201);
    let mapping = json!({
        "vars": { "total": { "from": "$.total", "type": "number" } },
        "contact": { "match_on": "email", "fields": { "email": "$.email" } },
    });
    let hook = made(&app, &key, by_flow(json!({ "mapping": mapping }))).await;
    assert_eq!(
        hook["response"],
        json!({ "type": "flow", "flow_id": 7, "timeout_seconds": null, "status": null, "body": null, "content_type": null })
    );
    flows.then(response(
        201,
        &[
            ("ETag", "\"1\""),
            ("Set-Cookie", "a=b"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close"),
            ("X-Accel-Redirect", "/secret"),
            ("Access-Control-Allow-Origin", "*"),
            ("Vary", "a\r\nb: c"),
        ],
        json!({ "accepted": true }),
    ));
    let answer = send(&app, &hook, &json!({ "total": "19.90", "email": "ana@example.com", "more": 1 })).await;
    assert_eq!((answer.status, &answer.body), (201, &json!({ "accepted": true })));
    assert_eq!(answer.headers["etag"], "\"1\"");
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.headers["content-security-policy"], "sandbox");
    assert!(answer.headers["x-request-id"].starts_with("req_"));
    for name in ["set-cookie", "connection", "x-accel-redirect", "access-control-allow-origin"] {
        assert!(!answer.headers.contains_key(name), "{name}");
    }
    assert!(!answer.headers.get("vary").is_some_and(|vary| vary.contains('b')));
    let started = flows.started();
    let start = &started[0].start;
    assert_eq!((start.workspace, start.flow, start.livemode), (key.workspace, FlowId(7), true));
    assert_eq!(start.input, json!({ "total": 19.90 }));
    assert_eq!(start.contact.map(|id| id.0), contact["id"].as_i64());
    assert_eq!(started[0].patience, Some(Duration::from_secs(25)));
    let row = log(&app, &key, &hook).await.remove(0);
    assert_eq!(start.by, FlowStarter::InboundWebhook(row["id"].as_str().unwrap().to_owned()));
    // What happened is what the event says, and the run is one step after it.
    app.deliver().await;
    let event = app.get(&format!("/events/{}", row["event_id"].as_str().unwrap()), &key).await.expect(200);
    assert_eq!(start.payload, event["data"]);
    let chain = start.chain.as_ref().unwrap();
    assert_eq!((chain.depth, json!(chain.root)), (1, event["id"].clone()));
    // Without a mapping the input is the body, also one that is too large for the event.
    let plain = made(&app, &key, by_flow(json!({}))).await;
    let large = json!({ "text": "x".repeat(100_000) });
    for (body, input) in
        [(large.clone(), large), (json!([1]), json!({ "body": [1] })), (json!("a"), json!({ "body": "a" }))]
    {
        assert_eq!(send(&app, &plain, &body).await.status, 200);
        assert_eq!(flows.started().pop().unwrap().start.input, input);
    }
    assert_eq!(flows.started().pop().unwrap().start.contact, None);
}

#[testkit::both]
async fn each_end_of_a_run_has_its_answer(kind: Kind) {
    let (flows, app, key) = open(kind).await;
    let hook =
        made(&app, &key, json!({ "response": { "type": "flow", "flow_id": 7, "timeout_seconds": 3 } })).await;
    let last = || flows.started().pop().unwrap();
    flows.then(FlowEnd::Completed(json!({ "price": 3 })));
    let answer = send(&app, &hook, &json!({})).await;
    let id = log(&app, &key, &hook).await[0]["id"].clone();
    let data = json!({ "id": id, "flow_run_id": last().run, "output": { "price": 3 } });
    assert_eq!((answer.status, &answer.body), (200, &json!({ "success": true, "data": data })));
    assert_eq!(last().patience, Some(Duration::from_secs(3)));
    // One that goes on is not a success yet.
    flows.then(FlowEnd::Pending);
    let answer = send(&app, &hook, &json!({})).await;
    assert_eq!((answer.status, &answer.body["data"]["flow_run_id"]), (202, &json!(last().run)));
    // n8n#25340: a flow that fails before it responds is not answered with 200.
    for status in ["failed", "cancelled", "expired"] {
        flows.then(FlowEnd::Ended(status, "The price of our supplier is secret."));
        let answer = send(&app, &hook, &json!({})).await;
        answer.expect_error(502, "flow_failed");
        let details = json!({ "flow_run_id": last().run, "status": status });
        assert_eq!(answer.body["error"]["details"], details);
        testkit::assert_absent(&answer.text, "The price of our supplier is secret.");
    }
    for (end, status, content_type, text) in [
        (response(200, &[("content-type", "text/xml")], json!("<a/>")), 200, Some("text/xml"), "<a/>"),
        (response(200, &[], json!("<a/>")), 200, Some("application/json"), "\"<a/>\""),
        (
            response(404, &[("Content-Type", "application/problem+json")], json!({})),
            404,
            Some("application/problem+json"),
            "{}",
        ),
        (response(204, &[], json!({ "a": 1 })), 204, None, ""),
        (response(202, &[], Value::Null), 202, None, ""),
    ] {
        flows.then(end);
        let answer = send(&app, &hook, &json!({})).await;
        assert_eq!((answer.status, answer.text.as_str()), (status, text));
        assert_eq!(answer.headers.get("content-type").map(String::as_str), content_type);
    }
    for status in [0, 101, 600] {
        flows.then(response(status, &[], json!({})));
        send(&app, &hook, &json!({})).await.expect_error(502, "flow_failed");
    }
    let kept = log(&app, &key, &hook).await;
    assert!(kept.iter().all(|row| row["status"] == "accepted"), "{kept:?}");
}

#[testkit::both]
async fn a_repeated_delivery_gets_the_answer_of_the_same_run(kind: Kind) {
    let (flows, app, key) = open(kind).await;
    let dedupe = json!({ "by": "json_path", "path": "$.id" });
    let hook = made(&app, &key, by_flow(json!({ "dedupe": dedupe }))).await;
    flows.then(response(201, &[], json!({ "n": 1 }))).then(response(201, &[], json!({ "n": 2 })));
    for (id, n) in [(1, 1), (1, 1), (2, 2), (1, 1)] {
        let answer = next(&app, &hook, &json!({ "id": id })).await;
        assert_eq!((answer.status, &answer.body), (201, &json!({ "n": n })));
    }
    assert_eq!(flows.started().len(), 2);
    // A run that could not be started is started by the next delivery, for the first request.
    flows.withdraw(key.workspace, 7, Unstartable::Inactive);
    let answer = next(&app, &hook, &json!({ "id": 3 })).await;
    answer.expect_error(503, "flow_unavailable");
    assert_eq!(answer.body["error"]["details"]["reason"], "inactive");
    let first = log(&app, &key, &hook).await[0]["id"].clone();
    flows.publish(key.workspace, 7, json!({}));
    let answer = next(&app, &hook, &json!({ "id": 3 })).await;
    assert_eq!((answer.status, &answer.body["data"]["id"]), (200, &first));
    assert_eq!(flows.started().len(), 3);
}

#[testkit::both]
async fn what_no_flow_can_answer_is_refused(kind: Kind) {
    let (flows, app, key) = open(kind).await;
    flows.withdraw(key.workspace, 9, Unstartable::NotPublished);
    flows.withdraw(key.workspace, 10, Unstartable::Inactive);
    let stranger = bare(&app).await;
    flows.publish(stranger.workspace, 8, json!({}));
    let new = |response: Value| json!({ "name": "x", "response": response });
    for (response, param) in [
        (json!({ "type": "flow" }), "response.flow_id"),
        (json!({ "type": "flow", "flow_id": 7, "status": 200 }), "response.status"),
        (json!({ "type": "flow", "flow_id": 7, "timeout_seconds": 26 }), "response.timeout_seconds"),
        (json!({ "type": "flow", "flow_id": 7, "timeout_seconds": 0 }), "response.timeout_seconds"),
        (json!({ "type": "static", "flow_id": 7 }), "response.flow_id"),
        (json!({ "type": "ack", "timeout_seconds": 7 }), "response.timeout_seconds"),
        (json!({ "type": "ack", "body": "x" }), "response.body"),
    ] {
        let refused = app.post("/inbound-webhooks", &key, new(response.clone())).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{response}");
    }
    let hook = made(&app, &key, json!({})).await;
    let flow = |id: i64| json!({ "response": { "type": "flow", "flow_id": id } });
    for (id, status, code) in
        [(8, 404, "not_found"), (99, 404, "not_found"), (9, 409, "invalid_state"), (10, 409, "invalid_state")]
    {
        for refused in [
            app.post("/inbound-webhooks", &key, new(flow(id)["response"].clone())).await,
            app.patch(&at(&hook), &key, flow(id)).await,
        ] {
            assert_eq!(refused.expect_error(status, code).as_deref(), Some("response.flow_id"), "{id}");
        }
    }
    let modest = app.key(key.workspace, Env::Live, &["webhooks:manage"]).await;
    let refused = app.patch(&at(&hook), &modest, flow(7)).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("automations:execute"));
    app.patch(&at(&hook), &key, flow(7)).await.expect(200);
    // Other changes need neither the scope nor the flow.
    flows.withdraw(key.workspace, 7, Unstartable::Missing);
    app.patch(&at(&hook), &modest, json!({ "description": "y" })).await.expect(200);
    let answer = send(&app, &hook, &json!({})).await;
    answer.expect_error(503, "flow_unavailable");
    assert_eq!(answer.body["error"]["details"]["reason"], "not_found");
    // What a sender can mend is said, and failures of the service stay such.
    flows.publish(key.workspace, 7, json!({}));
    flows.then(FlowEnd::Refused(|| Error::invalid("input.price", "is required")));
    let refused = send(&app, &hook, &json!({})).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("input.price"));
    flows.then(FlowEnd::Refused(|| Error::new(Code::ServiceUnavailable, "Not now.")));
    send(&app, &hook, &json!({})).await.expect_error(503, "service_unavailable");
    flows.then(FlowEnd::Refused(|| Error::new(Code::EnergyDepleted, "No Energy.")));
    let refused = send(&app, &hook, &json!({})).await;
    refused.expect_error(503, "flow_unavailable");
    assert_eq!(refused.body["error"]["details"]["reason"], "energy_depleted");
    // Unmatched, refused and other requests ask no flow.
    let mapping = json!({ "conditions": [{ "from": "$.a", "op": "exists" }] });
    let verification = json!({ "type": "bearer", "secrets": ["s"] });
    app.patch(&at(&hook), &key, json!({ "mapping": mapping })).await.expect(200);
    assert_eq!(send(&app, &hook, &json!({})).await.status, 202);
    app.patch(&at(&hook), &key, json!({ "verification": verification })).await.expect(200);
    assert_eq!(send(&app, &hook, &json!({ "a": 1 })).await.status, 400);
    assert_eq!(flows.started().len(), 0);
}

#[testkit::both]
async fn requests_that_are_mapped_once_more_start_the_flow(kind: Kind) {
    let (flows, app, key) = open(kind).await;
    let required = json!({ "vars": { "n": { "from": "$.m", "required": true } } });
    let hook = made(&app, &key, by_flow(json!({ "mapping": required }))).await;
    for n in [1, 2] {
        assert_eq!(next(&app, &hook, &json!({ "n": n })).await.status, 202, "it failed, so no flow is asked");
    }
    let mended = json!({ "vars": { "n": { "from": "$.n", "required": true } } });
    flows.then(FlowEnd::Refused(|| Error::new(Code::InvalidState, "Not now.")));
    app.patch(&at(&hook), &key, json!({ "mapping": mended, "reprocess_failed": true })).await.expect(200);
    app.service.jobs.run_due().await.unwrap();
    let started = flows.started();
    assert_eq!((started.len(), &started[0].start.input, started[0].patience), (1, &json!({ "n": 2 }), None));
    assert_eq!(started[0].start.chain.as_ref().map(|chain| chain.depth), Some(1));
    let kept = log(&app, &key, &hook).await;
    assert!(kept.iter().all(|row| row["status"] == "processed"), "{kept:?}");
}

#[testkit::both]
async fn webhooks_use_their_flow(kind: Kind) {
    let (_, app, key) = open(kind).await;
    let hook = made(&app, &key, by_flow(json!({}))).await;
    let uses = app.service.pipeline.services.get::<ports::ObjectUses>().unwrap();
    let used = async |flow: i64| {
        let (uses, workspace) = (uses.clone(), key.workspace);
        let look =
            move |read: &mut store::Read| uses.of(read, workspace, ports::UsedObject::Flow(FlowId(flow)));
        app.db().read(look).await.unwrap().into_iter().map(|used| used.id).collect::<Vec<_>>()
    };
    assert_eq!(used(7).await, [hook["id"].as_str().unwrap()]);
    assert!(used(77).await.is_empty());
    app.patch(&at(&hook), &key, json!({ "response": { "type": "ack" } })).await.expect(200);
    assert!(used(7).await.is_empty());
}
