//! HTTP requests, against a real server.

use super::{Flow, act, failure, node, output};
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, OpenAiServer, TestApp, assert_absent};

fn request(server: &OpenAiServer, method: &str, more: Value) -> Value {
    let mut config = json!({ "method": method, "url": format!("http://{}/orders", server.address) });
    for (name, value) in more.as_object().unwrap() {
        config[name] = value.clone();
    }
    config
}

/// A node that is not tried again.
fn once(config: Value) -> Value {
    json!({ "id": "act", "type": "http_request", "config": config, "retry": { "max_attempts": 1 } })
}

#[testkit::both]
async fn a_request_has_its_query_headers_and_body(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let server = OpenAiServer::start().await;
    server.then(200, None, json!({ "id": 7 })).then(201, None, json!({ "id": 8 }));
    let config = request(
        &server,
        "GET",
        json!({ "query": { "q": "{{ $input.q }}", "n": 2 }, "headers": { "X-Shop": "toys" } }),
    );
    let got = output(&act(&app, &key, "http_request", config, json!({ "input": { "q": "a&b" } })).await);
    assert_eq!((&got["status"], &got["body"]), (&json!(200), &json!({ "id": 7 })));
    let config = request(&server, "POST", json!({ "body": { "order": "{{ $input.q }}" } }));
    let made = output(&act(&app, &key, "http_request", config, json!({ "input": { "q": 5 } })).await);
    assert_eq!((&made["status"], &server.bodies()[1]), (&json!(201), &json!({ "order": 5 })));
    let heads = server.heads();
    assert!(
        heads[0].starts_with("get /orders?") && heads[0].contains("q=a%26b") && heads[0].contains("n=2"),
        "{}",
        heads[0]
    );
    assert!(heads[0].contains("x-shop: toys") && !heads[0].contains("idempotency-key"), "{}", heads[0]);
    assert!(
        heads[1].contains("idempotency-key: flow:frun_")
            && heads[1].contains("content-type: application/json"),
        "{}",
        heads[1]
    );
}

#[testkit::both]
async fn secrets_are_sent_and_not_kept(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let secret = json!({ "key": "token", "type": "secret", "value": "s3cret-Token/9" });
    app.post("/variables", &key, secret).await.expect(201);
    let server = OpenAiServer::start().await;
    server.then(200, None, json!({ "echo": "Bearer s3cret-Token/9" })).then(
        500,
        None,
        json!({ "echo": "s3cret-Token/9" }),
    );
    let config = request(
        &server,
        "POST",
        json!({
            "headers": { "Authorization": "Bearer {{ $vars.token }}" }, "query": { "t": "{{ $vars.token }}" },
            "body": { "token": "{{ $vars.token }}" },
        }),
    );
    let flow = Flow::publish(&app, &key, vec![once(config)]).await;
    for status in ["completed", "failed"] {
        let run = flow.run(json!({})).await;
        let step = flow.step(&run, "act").await;
        assert_eq!(step["status"], status, "{step}");
        assert_absent(&step.to_string(), "s3cret-Token/9");
        assert_absent(&run.to_string(), "s3cret-Token/9");
    }
    assert!(server.heads()[0].contains("authorization: bearer s3cret-token/9"), "{}", server.heads()[0]);
    assert!(server.heads()[0].contains("t=s3cret%2dtoken%2f9"), "{}", server.heads()[0]);
    assert_eq!(server.bodies()[0], json!({ "token": "s3cret-Token/9" }));
    let in_host = json!({ "url": "http://{{ $vars.token }}.example.com/" });
    assert_eq!(failure(&act(&app, &key, "http_request", in_host, json!({})).await), "secret_not_allowed");
    let elsewhere = json!({ "fields": { "title": "{{ $vars.token }}" } });
    assert_eq!(failure(&act(&app, &key, "task", elsewhere, json!({})).await), "secret_not_allowed");
}

#[testkit::both]
async fn answers_that_cannot_be_taken_are_failures(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let server = OpenAiServer::start().await;
    let json_type = [("content-type", "application/json")];
    let large = format!("\"{}\"", "a".repeat(5_000_000));
    server
        .then_raw(200, &json_type, large)
        .then_raw(200, &json_type, vec![b'"', 0xff, b'"'])
        .then_raw(200, &json_type, "{")
        .then_raw(200, &[("content-type", "image/png")], vec![0x89, 0x50, 0xff])
        .then(404, None, json!({ "error": "no such order" }))
        .then(200, None, json!({}));
    let flow = Flow::publish(&app, &key, vec![once(request(&server, "GET", json!({})))]).await;
    for (code, message) in [
        ("answer_too_large", "There is no answer: response too large: the body is larger than accepted."),
        ("invalid_answer", "The body of the answer is not valid UTF-8."),
        ("invalid_answer", "The body of the answer is not valid JSON."),
        ("invalid_answer", "The body of the answer is not valid UTF-8."),
        ("http_404", "The server answered 404: {\"error\":\"no such order\"}"),
    ] {
        let run = flow.run(json!({})).await;
        let step = flow.step(&run, "act").await;
        assert_eq!((failure(&step).as_str(), step["error"]["message"].as_str().unwrap()), (code, message));
    }
    // A status can be a success.
    server.then(404, None, json!({}));
    let config = request(&server, "GET", json!({ "success_codes": [404] }));
    output(&flow.step(&flow.run(json!({})).await, "act").await);
    assert_eq!(output(&act(&app, &key, "http_request", config, json!({})).await)["status"], 404);
    for config in [
        json!({ "url": "ftp://example.com/" }),
        json!({ "url": "http://169.254.169.254/latest" }),
        json!({ "url": "no url" }),
    ] {
        assert_eq!(
            failure(&act(&app, &key, "http_request", config.clone(), json!({})).await),
            "http_refused",
            "{config}"
        );
    }
    let header = request(&server, "GET", json!({ "headers": { "Host": "example.com" } }));
    assert_eq!(failure(&act(&app, &key, "http_request", header, json!({})).await), "validation_error");
}

#[testkit::both]
async fn reads_are_repeated_and_writes_only_where_nothing_happened(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let server = OpenAiServer::start().await;
    // A server that asks to wait is asked again after that time, with the same key.
    server.then(429, Some(7), json!({})).then(200, None, json!({ "id": 1 }));
    let flow =
        Flow::publish(&app, &key, vec![node("act", "http_request", request(&server, "POST", json!({})))])
            .await;
    let run = flow.run(json!({})).await;
    assert_eq!(
        (&run["status"], &run["waiting_for"][0]["type"]),
        (&json!("waiting"), &json!("retry")),
        "{run}"
    );
    app.data.clock.advance(chrono::Duration::seconds(8));
    app.run_flows().await;
    assert_eq!(flow.read(&run).await["status"], "completed");
    let key_of =
        |head: &str| head.lines().find(|line| line.starts_with("idempotency-key")).unwrap().to_owned();
    assert_eq!(key_of(&server.heads()[0]), key_of(&server.heads()[1]));
    // A POST that may have had its effect is not repeated.
    server.then(500, None, json!({}));
    let run = flow.run(json!({})).await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("failed"), &json!("http_500")));
    let silent = json!({
        "id": "act", "type": "http_request", "config": request(&server, "POST", json!({})), "timeout_seconds": 1,
    });
    server.then_silence();
    let run = Flow::publish(&app, &key, vec![silent.clone()]).await.run(json!({})).await;
    assert_eq!(
        (&run["status"], &run["error"]["code"]),
        (&json!("failed"), &json!("outcome_unknown")),
        "{run}"
    );
    let mut careful = silent;
    careful["effect_policy"] = "pause".into();
    server.then_silence();
    let run = Flow::publish(&app, &key, vec![careful]).await.run(json!({})).await;
    assert_eq!(
        (&run["status"], &run["pause_reason"]),
        (&json!("paused"), &json!("outcome_unknown")),
        "{run}"
    );
    assert_eq!(server.requests(), 5);
}

#[testkit::both]
async fn an_unknown_outcome_is_repeated_with_the_same_key_as_often_as_attempts_are_left(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let server = OpenAiServer::start().await;
    let node = json!({
        "id": "act", "type": "http_request", "config": request(&server, "POST", json!({})), "timeout_seconds": 1,
        "effect_policy": "retry", "retry": { "max_attempts": 3, "delay_seconds": 4, "backoff": "fixed" },
    });
    let flow = Flow::publish(&app, &key, vec![node]).await;
    for _ in 0..3 {
        server.then_silence();
    }
    let mut run = flow.run(json!({})).await;
    // A timeout leaves the outcome unknown.
    assert_eq!(run["waiting_for"][0]["type"], "retry", "{run}");
    app.data.clock.advance(chrono::Duration::seconds(5));
    app.run_flows().await;
    // So does the death of a worker while the node acts.
    let (id, running) = (run["id"].as_str().unwrap(), "status = 'running', ended_at = NULL");
    app.sql(format!("DELETE FROM flow_waits WHERE run_id = '{id}'")).await;
    app.sql(format!("UPDATE flow_steps SET {running} WHERE run_id = '{id}' AND status = 'pending'")).await;
    app.sql(format!("UPDATE flow_runs SET status = 'running', wake_at = created_at WHERE id = '{id}'")).await;
    app.run_flows().await;
    run = flow.read(&run).await;
    assert_eq!(
        (&run["status"], &run["error"]["code"]),
        (&json!("failed"), &json!("outcome_unknown")),
        "{run} {:?}",
        flow.steps(&run).await
    );
    let heads = server.heads();
    let key_of =
        |head: &String| head.lines().find(|line| line.starts_with("idempotency-key")).unwrap().to_owned();
    assert!(heads.iter().all(|head| key_of(head) == key_of(&heads[0])), "{heads:?}");
    assert_eq!(server.requests(), 2);
}

#[testkit::both]
async fn a_test_key_reads_and_simulates_writes(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let test = app.key(key.workspace, Env::Test, &["*"]).await;
    let server = OpenAiServer::start().await;
    server.then(200, None, json!({ "id": 1 }));
    let read =
        Flow::publish(&app, &key, vec![node("act", "http_request", request(&server, "GET", json!({})))])
            .await;
    let run = read.run_by(&test, json!({})).await;
    assert_eq!(output(&read.step(&run, "act").await)["body"], json!({ "id": 1 }));
    let write =
        Flow::publish(&app, &key, vec![node("act", "http_request", request(&server, "POST", json!({})))])
            .await;
    let run = write.run_by(&test, json!({})).await;
    assert_eq!(output(&write.step(&run, "act").await)["simulated"], true);
    assert_eq!(server.requests(), 1);
}

#[testkit::both]
async fn a_request_to_the_service_itself_goes_on_with_the_chain(kind: Kind) {
    let app = TestApp::at_own_address(kind).await;
    let key = app.full_key().await;
    let token = json!({ "key": "token", "type": "secret", "value": key.secret });
    app.post("/variables", &key, token).await.expect(201);
    let nodes = vec![node(
        "act",
        "http_request",
        json!({
            "method": "POST", "url": format!("{}/api/v1/contacts", app.origin), "headers": { "Authorization": "Bearer {{ $vars.token }}" },
            "body": { "data": { "$name": "Ana" } },
        }),
    )];
    let flow = Flow::publish(&app, &key, nodes).await;
    let run = flow.run(json!({})).await;
    assert_eq!(run["status"], "completed", "{run} {:?}", flow.steps(&run).await);
    app.deliver().await;
    let created = app.get("/events?type=contact.created", &key).await.expect(200);
    assert_eq!(created[0]["caused_by"]["depth"], 1, "{created}");
}
