//! Published versions.

use super::{Flows, draft, id, node, start};
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

fn note(text: &str) -> Value {
    draft(json!([start(), node("n", "note", json!({ "text": text }))]), &["start>n"])
}

#[testkit::both]
async fn versions_are_frozen_and_restored(kind: Kind) {
    let flows = Flows::open(kind).await;
    let made = flows.post(&flows.at, json!({ "name": "Number", "draft": note("1") })).await.expect(201);
    let path = format!("{}/{}", flows.at, made["id"]);
    let publish = format!("{path}/publish");
    let dry = flows.post(&publish, json!({ "dry_run": true })).await.expect(200);
    assert_eq!((&dry["published"], &dry["published_version"]), (&json!(false), &Value::Null));
    assert_eq!((&dry["status"], &dry["version"]), (&json!("inactive"), &json!(1)));
    let first = flows.publish(&path).await;
    assert_eq!((&first["published"], &first["published_version"]), (&json!(true), &json!(1)));
    assert_eq!((&first["status"], &first["object"]), (&json!("active"), &json!("flow")));
    let nothing = json!({ "waiting_runs": 0, "orphaned_runs": 0, "migrated_runs": 0 });
    assert_eq!((&first["impact"], &first["issues"]), (&nothing, &json!([])));
    // Nothing is published twice.
    let same = flows.publish(&path).await;
    assert_eq!((&same["published_version"], &same["version"]), (&json!(1), &first["version"]));
    let patch = json!({ "draft": note("2"), "settings": { "retention_days": 5 } });
    let changed = flows.patch(&path, patch).await.expect(200);
    assert_eq!((&changed["published_version"], &changed["status"]), (&json!(1), &json!("active")));
    flows.post(&publish, json!({ "version": 1 })).await.expect_error(409, "version_conflict");
    let second = flows.post(&publish, json!({ "version": changed["version"] })).await.expect(200);
    assert_eq!(second["published_version"], json!(2));
    let versions = flows.get(&format!("{path}/versions")).await;
    let versions = versions.as_array().unwrap();
    assert_eq!((versions.len(), &versions[0]["version"]), (2, &json!(2)));
    assert_eq!((&versions[0]["graph"], &versions[0]["object"]), (&Value::Null, &json!("flow_version")));
    assert_eq!((&versions[0]["env"], &versions[0]["scopes"]), (&json!("live"), &json!(["contacts:write"])));
    assert_eq!(versions[0]["published_by"], json!(flows.key.id.as_str()));
    assert_eq!(
        (&versions[0]["settings"]["retention_days"], &versions[0]["flow_id"]),
        (&json!(5), &json!(id(&path)))
    );
    let one = flows.get(&format!("{path}/versions/1")).await;
    assert_eq!(one["graph"]["nodes"][1]["config"]["text"], json!("1"));
    assert_eq!((&one["settings"]["retention_days"], &one["input_schema"]), (&json!(30), &json!({})));
    for version in ["0", "3", "x"] {
        let missing = flows.app.get(&format!("{path}/versions/{version}"), &flows.key).await;
        missing.expect_error(404, "not_found");
    }
    let restored = flows.post(&format!("{path}/versions/1/restore"), json!({})).await.expect(200);
    assert_eq!(restored["draft"]["nodes"][1]["config"]["text"], json!("1"));
    assert_eq!(
        (&restored["settings"]["retention_days"], &restored["published_version"]),
        (&json!(30), &json!(2))
    );
    flows.post(&format!("{path}/versions/9/restore"), json!({})).await.expect_error(404, "not_found");
    let off = flows.post(&format!("{path}/unpublish"), json!({})).await.expect(200);
    assert_eq!((&off["status"], &off["published_version"]), (&json!("inactive"), &json!(2)));
    let again = flows.post(&format!("{path}/unpublish"), json!({})).await.expect(200);
    assert_eq!(again["version"], off["version"]);
    let on = flows.publish(&path).await;
    assert_eq!((&on["published_version"], &on["status"]), (&json!(3), &json!("active")));
    flows.app.delete(&path, &flows.key).await.expect(200);
}

#[testkit::both]
async fn a_draft_with_errors_is_not_published(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Fine", json!([start()]), &[]).await;
    flows.publish(&path).await;
    let nodes = json!([start(), node("a", "delay", json!({})), node("b", "join", json!({}))]);
    flows.patch(&path, json!({ "draft": draft(nodes, &["start>a", "a.later>b"]) })).await.expect(200);
    let refused = flows.post(&format!("{path}/publish"), json!({})).await;
    let issues = refused.body["error"]["details"]["issues"].as_array().unwrap().clone();
    assert!(issues.len() >= 2, "{issues:?}");
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("draft.edges[1].port"));
    let dry = flows.post(&format!("{path}/publish"), json!({ "dry_run": true })).await.expect(200);
    assert_eq!(dry["issues"], json!(issues));
    let flow = flows.get(&path).await;
    assert_eq!((&flow["published_version"], &flow["status"]), (&json!(1), &json!("active")));
}

#[testkit::both]
async fn publishes_at_once_make_one_version_each(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Busy", json!([start()]), &[]).await;
    let publish = format!("{path}/publish");
    let all = join_all((0..6).map(|_| flows.post(&publish, json!({})))).await;
    for answer in all {
        assert_eq!(answer.expect(200)["published_version"], json!(1));
    }
    flows.patch(&path, json!({ "draft": note("x") })).await.expect(200);
    let version = flows.get(&path).await["version"].clone();
    let all = join_all((0..6).map(|_| flows.post(&publish, json!({ "version": version })))).await;
    let (done, stale): (Vec<_>, Vec<_>) = all.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((done.len(), stale.len()), (1, 5));
    stale.iter().for_each(|answer| drop(answer.expect_error(409, "version_conflict")));
    let versions = flows.get(&format!("{path}/versions")).await;
    assert_eq!(versions.as_array().unwrap().len(), 2);
}

#[testkit::both]
async fn a_test_key_publishes_for_test_mode(kind: Kind) {
    let flows = Flows::open(kind).await;
    let made = flows.post(&flows.at, json!({ "name": "Tried", "draft": note("1") })).await.expect(201);
    let path = format!("{}/{}", flows.at, made["id"]);
    let test = flows.key(Env::Test, &["*"]).await;
    let published = flows.app.post(&format!("{path}/publish"), &test, json!({})).await.expect(200);
    assert_eq!(published["published_version"], json!(1));
    assert_eq!(flows.get(&format!("{path}/versions/1")).await["env"], json!("test"));
    let run = flows.post(&format!("{path}/runs"), json!({})).await.expect(201);
    assert_eq!(run["livemode"], json!(false));
    // The same draft under a live key is another version.
    assert_eq!(flows.publish(&path).await["published_version"], json!(2));
    assert_eq!(flows.get(&format!("{path}/versions/2")).await["env"], json!("live"));
}
