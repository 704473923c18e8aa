//! Agents: creating, changing, switching, deleting, listing.

use crate::with_agent;
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

async fn bare(app: &TestApp) -> Key {
    let workspace = app.bare_workspace("scale", 1_000).await;
    app.key(workspace, Env::Live, &["*"]).await
}

#[testkit::both]
async fn an_agent_is_created_with_defaults_and_with_everything(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let first = app.post("/agents", &key, json!({ "name": "  Ada " })).await.expect(201);
    assert_eq!(
        (&first["name"], &first["object"], &first["status"]),
        (&json!("Ada"), &json!("agent"), &json!("draft"))
    );
    assert_eq!((&first["is_default"], &first["version"]), (&json!(true), &json!(1)));
    assert_eq!((&first["model"], &first["max_output_tokens"]), (&json!("balanced"), &json!(2048)));
    assert_eq!(
        (&first["max_steps"], &first["max_tool_calls"], &first["timeout_seconds"]),
        (&json!(10), &json!(30), &json!(120))
    );
    assert_eq!(first["memory"], json!({ "mode": "summary", "max_messages": 40, "pinned": null }));
    assert_eq!(first["response_format"], json!({ "type": "text" }));
    assert_eq!(
        first["reply"],
        json!({ "debounce_seconds": 2, "max_wait_seconds": 15, "split_messages": false })
    );
    assert_eq!(first["handoff"], json!({ "enabled": false, "keywords": [], "resume_after_minutes": null }));
    assert_eq!(first["fallback_message"], Value::Null);
    let all = json!({
        "name": "Grace", "description": "d", "instructions": "i", "model": "advanced", "temperature": 0.5,
        "max_output_tokens": 16, "max_steps": 50, "max_tool_calls": 200, "timeout_seconds": 600,
        "energy_limit_per_run": 5, "energy_limit_monthly": 7, "memory": { "mode": "none", "max_messages": 2, "pinned": "We are Acme." },
        "response_format": { "type": "json_schema", "schema": { "type": "object" } },
        "reply": { "debounce_seconds": 0, "max_wait_seconds": 60, "split_messages": true },
        "handoff": { "enabled": true, "keywords": ["human", "help me"], "resume_after_minutes": 30 },
        "fallback_message": "One moment.",
        "status": "active", "metadata": { "a": "b" },
    });
    let mut body = all.clone();
    body["publish"] = true.into();
    let made = app.post("/agents", &key, body).await.expect(201);
    for (field, value) in all.as_object().unwrap() {
        assert_eq!(&made[field], value, "{field}");
    }
    assert_eq!(made["is_default"], false);
    let path = format!("/agents/{}", made["id"]);
    assert_eq!((&made["mcp_servers"], made.get("tools")), (&json!([]), None));
    let tool = json!({ "type": "http", "description": "d", "http": { "url": "http://127.9.9.9:40009/" } });
    let mut detail = app.get(&path, &key).await;
    assert_eq!((detail.headers["etag"].as_str(), &detail.body["data"]["tools"]), ("\"1\"", &json!([])));
    detail.body["data"].as_object_mut().unwrap().remove("tools");
    assert_eq!(detail.body["data"], made);
    app.put(&format!("{path}/tools/look"), &key, tool).await.expect(200);
    let detail = app.get(&path, &key).await;
    assert_eq!(
        (detail.headers["etag"].as_str(), &detail.body["data"]["tools"][0]["id"]),
        ("\"2\"", &json!("look"))
    );
    app.delete(&format!("{path}/tools/look"), &key).await.expect(200);
    let change = json!({ "fallback_message": null, "reply": {}, "mcp_servers": [] });
    let changed = app.patch(&path, &key, change).await.expect(200);
    assert_eq!(
        (&changed["version"], &changed["fallback_message"], &changed["reply"]),
        (&json!(4), &Value::Null, &first["reply"])
    );
    let first_version = app.get(&format!("{path}/versions/1"), &key).await.expect(200);
    for field in ["reply", "handoff", "fallback_message", "memory", "model"] {
        assert_eq!(first_version[field], made[field], "{field}");
    }
}

#[testkit::both]
async fn bad_fields_are_named(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = app.post("/agents", &key, json!({ "name": "A" })).await.expect(201);
    let deep = (0..12).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
    for (body, param) in [
        (json!({}), "name"),
        (json!({ "name": " " }), "name"),
        (json!({ "name": "x".repeat(101) }), "name"),
        (json!({ "name": "B", "description": "x".repeat(1001) }), "description"),
        (json!({ "name": "B", "instructions": "x".repeat(100_001) }), "instructions"),
        (json!({ "name": "B", "max_steps": 51 }), "max_steps"),
        (json!({ "name": "B", "max_tool_calls": 0 }), "max_tool_calls"),
        (json!({ "name": "B", "timeout_seconds": 4 }), "timeout_seconds"),
        (json!({ "name": "B", "max_output_tokens": 15 }), "max_output_tokens"),
        (json!({ "name": "B", "energy_limit_per_run": 0 }), "energy_limit_per_run"),
        (json!({ "name": "B", "memory": { "mode": "window", "max_messages": 1 } }), "memory.max_messages"),
        (json!({ "name": "B", "memory": { "pinned": "x".repeat(2049) } }), "memory.pinned"),
        (json!({ "name": "B", "memory": { "pinned": "é".repeat(1025) } }), "memory.pinned"),
        (json!({ "name": "B", "response_format": { "type": "json_schema" } }), "response_format.schema"),
        (
            json!({ "name": "B", "response_format": { "type": "text", "schema": {} } }),
            "response_format.schema",
        ),
        (
            json!({ "name": "B", "response_format": { "type": "json_schema", "schema": deep } }),
            "response_format.schema",
        ),
        (
            json!({ "name": "B", "response_format": { "type": "json_schema", "schema": { "$ref": "https://x.example" } } }),
            "response_format.schema",
        ),
        (json!({ "name": "B", "reply": { "debounce_seconds": 31 } }), "reply.debounce_seconds"),
        (
            json!({ "name": "B", "reply": { "debounce_seconds": 9, "max_wait_seconds": 8 } }),
            "reply.debounce_seconds",
        ),
        (json!({ "name": "B", "reply": { "max_wait_seconds": 4 } }), "reply.max_wait_seconds"),
        (json!({ "name": "B", "handoff": { "keywords": ["ok", " "] } }), "handoff.keywords[1]"),
        (json!({ "name": "B", "handoff": { "keywords": vec!["x"; 51] } }), "handoff.keywords"),
        (json!({ "name": "B", "handoff": { "resume_after_minutes": 0 } }), "handoff.resume_after_minutes"),
        (json!({ "name": "B", "fallback_message": "x".repeat(1001) }), "fallback_message"),
        (json!({ "name": "B", "mcp_servers": [{ "connection_id": 1 }] }), "mcp_servers"),
        (json!({ "name": "B", "nmae": "C" }), "nmae"),
    ] {
        let refused = app.post("/agents", &key, body.clone()).await;
        let found = refused.expect_error(400, "validation_error");
        assert!(found.as_deref().is_some_and(|found| found.starts_with(param)), "{body}: {found:?}");
        if param != "name" || !body["name"].is_null() {
            let mut patch = body;
            if param != "name" {
                patch.as_object_mut().unwrap().remove("name");
            }
            app.patch(&format!("/agents/{}", made["id"]), &key, patch)
                .await
                .expect_error(400, "validation_error");
        }
    }
    for (field, value) in
        [("temperature", json!(2.1)), ("temperature", json!(-0.1)), ("model", json!("huge"))]
    {
        app.post("/agents", &key, json!({ "name": "B", field: value }))
            .await
            .expect_error(400, "validation_error");
    }
    let unchanged = app.get(&format!("/agents/{}", made["id"]), &key).await.expect(200);
    assert_eq!(unchanged["version"], 1);
}

#[testkit::both]
async fn names_are_unique_whatever_the_case(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let first = app.post("/agents", &key, json!({ "name": "Übersetzer" })).await.expect(201);
    let other = app.post("/agents", &key, json!({ "name": "Other" })).await.expect(201);
    for taken in [
        app.post("/agents", &key, json!({ "name": "übersetzer " })).await,
        app.patch(&format!("/agents/{}", other["id"]), &key, json!({ "name": "ÜBERSETZER" })).await,
        app.post(&format!("/agents/{}/duplicate", other["id"]), &key, json!({ "name": "Übersetzer" })).await,
    ] {
        assert_eq!(taken.expect_error(409, "duplicate_value").as_deref(), Some("name"));
        assert_eq!(taken.body["error"]["details"]["existing_id"], first["id"]);
    }
    // An agent can change the case of its own name, and other workspaces are independent.
    app.patch(&format!("/agents/{}", first["id"]), &key, json!({ "name": "ÜBERSETZER" })).await.expect(200);
    let stranger = bare(&app).await;
    app.post("/agents", &stranger, json!({ "name": "Übersetzer" })).await.expect(201);
    app.get(&format!("/agents/{}", first["id"]), &stranger).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn agents_that_are_created_at_once_do_not_collide(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = join_all((0..8).map(|number| {
        let name = if number % 2 == 0 { "Same".to_owned() } else { format!("Agent {number}") };
        app.post("/agents", &key, json!({ "name": name }))
    }))
    .await;
    let of = |status: u16| made.iter().filter(|answer| answer.status == status).count();
    assert_eq!((of(201), of(409)), (5, 3));
    let all = app.get("/agents", &key).await.expect(200);
    let defaults = all.as_array().unwrap().iter().filter(|agent| agent["is_default"] == true).count();
    assert_eq!(defaults, 1);
}

#[testkit::both]
async fn agents_are_switched_and_deleted(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, first) = with_agent(&app, json!({ "name": "First" })).await;
    let second = app.post("/agents", &key, json!({ "name": "Second" })).await.expect(201);
    let (one, two) = (format!("/agents/{}", first["id"]), format!("/agents/{}", second["id"]));
    // A draft stays a draft until it is activated.
    let answer = app.post(&format!("{two}/deactivate"), &key, json!({})).await.expect(200);
    assert_eq!(answer["status"], "draft");
    for (verb, status) in [("activate", "active"), ("activate", "active"), ("deactivate", "inactive")] {
        let answer = app.post(&format!("{two}/{verb}"), &key, json!({})).await.expect(200);
        assert_eq!((&answer["status"], &answer["version"]), (&json!(status), &json!(1)));
    }
    let run = app.post("/runs", &key, json!({ "input": "Hi", "agent_id": first["id"] })).await.expect(200);
    let refused = app.delete(&one, &key).await;
    refused.expect_error(409, "resource_in_use");
    assert_eq!(refused.body["error"]["details"]["used_by"][0]["object"], "workspace");
    for _ in 0..2 {
        let answer = app.put(&format!("{two}/default"), &key, json!({})).await.expect(200);
        assert_eq!(answer["is_default"], true);
    }
    let gone = app.delete(&one, &key).await.expect(200);
    assert_eq!(gone, json!({ "id": first["id"], "object": "agent", "deleted": true }));
    for (method, path) in [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/versions"),
        ("GET", "/tools"),
        ("GET", "/usage"),
        ("POST", "/activate"),
    ] {
        let answer = app.ask(method, &format!("{one}{path}")).key(&key).json(&json!({})).send().await;
        answer.expect_error(404, "not_found");
    }
    let path = format!("/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(app.get(&path, &key).await.expect(200)["agent_id"], first["id"]);
    app.post("/agents", &key, json!({ "name": "first" })).await.expect(201);
    let names: Vec<Value> = app
        .get("/agents", &key)
        .await
        .expect(200)
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].clone())
        .collect();
    assert_eq!(names, ["first", "Second"]);
    let inactive = app.get("/agents?status=inactive", &key).await.expect(200);
    assert_eq!(inactive.as_array().unwrap().len(), 1);
    app.get("/agents?status=odd", &key).await.expect_error(400, "validation_error");
}

#[testkit::both]
async fn all_four_lists_come_in_pages(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({ "name": "A0" })).await;
    let path = format!("/agents/{}", agent["id"]);
    for number in 1..5 {
        app.post("/agents", &key, json!({ "name": format!("A{number}") })).await.expect(201);
        let tool =
            json!({ "type": "http", "description": "d", "http": { "url": "http://127.9.9.9:40009/" } });
        app.put(&format!("{path}/tools/t{number}"), &key, tool).await.expect(200);
    }
    for (list, field, rows) in [
        ("/agents".to_owned(), "name", 5),
        (format!("{path}/versions"), "version", 5),
        (format!("{path}/tools"), "id", 4),
    ] {
        let whole = app.get(&list, &key).await.expect(200);
        let whole: Vec<Value> = whole.as_array().unwrap().iter().map(|row| row[field].clone()).collect();
        assert_eq!(whole.len(), rows, "{list}");
        let (mut paged, mut after) = (Vec::new(), String::new());
        loop {
            let page = app.get(&format!("{list}?paginate=true&limit=2{after}"), &key).await;
            paged.extend(page.expect(200).as_array().unwrap().iter().map(|row| row[field].clone()));
            let Some(cursor) = page.body["next_cursor"].as_str() else { break };
            after = format!("&starting_after={cursor}");
        }
        assert_eq!(paged, whole, "{list}");
        app.get(&format!("{list}?paginate=true&starting_after=nonsense"), &key)
            .await
            .expect_error(400, "validation_error");
    }
}
