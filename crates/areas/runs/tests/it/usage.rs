//! Usage of an agent by day.

use crate::{awaited, begin, id, prompted, with_agent};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn usage_is_reported_by_day(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let path = format!("/agents/{}/usage", agent["id"]);
    app.model.usage(100, 50);
    app.post("/runs", &key, json!({ "input": "Hi" })).await.expect(200);
    // The second one takes 3,001 milliseconds, of which the mean is cut to whole ones.
    app.model.then(testkit::Script::Wait("late".into()));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    prompted(&app, 2).await;
    app.data.clock.advance(chrono::Duration::milliseconds(3001));
    app.model.release();
    awaited(&app, &key, &run, "completed").await;
    app.data.clock.advance(chrono::Duration::days(1));
    app.model.then(testkit::Script::Fail(providers::ProviderError::Refused("no".into())));
    app.post("/runs", &key, json!({ "input": "Hi" })).await.expect_error(502, "agent_failed");
    let usage = app.get(&path, &key).await.expect(200);
    let days = usage["days"].as_array().unwrap();
    assert_eq!((days.len(), &usage["from"], &usage["to"]), (30, &json!("2025-12-18"), &json!("2026-01-16")));
    let (yesterday, today) = (&days[28], &days[29]);
    assert_eq!(
        (&yesterday["runs"], &yesterday["completed"], &yesterday["energy"]),
        (&json!(2), &json!(2), &json!(4))
    );
    assert_eq!((&yesterday["input_tokens"], &yesterday["output_tokens"]), (&json!(200), &json!(100)));
    assert_eq!(yesterday["average_latency_ms"], 1500);
    assert_eq!((&today["runs"], &today["failed"], &today["energy"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(days[0]["average_latency_ms"], Value::Null);
    let short = app.get(&format!("{path}?from=2026-01-15&to=2026-01-15"), &key).await.expect(200);
    assert_eq!(short["days"].as_array().unwrap().len(), 1);
    for bad in ["from=2026-01-02&to=2026-01-01", "from=2025-01-01&to=2026-01-01", "from=yesterday"] {
        let param = app.get(&format!("{path}?{bad}"), &key).await.expect_error(400, "validation_error");
        assert_eq!(param.as_deref(), Some("from"));
    }
    assert_eq!(id(&agent), usage["agent_id"].to_string());
}
