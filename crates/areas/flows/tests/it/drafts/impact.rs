//! Runs that are under way when a flow is published or deleted.

use super::{Flows, draft, node, start};
use chrono::Duration;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

/// A flow with a delay, and another one behind it.
fn delayed(first: &str, second: &str) -> Value {
    let delay = |id: &str| node(id, "delay", json!({ "days": 1 }));
    draft(
        json!([start(), delay(first), delay(second)]),
        &[&format!("start>{first}"), &format!("{first}>{second}")],
    )
}

impl Flows {
    async fn start_run(&self, path: &str) -> String {
        let run = self.post(&format!("{path}/runs"), json!({})).await.expect(201);
        self.app.run_flows().await;
        run["id"].as_str().unwrap().to_owned()
    }

    async fn run(&self, run: &str) -> Value {
        self.get(&format!("{}/{run}", self.at.replace("/flows", "/flow-runs"))).await
    }

    async fn draw(&self, path: &str, draft: Value, on_publish: &str) {
        let body = json!({ "draft": draft, "settings": { "on_publish": on_publish } });
        self.patch(path, body).await.expect(200);
    }
}

#[testkit::both]
async fn runs_that_wait_stay_or_move(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Delayed", json!([start()]), &[]).await;
    flows.draw(&path, delayed("a", "b"), "pin").await;
    flows.publish(&path).await;
    let early = flows.start_run(&path).await;
    flows.app.data.clock.advance(Duration::seconds(86_401));
    flows.app.run_flows().await;
    let late = flows.start_run(&path).await;
    assert_eq!(flows.get(&path).await["stats"], json!({ "waiting": 2, "runs_24h": 1, "failed_24h": 0 }));
    let counts = |waiting: i64, orphaned: i64, migrated: i64| json!({ "waiting_runs": waiting, "orphaned_runs": orphaned, "migrated_runs": migrated });
    // `early` waits at b, `late` at a.
    flows.draw(&path, delayed("a", "c"), "pin").await;
    assert_eq!(flows.publish(&path).await["impact"], counts(2, 1, 0));
    assert_eq!(flows.run(&late).await["version"], json!(1));
    flows.draw(&path, delayed("a", "d"), "migrate").await;
    let dry = flows.post(&format!("{path}/publish"), json!({ "dry_run": true })).await.expect(200);
    assert_eq!(dry["impact"], counts(2, 1, 1));
    assert_eq!(flows.run(&late).await["version"], json!(1));
    assert_eq!(flows.publish(&path).await["impact"], counts(2, 1, 1));
    assert_eq!(flows.run(&late).await["version"], json!(3));
    assert_eq!(flows.run(&early).await["version"], json!(1));
    // The moved run continues with the node that only the new version has.
    flows.app.data.clock.advance(Duration::seconds(86_401));
    flows.app.run_flows().await;
    let steps = flows.get(&format!("{}/{late}/steps", flows.at.replace("/flows", "/flow-runs"))).await;
    let nodes: Vec<&str> =
        steps.as_array().unwrap().iter().filter_map(|step| step["node_id"].as_str()).collect();
    assert!(nodes.ends_with(&["d"]), "{nodes:?}");
    assert_eq!(flows.run(&early).await["status"], json!("completed"));
}

#[testkit::both]
async fn live_runs_do_not_move_to_a_version_for_tests(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Delayed", json!([start()]), &[]).await;
    flows.draw(&path, delayed("a", "b"), "migrate").await;
    flows.publish(&path).await;
    let run = flows.start_run(&path).await;
    flows.draw(&path, delayed("a", "c"), "migrate").await;
    let test = flows.key(Env::Test, &["*"]).await;
    let published = flows.app.post(&format!("{path}/publish"), &test, json!({})).await.expect(200);
    let expected = json!({ "waiting_runs": 1, "orphaned_runs": 0, "migrated_runs": 0 });
    assert_eq!(published["impact"], expected);
    assert_eq!(flows.run(&run).await["version"], json!(1));
}

#[testkit::both]
async fn a_run_within_a_loop_moves_only_with_the_loop(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Loop", json!([start()]), &[]).await;
    let looped = |loop_id: &str, list: Value| {
        let delay = node("a", "delay", json!({ "days": 1 }));
        let each = node(loop_id, "for_each", json!({ "list": list }));
        draft(json!([start(), each, delay]), &[&format!("start>{loop_id}"), &format!("{loop_id}.each>a")])
    };
    flows.draw(&path, looped("l", json!([1, 2])), "migrate").await;
    flows.publish(&path).await;
    let run = flows.start_run(&path).await;
    flows.draw(&path, looped("other", json!([1, 2])), "migrate").await;
    let expected = json!({ "waiting_runs": 1, "orphaned_runs": 1, "migrated_runs": 0 });
    assert_eq!(flows.publish(&path).await["impact"], expected);
    assert_eq!(flows.run(&run).await["version"], json!(1));
    flows.draw(&path, looped("l", json!([1, 2, 3])), "migrate").await;
    let expected = json!({ "waiting_runs": 1, "orphaned_runs": 0, "migrated_runs": 1 });
    assert_eq!(flows.publish(&path).await["impact"], expected);
    assert_eq!(flows.run(&run).await["version"], json!(3));
}

#[testkit::both]
async fn a_flow_with_open_runs_is_deleted_by_force_only(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Delayed", json!([start()]), &[]).await;
    flows.draw(&path, delayed("a", "b"), "pin").await;
    flows.publish(&path).await;
    let run = flows.start_run(&path).await;
    flows.post(&format!("{path}/unpublish"), json!({})).await.expect(200);
    assert_eq!(flows.run(&run).await["status"], json!("waiting"));
    let refused = flows.app.delete(&path, &flows.key).await;
    assert_eq!(refused.body["error"]["details"], json!({ "open_runs": 1 }));
    refused.expect_error(409, "invalid_state");
    flows.app.delete(&format!("{path}?force=true"), &flows.key).await.expect(200);
    let ended = flows.run(&run).await;
    assert_eq!((&ended["status"], &ended["waiting_for"]), (&json!("cancelled"), &json!([])));
    flows.app.data.clock.advance(Duration::seconds(86_401));
    assert_eq!(flows.app.run_flows().await, 0);
    assert_eq!(flows.run(&run).await["status"], json!("cancelled"));
}

#[testkit::both]
async fn the_impact_is_counted_up_to_a_bound(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Delayed", json!([start()]), &[]).await;
    flows.draw(&path, delayed("a", "b"), "migrate").await;
    flows.publish(&path).await;
    let run = flows.start_run(&path).await;
    let columns = "workspace_id, flow_id, version, livemode, mode, status, key_id, lineage_id, content, state, nesting, \
                   attempt, step_count, energy, epoch, wake_at, expires_at, created_at";
    let id = "'frun_01m7w4n5e0k3p8r2v6x9b' || (1000 + n)";
    let numbers =
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1100)";
    flows
        .app
        .sql(format!(
            "INSERT INTO flow_runs (id, root_run_id, {columns}) {numbers} SELECT {id}, {id}, {columns} FROM flow_runs, numbers"
        ))
        .await;
    flows.draw(&path, delayed("a", "c"), "migrate").await;
    let published = flows.publish(&path).await;
    let expected = json!({ "waiting_runs": 1000, "orphaned_runs": 0, "migrated_runs": 1000 });
    assert_eq!(published["impact"], expected);
    // All of them have moved, whatever was counted.
    assert_eq!(flows.run(&run).await["version"], json!(2));
    let rest = format!("{}?status=waiting", flows.at.replace("/flows", "/flow-runs"));
    let waiting = flows.get(&rest).await;
    assert!(waiting.as_array().unwrap().iter().all(|run| run["version"] == 2), "{waiting}");
}
