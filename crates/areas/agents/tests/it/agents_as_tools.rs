//! Agents as tools of other agents, and what checks the calls of tools.

use model::Env;
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

async fn agent(app: &TestApp, key: &Key, name: &str) -> Value {
    app.post("/agents", key, json!({ "name": name })).await.expect(201)["id"].clone()
}

fn running(inner: &Value) -> Value {
    json!({ "type": "agent", "ref": inner, "description": "Knows more." })
}

async fn give(app: &TestApp, key: &Key, outer: &Value, inner: &Value) -> testkit::Answer {
    app.put(&format!("/agents/{outer}/tools/agent_{inner}"), key, running(inner)).await
}

fn refuses(answer: &testkit::Answer, param: &str) {
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{}", answer.text);
}

async fn set_up(kind: Kind) -> (TestApp, Key) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 1_000).await;
    let key = app.key(workspace, Env::Live, &["*"]).await;
    (app, key)
}

#[testkit::both]
async fn an_agent_is_a_tool_of_another(kind: Kind) {
    let (app, key) = set_up(kind).await;
    let (outer, inner) = (agent(&app, &key, "Outer").await, agent(&app, &key, "Inner").await);
    let tool = give(&app, &key, &outer, &inner).await.expect(200);
    assert_eq!(
        (&tool["type"], &tool["ref"], &tool["timeout_seconds"]),
        (&json!("agent"), &inner, &json!(120))
    );
    let listed = app.get(&format!("/agents/{outer}/tools"), &key).await.expect(200);
    let function = &listed[0]["functions"][0];
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!((&function["name"], &function["writes"]), (&json!(format!("agent_{inner}")), &json!(true)));
    assert_eq!(function["parameters"]["required"], json!(["input"]));
    assert_eq!(function["operation_id"], Value::Null);
    // Who uses it keeps it.
    let refused = app.delete(&format!("/agents/{inner}"), &key).await;
    refused.expect_error(409, "resource_in_use");
    let used_by = &refused.body["error"]["details"]["used_by"];
    assert_eq!(
        *used_by,
        json!([{ "type": "agent", "id": outer.to_string(), "name": "Outer", "version": null }])
    );
    app.delete(&format!("/agents/{outer}/tools/agent_{inner}"), &key).await.expect(200);
    app.delete(&format!("/agents/{inner}"), &key).await.expect(200);
    // The version with the tool cannot come back without the agent.
    let restored = app.post(&format!("/agents/{outer}/versions/2/restore"), &key, json!({})).await;
    refuses(&restored, "version");
}

#[testkit::both]
async fn what_an_agent_tool_cannot_have_is_refused(kind: Kind) {
    let (app, key) = set_up(kind).await;
    let (outer, inner) = (agent(&app, &key, "Outer").await, agent(&app, &key, "Inner").await);
    for (field, value) in [
        ("ref", Value::Null),
        ("ref", json!(999_999)),
        ("description", Value::Null),
        ("http", json!({ "url": "https://example.com" })),
        ("parameters", json!({ "type": "object" })),
        ("fixed_arguments", json!({ "a": 1 })),
        ("access", json!("read")),
        ("scope", json!("all")),
        ("contact_field", json!("c")),
        ("timeout_seconds", json!(601)),
        ("verify_with", json!("nothing")),
    ] {
        let mut tool = running(&inner);
        tool[field] = value;
        let refused = app.put(&format!("/agents/{outer}/tools/t"), &key, tool).await;
        refuses(&refused, field);
    }
    let mut lasting = running(&inner);
    lasting["timeout_seconds"] = 600.into();
    app.put(&format!("/agents/{outer}/tools/t"), &key, lasting.clone()).await.expect(200);
    let reserved = app.put(&format!("/agents/{outer}/tools/find_tools"), &key, lasting).await;
    refuses(&reserved, "toolId");
    let slow = json!({ "type": "contacts", "timeout_seconds": 61 });
    let refused = app.put(&format!("/agents/{outer}/tools/c"), &key, slow).await;
    refuses(&refused, "timeout_seconds");
    // Whoever lets an agent run others may run them.
    let weak = app.key(key.workspace, Env::Live, &["agents:write"]).await;
    give(&app, &weak, &outer, &inner).await.expect_error(403, "missing_scope");
    // The agents of others do not exist.
    let workspace = app.bare_workspace("scale", 1_000).await;
    let other = app.key(workspace, Env::Live, &["*"]).await;
    let elsewhere = agent(&app, &other, "Theirs").await;
    refuses(&give(&app, &key, &outer, &elsewhere).await, "ref");
}

#[testkit::both]
async fn agents_form_no_cycle_and_no_long_chain(kind: Kind) {
    let (app, key) = set_up(kind).await;
    let [a, b, c, d, e] = &[
        agent(&app, &key, "A").await,
        agent(&app, &key, "B").await,
        agent(&app, &key, "C").await,
        agent(&app, &key, "D").await,
        agent(&app, &key, "E").await,
    ];
    refuses(&give(&app, &key, a, a).await, "ref");
    give(&app, &key, a, b).await.expect(200);
    give(&app, &key, b, c).await.expect(200);
    // Also where an inner agent gets the tool later.
    let refused = give(&app, &key, c, a).await;
    refuses(&refused, "ref");
    let told = refused.body["error"]["message"].as_str().unwrap();
    assert!(told.contains("C → A → B → C"), "{told}");
    give(&app, &key, c, d).await.expect(200);
    for (outer, inner) in [(d, e), (e, a)] {
        refuses(&give(&app, &key, outer, inner).await, "ref");
    }
    // A way around is no cycle.
    give(&app, &key, a, d).await.expect(200);
    // Nor may an earlier version bring one back.
    app.delete(&format!("/agents/{b}/tools/agent_{c}"), &key).await.expect(200);
    give(&app, &key, c, b).await.expect(200);
    let restored = app.post(&format!("/agents/{b}/versions/2/restore"), &key, json!({})).await;
    refuses(&restored, "version");
    app.delete(&format!("/agents/{c}/tools/agent_{b}"), &key).await.expect(200);
    app.post(&format!("/agents/{b}/versions/2/restore"), &key, json!({})).await.expect(200);
}

#[testkit::both]
async fn what_verifies_must_be_there_and_read(kind: Kind) {
    let (app, key) = set_up(kind).await;
    let id = agent(&app, &key, "Agent").await;
    let http = |method: &str| json!({ "type": "http", "description": "Pays.", "http": { "method": method, "url": "https://example.com/pay" } });
    app.put(&format!("/agents/{id}/tools/paid"), &key, http("GET")).await.expect(200);
    app.put(
        &format!("/agents/{id}/tools/contacts"),
        &key,
        json!({ "type": "contacts", "access": "read_write" }),
    )
    .await
    .expect(200);
    let mut pay = http("POST");
    for wrong in ["nothing", "pay", "contacts", "contacts_update"] {
        pay["verify_with"] = wrong.into();
        let refused = app.put(&format!("/agents/{id}/tools/pay"), &key, pay.clone()).await;
        refuses(&refused, "verify_with");
    }
    for right in ["paid", "contacts_get"] {
        pay["verify_with"] = right.into();
        let tool = app.put(&format!("/agents/{id}/tools/pay"), &key, pay.clone()).await.expect(200);
        assert_eq!((&tool["verify_with"], &tool["deferred"]), (&json!(right), &json!(false)));
    }
    let own = json!({ "type": "contacts", "access": "read_write", "verify_with": "contacts_get", "deferred": true });
    let tool = app.put(&format!("/agents/{id}/tools/contacts"), &key, own).await.expect(200);
    assert_eq!((&tool["verify_with"], &tool["deferred"]), (&json!("contacts_get"), &json!(true)));
    let mut reading = http("GET");
    reading["verify_with"] = "contacts_get".into();
    let refused = app.put(&format!("/agents/{id}/tools/paid"), &key, reading).await;
    refuses(&refused, "verify_with");
}
