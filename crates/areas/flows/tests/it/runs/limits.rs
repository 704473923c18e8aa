//! What keeps a run from starting, and what ends it.

use crate::support::Bed;
use serde_json::json;
use testkit::Kind;

#[testkit::both]
async fn an_input_must_fit_the_schema_of_the_trigger(kind: Kind) {
    let bed = Bed::new(kind).await;
    let schema =
        json!({ "type": "object", "required": ["order"], "properties": { "order": { "type": "string" } } });
    let start = json!({ "type": "trigger", "config": { "input_schema": schema } });
    let flow = bed.flow(json!({ "start": start, "end": "end" }), &["start>end"]).await;
    bed.start(&flow, json!({ "input": { "order": 7 } })).await.expect_error(400, "validation_error");
    bed.start(&flow, json!({ "contact_id": 987 })).await.expect_error(404, "not_found");
    assert_eq!(bed.run(&flow, json!({ "input": { "order": "7" } })).await["status"], "completed");
}

#[testkit::both]
async fn a_contact_has_one_run_of_a_flow_unless_it_allows_more(kind: Kind) {
    let bed = Bed::new(kind).await;
    let contact =
        bed.app.post("/contacts", &bed.key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let nodes = || json!({ "later": ["delay", { "days": 1 }] });
    let one = bed.flow(nodes(), &["start>later"]).await;
    let body = json!({ "contact_id": contact["id"] });
    let run = bed.run(&one, body.clone()).await;
    let refused = bed.start(&one, body.clone()).await;
    refused.expect_error(409, "invalid_state");
    assert_eq!(refused.body["error"]["details"]["run_id"], run["id"]);
    let restart =
        bed.flow_with(nodes(), &["start>later"], json!({ "settings": { "per_contact": "restart" } })).await;
    let first = bed.run(&restart, body.clone()).await;
    let second = bed.run(&restart, body.clone()).await;
    assert_eq!(second["status"], "waiting");
    assert_eq!(bed.go(first["id"].as_str().unwrap()).await["status"], "cancelled");
    let many =
        bed.flow_with(nodes(), &["start>later"], json!({ "settings": { "per_contact": "many" } })).await;
    bed.run(&many, body.clone()).await;
    assert_eq!(bed.run(&many, body).await["status"], "waiting");
}

#[testkit::both]
async fn a_run_expires_and_its_waits_end(kind: Kind) {
    let bed = Bed::new(kind).await;
    let settings = json!({ "settings": { "run_timeout_days": 2 } });
    let flow = bed.flow_with(json!({ "later": ["delay", { "days": 3 }] }), &["start>later"], settings).await;
    let run = bed.run(&flow, json!({})).await;
    let run = bed.after(2 * 86_400, &run).await;
    assert_eq!((&run["status"], &run["waiting_for"]), (&json!("expired"), &json!([])), "{run}");
    assert_eq!(bed.steps(&run).await, ["start completed next", "later cancelled -"]);
    // Its timer is gone with it.
    assert_eq!(bed.after(5 * 86_400, &run).await["status"], "expired");
}

#[testkit::both]
async fn a_cancelled_run_stays_cancelled(kind: Kind) {
    let bed = Bed::new(kind).await;
    let flow = bed
        .flow(json!({ "later": ["delay", { "days": 3 }], "end": "end" }), &["start>later", "later>end"])
        .await;
    let run = bed.run(&flow, json!({})).await;
    let cancel = bed.at(&format!("/flow-runs/{}/cancel", run["id"].as_str().unwrap()));
    let cancelled = bed.app.post(&cancel, &bed.key, json!({})).await.expect(200);
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(
        bed.app.post(&cancel, &bed.key, json!({})).await.expect(200)["ended_at"],
        cancelled["ended_at"]
    );
    assert_eq!(bed.after(4 * 86_400, &run).await["status"], "cancelled");
    let done = bed.flow(json!({ "end": "end" }), &["start>end"]).await;
    let run = bed.run(&done, json!({})).await;
    let cancel = bed.at(&format!("/flow-runs/{}/cancel", run["id"].as_str().unwrap()));
    bed.app.post(&cancel, &bed.key, json!({})).await.expect_error(409, "invalid_state");
}

#[testkit::both]
async fn a_run_of_a_revoked_key_pauses(kind: Kind) {
    let bed = Bed::new(kind).await;
    let flow = bed
        .flow(json!({ "later": ["delay", { "days": 1 }], "end": "end" }), &["start>later", "later>end"])
        .await;
    let run = bed.run(&flow, json!({})).await;
    let other = bed.app.full_key().await;
    assert_ne!(other.workspace, bed.key.workspace);
    bed.app
        .sql(format!(
            "UPDATE api_keys SET revoked_at = created_at WHERE workspace_id = {}",
            bed.key.workspace
        ))
        .await;
    bed.app.data.clock.advance(chrono::Duration::days(1));
    bed.app.run_flows().await;
    let reader = bed.app.key(bed.key.workspace, model::Env::Live, &["automations:read"]).await;
    let path = bed.at(&format!("/flow-runs/{}", run["id"].as_str().unwrap()));
    let run = bed.app.get(&path, &reader).await.expect(200);
    assert_eq!((&run["status"], &run["pause_reason"]), (&json!("paused"), &json!("key_lost")), "{run}");
}

#[testkit::both]
async fn a_flow_has_no_more_runs_under_way_than_it_allows(kind: Kind) {
    let bed = Bed::new(kind).await;
    let limited =
        |on_limit: &str| json!({ "settings": { "concurrency": { "limit": 1, "on_limit": on_limit } } });
    let nodes = || json!({ "later": ["delay", { "seconds": 9 }] });
    let queue = bed.flow_with(nodes(), &["start>later"], limited("queue")).await;
    let first = bed.run(&queue, json!({})).await;
    // As if another process executed it.
    let id = first["id"].as_str().unwrap();
    bed.app.sql(format!("UPDATE flow_runs SET lease_until = '2099-01-01 00:00:00' WHERE id = '{id}'")).await;
    let second = bed.run(&queue, json!({})).await;
    assert_eq!(second["status"], "queued");
    assert_eq!(bed.after(2, &second).await["status"], "queued");
    bed.app.sql(format!("UPDATE flow_runs SET lease_until = NULL WHERE id = '{id}'")).await;
    assert_eq!(bed.after(2, &second).await["status"], "waiting");

    let skip = bed.flow_with(nodes(), &["start>later"], limited("skip")).await;
    bed.run(&skip, json!({})).await;
    let refused = bed.start(&skip, json!({})).await;
    refused.expect_error(409, "invalid_state");
    assert_eq!(refused.body["error"]["details"]["reason"], "concurrency_limit");
    let oldest = bed.flow_with(nodes(), &["start>later"], limited("cancel_oldest")).await;
    let first = bed.run(&oldest, json!({})).await;
    assert_eq!(bed.run(&oldest, json!({})).await["status"], "waiting");
    assert_eq!(bed.go(first["id"].as_str().unwrap()).await["status"], "cancelled");
}
