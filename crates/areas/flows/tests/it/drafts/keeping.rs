//! Drafts as they are stored and changed.

use super::{Flows, draft, id, node, start};
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_flow_is_stored_as_it_was_drawn(kind: Kind) {
    let flows = Flows::open(kind).await;
    let stranger = flows.app.bare_key().await;
    let schema = json!({ "type": "object", "required": ["product"] });
    let nodes = json!([
        node("start", "trigger", json!({ "input_schema": schema })),
        {
            "id": "greet", "type": "note", "label": "A note", "config": { "text": "{{ $input.product }}" },
            "on_error": "default", "default_output": { "a": 0.10 }, "timeout_seconds": 60, "effect_policy": "once",
            "retry": { "max_attempts": 2 }, "pinned_output": [1], "position": { "x": 1.5, "y": -2.5 },
        },
    ]);
    let mut drawn = draft(nodes, &["start>greet"]);
    drawn["variables"] = json!([{ "name": "budget", "type": "number", "default": 0 }]);
    let body = json!({
        "name": "Welcome", "draft": drawn, "metadata": { "a": "b" },
        "settings": { "description": "Greets.", "concurrency": { "limit": 3 }, "mcp_tool": true },
    });
    let made = flows.post(&flows.at, body.clone()).await.expect(201);
    let shown = json!({
        "id": made["id"], "object": "flow", "name": "Welcome", "status": "inactive", "published_version": null,
        "settings": {
            "description": "Greets.", "concurrency": { "limit": 3, "on_limit": "queue" }, "per_contact": "one",
            "run_timeout_days": 30, "on_publish": "pin", "cancel_on": [], "error_flow_id": null, "retention_days": 30,
            "when_human_active": "hold", "mcp_tool": true,
        },
        "draft": {
            "nodes": [
                { "id": "start", "type": "trigger", "config": { "input_schema": schema }, "on_error": "fail",
                  "disabled": false },
                { "id": "greet", "type": "note", "label": "A note", "config": { "text": "{{ $input.product }}" },
                  "on_error": "default", "default_output": { "a": 0.1 }, "timeout_seconds": 60, "effect_policy": "once",
                  "retry": { "max_attempts": 2, "backoff": "exponential", "delay_seconds": 5, "factor": 2,
                             "max_delay": 3600, "retry_on": [] },
                  "pinned_output": [1], "position": { "x": 1.5, "y": -2.5 }, "disabled": false },
            ],
            "edges": [{ "from": "start", "port": "next", "to": "greet" }],
            "variables": [{ "name": "budget", "type": "number", "default": 0 }],
        },
        "input_schema": schema, "issue_counts": { "errors": 0, "warnings": 0 },
        "stats": { "waiting": 0, "runs_24h": 0, "failed_24h": 0 },
        "metadata": { "a": "b" }, "version": 1, "created_at": made["created_at"], "updated_at": made["created_at"],
    });
    assert_eq!(made, shown);
    let path = format!("{}/{}", flows.at, made["id"]);
    let read = flows.app.get(&path, &flows.key).await;
    assert_eq!(read.headers["etag"], "\"1\"");
    assert_eq!(read.expect(200), shown);
    let mut head = shown.clone();
    for name in ["draft", "input_schema", "issue_counts", "stats"] {
        head.as_object_mut().unwrap().remove(name);
    }
    assert_eq!(flows.get(&flows.at).await, json!([head]));
    assert_eq!(flows.get(&format!("{}?status=active", flows.at)).await, json!([]));
    assert_eq!(flows.get(&format!("{}?limit=1", flows.at)).await, json!([head]));
    for answer in [
        flows.app.get(&path, &stranger).await,
        flows
            .app
            .get(&path.replace(&flows.at, &format!("/workspaces/{}/flows", stranger.workspace)), &stranger)
            .await,
    ] {
        assert!(matches!(answer.status, 403 | 404), "{}", answer.text);
    }
    let own = format!("/workspaces/{}/flows/{}", stranger.workspace, made["id"]);
    for answer in [
        flows.app.get(&own, &stranger).await,
        flows.app.patch(&own, &stranger, json!({ "name": "x" })).await,
        flows.app.post(&format!("{own}/publish"), &stranger, json!({})).await,
        flows.app.post(&format!("{own}/duplicate"), &stranger, json!({})).await,
        flows.app.get(&format!("{own}/validation"), &stranger).await,
        flows.app.get(&format!("{own}/versions"), &stranger).await,
        flows.app.delete(&own, &stranger).await,
    ] {
        answer.expect_error(404, "not_found");
    }
    let clash = flows.post(&flows.at, body).await;
    assert_eq!(clash.expect_error(409, "duplicate_value").as_deref(), Some("name"));
    flows.app.delete(&path, &flows.key).await.expect(200);
    flows.app.get(&path, &flows.key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn changes_keep_what_is_not_sent(kind: Kind) {
    let flows = Flows::open(kind).await;
    let made = flows.post(&flows.at, json!({ "name": "Empty" })).await.expect(201);
    assert_eq!(made["draft"]["nodes"][0]["type"], json!("trigger"));
    let path = format!("{}/{}", flows.at, made["id"]);
    let nodes = json!([start(), node("n", "note", json!({ "text": "x" }))]);
    let drawn = draft(nodes.clone(), &["start>n"]);
    let first = flows.patch(&path, json!({ "draft": drawn, "version": 1 })).await.expect(200);
    assert_eq!(first["version"], json!(2));
    let settings = json!({ "settings": { "concurrency": { "on_limit": "skip" }, "error_flow_id": 99 } });
    let second = flows.patch(&path, settings).await.expect(200);
    assert_eq!(second["settings"]["concurrency"], json!({ "limit": 50, "on_limit": "skip" }));
    assert_eq!((&second["settings"]["error_flow_id"], &second["draft"]), (&json!(99), &first["draft"]));
    assert_eq!(second["issue_counts"], json!({ "errors": 1, "warnings": 0 }));
    let third = json!({
        "settings": { "concurrency": { "limit": 5 }, "error_flow_id": null, "description": "D" },
        "draft": { "variables": [{ "name": "a", "type": "text" }] }, "name": "Full",
    });
    let third = flows.patch(&path, third).await.expect(200);
    assert_eq!(third["settings"]["concurrency"], json!({ "limit": 5, "on_limit": "skip" }));
    assert_eq!((&third["settings"]["error_flow_id"], &third["name"]), (&Value::Null, &json!("Full")));
    assert_eq!(third["draft"]["nodes"], first["draft"]["nodes"]);
    assert_eq!(third["draft"]["variables"], json!([{ "name": "a", "type": "text" }]));
    let none = flows.patch(&path, json!({ "settings": { "description": null } })).await.expect(200);
    assert_eq!((&none["settings"]["description"], &none["version"]), (&Value::Null, &json!(5)));
    // Nothing to change.
    assert_eq!(flows.patch(&path, json!({ "name": "Full" })).await.expect(200)["version"], json!(5));
    flows.patch(&path, json!({ "name": "Late", "version": 4 })).await.expect_error(409, "version_conflict");
    let stale = flows.app.ask("PATCH", &path).key(&flows.key).header("If-Match", "\"4\"");
    stale.json(&json!({ "name": "Late" })).send().await.expect_error(409, "version_conflict");
    let copy = flows.post(&format!("{path}/duplicate"), json!({})).await.expect(201);
    assert_eq!((&copy["name"], &copy["version"]), (&json!("Full (copy)"), &json!(1)));
    assert_eq!((&copy["draft"], &copy["settings"]), (&none["draft"], &none["settings"]));
    let named =
        flows.post(&format!("{path}/duplicate"), json!({ "name": "Other", "metadata": { "x": "y" } })).await;
    assert_eq!(named.expect(201)["metadata"], json!({ "x": "y" }));
    let again = flows.post(&format!("{path}/duplicate"), json!({})).await.expect(201);
    assert_eq!(again["name"], json!("Full (copy 2)"));
    let clash = flows.post(&format!("{path}/duplicate"), json!({ "name": "Other" })).await;
    clash.expect_error(409, "duplicate_value");
}

#[testkit::both]
async fn what_no_draft_can_be_is_rejected_when_it_is_saved(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Fine", json!([start()]), &[]).await;
    let many = |count: usize| -> Value {
        (0..count).map(|place| json!({ "id": format!("n{place}"), "type": "end" })).collect()
    };
    for (body, param) in [
        (json!({ "draft": { "nodes": [start(), { "id": "n", "type": "nope" }] } }), "draft.nodes[1].type"),
        (json!({ "draft": { "nodes": [{ "id": "N", "type": "end" }] } }), "draft.nodes[0].id"),
        (json!({ "draft": { "nodes": [{ "type": "end" }] } }), "draft.nodes[0].id"),
        (
            json!({ "draft": { "nodes": [{ "id": "n", "type": "end", "on_error": "no" }] } }),
            "draft.nodes[0].on_error",
        ),
        (json!({ "draft": { "nodes": [{ "id": "n", "type": "end", "more": 1 }] } }), "draft.nodes[0].more"),
        (
            json!({ "draft": { "nodes": [{ "id": "n", "type": "end", "config": [] }] } }),
            "draft.nodes[0].config",
        ),
        (json!({ "draft": { "nodes": many(501) } }), "draft.nodes"),
        (json!({ "draft": { "edges": [{ "from": "a" }] } }), "draft.edges[0].to"),
        (json!({ "draft": { "variables": [{ "name": "a", "type": "money" }] } }), "draft.variables[0].type"),
        (json!({ "draft": { "nodess": [] } }), "draft.nodess"),
        (json!({ "settings": { "run_timeout_days": 366 } }), "settings.run_timeout_days"),
        (json!({ "settings": { "concurrency": { "limit": 0 } } }), "settings.concurrency.limit"),
        (json!({ "settings": { "retention_days": 91 } }), "settings.retention_days"),
        (json!({ "settings": { "mode": "x" } }), "settings.mode"),
        (json!({ "name": " " }), "name"),
        (json!({ "name": "x".repeat(121) }), "name"),
    ] {
        let refused = flows.patch(&path, body.clone()).await;
        let shown: String = body.to_string().chars().take(80).collect();
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{shown}");
        let mut new = json!({ "name": "New" });
        new.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let refused = flows.post(&flows.at, new).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{shown}");
    }
    assert_eq!(flows.get(&path).await["version"], json!(1));
    let large = flows.patch(&path, json!({ "draft": { "nodes": many(500) } })).await.expect(200);
    assert_eq!(large["draft"]["nodes"].as_array().unwrap().len(), 500);
    assert_eq!(flows.get(&flows.at).await.as_array().unwrap().len(), 1);
    assert!(id(&path) > 0);
}
