//! Runs: what a caller sees of them.

use model::Env;
use serde_json::json;
use testkit::{Kind, Script, TestApp};

#[testkit::both]
async fn a_run_answers_and_costs_energy(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    app.model.then(Script::Say("Paris.".into())).usage(100, 50);
    let run = app.post("/runs", &key, json!({ "input": "The capital of France?" })).await.expect(200);
    assert_eq!(run["object"], "run");
    assert_eq!(run["status"], "completed");
    assert_eq!(run["output"], "Paris.");
    assert_eq!(run["livemode"], true);
    // 100 tokens at 5 and 50 at 20 Energy per 1,000, rounded up once.
    assert_eq!(run["energy"]["amount"], 2);
    let energy = app.get("/billing/energy", &key).await.expect(200);
    assert_eq!(energy["available"], 999_998);
    assert_eq!(energy["reserved"], 0);
    let stored =
        app.get(&format!("/runs/{}?include=steps", run["id"].as_str().unwrap()), &key).await.expect(200);
    assert_eq!(stored["steps"][0]["status"], "completed");
    assert_eq!(stored["steps"][0]["energy"], 2);
}

#[testkit::both]
async fn a_test_key_costs_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key(workspace, Env::Test, &["runs:execute", "billing:read"]).await;
    app.model.usage(100, 50);
    let run = app.post("/runs", &key, json!({ "input": "Hello" })).await.expect(200);
    assert_eq!((&run["livemode"], &run["energy"]), (&json!(false), &json!({ "amount": 0, "simulated": 2 })));
    let energy = app.get("/billing/energy", &key).await.expect(200);
    assert_eq!(energy["available"], 1_000_000);
}
