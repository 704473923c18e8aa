//! Runs that cannot be executed now: what pauses them, and how they go on.

use crate::support::Bed;
use serde_json::{Value, json};
use testkit::Kind;

/// A flow that waits for a minute, and a run of it that waits.
async fn waiting(bed: &Bed) -> Value {
    let nodes = json!({ "later": ["delay", { "minutes": 1 }], "end": ["end", { "output": "done" }] });
    let flow = bed.flow(nodes, &["start>later", "later>end"]).await;
    bed.run(&flow, json!({})).await
}

#[testkit::both]
async fn a_read_that_fails_for_a_moment_damages_no_run(kind: Kind) {
    let bed = Bed::new(kind).await;
    let run = waiting(&bed).await;
    // Without the table of steps the database answers, and the run cannot be loaded.
    bed.app.sql("ALTER TABLE flow_steps RENAME TO flow_steps_away".to_owned()).await;
    let run = bed.after(61, &run).await;
    assert_eq!((&run["status"], &run["pause_reason"]), (&json!("waiting"), &json!(null)), "{run}");
    bed.app.sql("ALTER TABLE flow_steps_away RENAME TO flow_steps".to_owned()).await;
    // The lease of the attempt that failed ends after 30 seconds.
    let run = bed.after(31, &run).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("done")), "{run}");
}

#[testkit::both]
async fn one_bad_row_does_not_stop_the_other_waits(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (bad, good) = (waiting(&bed).await, waiting(&bed).await);
    let id = bad["id"].as_str().unwrap();
    bed.app.sql(format!("UPDATE flow_runs SET state = '{{\"tokens\": 7' WHERE id = '{id}'")).await;
    let good = bed.after(61, &good).await;
    assert_eq!(good["status"], "completed", "{good}");
    bed.app.sql(format!("UPDATE flow_runs SET state = NULL WHERE id = '{id}'")).await;
    let bad = bed.go(id).await;
    assert_eq!((&bad["status"], &bad["pause_reason"]), (&json!("paused"), &json!("damaged")), "{bad}");
}

#[testkit::both]
async fn a_run_that_paused_before_it_began_is_resumed(kind: Kind) {
    let bed = Bed::new(kind).await;
    let flow = bed.flow(json!({ "end": ["end", { "output": "done" }] }), &["start>end"]).await;
    let workspace = bed.key.workspace;
    bed.app
        .sql(format!("UPDATE api_keys SET revoked_at = created_at WHERE workspace_id = {workspace}"))
        .await;
    let scopes = ["automations:read", "automations:execute"];
    let key = bed.app.key(workspace, model::Env::Live, &scopes).await;
    let run = bed.app.post(&format!("{flow}/runs"), &key, json!({})).await.expect(201);
    bed.app.run_flows().await;
    let path = bed.at(&format!("/flow-runs/{}", run["id"].as_str().unwrap()));
    let paused = bed.app.get(&path, &key).await.expect(200);
    assert_eq!((&paused["status"], &paused["pause_reason"]), (&json!("paused"), &json!("key_lost")));
    let retry = format!("{path}/retry");
    let at_node = json!({ "from": "node", "node_id": "end" });
    bed.app.post(&retry, &key, at_node).await.expect_error(409, "invalid_state");
    // As long as the key is lost, the run pauses again.
    bed.app.post(&retry, &key, json!({})).await.expect(200);
    bed.app.run_flows().await;
    assert_eq!(bed.app.get(&path, &key).await.expect(200)["pause_reason"], "key_lost");
    bed.app.sql(format!("UPDATE api_keys SET revoked_at = NULL WHERE workspace_id = {workspace}")).await;
    assert_eq!(bed.app.post(&retry, &key, json!({})).await.expect(200)["status"], "queued");
    bed.app.run_flows().await;
    let done = bed.app.get(&path, &key).await.expect(200);
    assert_eq!(
        (&done["status"], &done["output"], &done["attempt"]),
        (&json!("completed"), &json!("done"), &json!(3)),
        "{done}"
    );
}
