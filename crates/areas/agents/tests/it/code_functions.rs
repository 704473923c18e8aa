//! Code functions as tools of agents.

use crate::with_agent;
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn what_a_function_tool_cannot_have_is_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let path = format!("/agents/{}/tools/price", agent["id"]);
    for (field, value) in [
        ("ref", Value::Null),
        ("ref", json!(999_999)),
        ("http", json!({ "url": "https://example.com" })),
        ("parameters", json!({ "type": "object" })),
        ("access", json!("read")),
        ("scope", json!("all")),
        ("contact_field", json!("c")),
        ("timeout_seconds", json!(61)),
    ] {
        let mut tool = json!({ "type": "function", "ref": 1 });
        tool[field] = value;
        let refused = app.put(&path, &key, tool).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(field), "{}", refused.text);
    }
    // A version is that of a code function.
    let refused = app.put(&path, &key, json!({ "type": "contacts", "version": 1 })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("version"));
    let weak = app.key(key.workspace, Env::Live, &["agents:write"]).await;
    app.put(&path, &weak, json!({ "type": "function", "ref": 1 })).await.expect_error(403, "missing_scope");
    for name in ["load_skill", "read_skill_file", "run_skill_script"] {
        let path = format!("/agents/{}/tools/{name}", agent["id"]);
        let refused = app.put(&path, &key, json!({ "type": "contacts" })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("toolId"));
    }
}
