//! Failures, attempts and retries.

use crate::support::Bed;
use serde_json::json;
use testkit::Kind;

/// A flow that fails as long as the workspace has no variable with a number.
fn failing() -> serde_json::Value {
    json!({
        "half": ["transform", { "fields": { "value": "{{ 10 / $input.by }}" } }],
        "end": ["end", { "output": "{{ $nodes.half.output.data.value }}" }],
    })
}

#[testkit::both]
async fn a_failed_run_goes_on_from_where_it_failed(kind: Kind) {
    let bed = Bed::new(kind).await;
    let flow = bed.flow(failing(), &["start>half", "half>end"]).await;
    let run = bed.run(&flow, json!({ "input": { "by": 0 } })).await;
    assert_eq!((&run["status"], &run["error"]["node_id"]), (&json!("failed"), &json!("half")), "{run}");
    let retry = bed.at(&format!("/flow-runs/{}/retry", run["id"].as_str().unwrap()));
    bed.app.post(&retry, &bed.key, json!({})).await.expect(200);
    let again = bed.go(run["id"].as_str().unwrap()).await;
    assert_eq!((&again["status"], &again["attempt"]), (&json!("failed"), &json!(2)));
    let edited = json!({ "input": { "fields": { "value": 5 } } });
    bed.app.post(&retry, &bed.key, edited).await.expect(200);
    let again = bed.go(run["id"].as_str().unwrap()).await;
    assert_eq!((&again["status"], &again["output"]), (&json!("completed"), &json!(5)), "{again}");
    bed.app.post(&retry, &bed.key, json!({})).await.expect_error(409, "invalid_state");
    let started = bed.app.post(&retry, &bed.key, json!({ "from": "start" })).await.expect(200);
    assert_eq!(started["retry_of"], run["id"]);
    bed.app.post(&retry, &bed.key, json!({ "from": "node" })).await.expect_error(400, "validation_error");
}

#[testkit::both]
async fn a_run_is_repeated_from_a_node_with_what_others_gave(kind: Kind) {
    let bed = Bed::new(kind).await;
    let nodes = json!({
        "one": ["transform", { "fields": { "value": "{{ $input.by }}" } }],
        "later": ["delay", { "seconds": 10 }],
        "end": ["end", { "status": "failed", "output": "{{ $nodes.one.output.data.value }}" }],
    });
    let flow = bed.flow(nodes, &["start>one", "one>later", "later>end"]).await;
    let run = bed.run(&flow, json!({ "input": { "by": 3 } })).await;
    let cancel = bed.at(&format!("/flow-runs/{}/cancel", run["id"].as_str().unwrap()));
    bed.app.post(&cancel, &bed.key, json!({})).await.expect(200);
    let retry = bed.at(&format!("/flow-runs/{}/retry", run["id"].as_str().unwrap()));
    let body = json!({ "from": "node", "node_id": "later" });
    assert_eq!(bed.app.post(&retry, &bed.key, body).await.expect(200)["status"], "queued");
    assert_eq!(bed.go(run["id"].as_str().unwrap()).await["status"], "waiting");
    let run = bed.after(10, &run).await;
    assert_eq!(
        (&run["status"], &run["error"]["code"]),
        (&json!("failed"), &json!("ended_as_failed")),
        "{run}"
    );
    bed.app
        .post(&retry, &bed.key, json!({ "from": "node", "node_id": "nope" }))
        .await
        .expect_error(400, "validation_error");
}

#[testkit::both]
async fn a_failure_starts_the_flow_for_errors_once(kind: Kind) {
    let bed = Bed::new(kind).await;
    let alarm =
        bed.flow(json!({ "end": ["end", { "output": "{{ $input.error.code }}" }] }), &["start>end"]).await;
    let id: i64 = alarm.rsplit('/').next().unwrap().parse().unwrap();
    let settings = json!({ "settings": { "error_flow_id": id } });
    let flow = bed.flow_with(failing(), &["start>half", "half>end"], settings).await;
    let run = bed.run(&flow, json!({ "input": { "by": 0 } })).await;
    let alarms = bed.app.get(&bed.at(&format!("/flow-runs?flow_id={id}")), &bed.key).await.expect(200);
    assert_eq!(alarms.as_array().unwrap().len(), 1);
    assert_eq!(alarms[0]["trigger"]["type"], "error");
    assert_eq!(alarms[0]["trigger"]["id"], run["id"]);
    assert_eq!(alarms[0]["output"], run["error"]["code"]);
}

#[testkit::both]
async fn a_flow_for_errors_that_cannot_start_does_not_keep_a_run_from_failing(kind: Kind) {
    let bed = Bed::new(kind).await;
    let alarm = bed.flow(json!({ "later": ["delay", { "days": 1 }] }), &["start>later"]).await;
    let id: i64 = alarm.rsplit('/').next().unwrap().parse().unwrap();
    bed.run(&alarm, json!({})).await;
    // The statement that starts a second run of it fails, after which PostgreSQL refuses the rest of a transaction.
    bed.app.sql(format!("CREATE UNIQUE INDEX one_alarm ON flow_runs (flow_id) WHERE flow_id = {id}")).await;
    let settings = json!({ "settings": { "error_flow_id": id } });
    let flow = bed.flow_with(failing(), &["start>half", "half>end"], settings).await;
    let run = bed.run(&flow, json!({ "input": { "by": 0 } })).await;
    assert_eq!((&run["status"], &run["error"]["node_id"]), (&json!("failed"), &json!("half")), "{run}");
    let alarms = bed.app.get(&bed.at(&format!("/flow-runs?flow_id={id}")), &bed.key).await.expect(200);
    assert_eq!(alarms.as_array().unwrap().len(), 1, "{alarms}");
}
