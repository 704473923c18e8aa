//! Flows as users of other objects.

use super::{Flows, draft, id, node, start};
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn what_a_flow_uses_is_not_deleted(kind: Kind) {
    let flows = Flows::open(kind).await;
    flows.post("/agents", json!({ "name": "Default" })).await.expect(201);
    let agent = flows.post("/agents", json!({ "name": "Sales" })).await.expect(201)["id"].clone();
    let function =
        json!({ "name": "f", "code": "export default () => 1", "effect": "read", "publish": true });
    let function = flows.post("/functions", function).await.expect(201)["id"].clone();
    let inner = flows.create("Inner", json!([start()]), &[]).await;
    let failed = flows.create("Failed", json!([start()]), &[]).await;
    flows.publish(&inner).await;
    flows.publish(&failed).await;
    let nodes = json!([
        start(),
        node("a", "agent", json!({ "agent_id": agent, "input": "x" })),
        node("f", "function", json!({ "function_id": function, "version": 1 })),
        node("s", "sub_flow", json!({ "flow_id": id(&inner) })),
    ]);
    let settings = json!({ "error_flow_id": id(&failed) });
    let path = flows.create_with("User", nodes, &["start>a", "a>f", "f>s"], settings).await;
    let used = |version: Value| json!([{ "type": "flow", "id": id(&path).to_string(), "name": "User", "version": version }]);
    let all = [
        (format!("/agents/{agent}"), used(Value::Null)),
        (format!("/functions/{function}"), used(json!(1))),
        (inner.clone(), used(Value::Null)),
        (failed.clone(), used(Value::Null)),
    ];
    for (object, used_by) in &all {
        let refused = flows.app.delete(object, &flows.key).await;
        assert_eq!(&refused.body["error"]["details"]["used_by"], used_by, "{object}");
        refused.expect_error(409, "resource_in_use");
    }
    // The published version uses them still, when the draft does not any more.
    flows.publish(&path).await;
    let body = json!({ "draft": draft(json!([start()]), &[]), "settings": { "error_flow_id": null } });
    flows.patch(&path, body).await.expect(200);
    for (object, _) in &all {
        flows.app.delete(object, &flows.key).await.expect_error(409, "resource_in_use");
    }
    flows.publish(&path).await;
    for (object, _) in &all {
        flows.app.delete(object, &flows.key).await.expect(200);
    }
}

#[testkit::both]
async fn variables_name_the_flows_that_read_them(kind: Kind) {
    let flows = Flows::open(kind).await;
    for key in ["shop.phone", "token", "limit"] {
        let variable = json!({ "key": key, "type": "string", "value": "1" });
        flows.post("/variables", variable).await.expect(201);
    }
    let nodes = json!([
        start(),
        node("greet", "note", json!({ "text": "{{ $vars.shop.phone }} {{vars.shop.phone}}" })),
        node(
            "call",
            "http_request",
            json!({ "url": "https://a.example", "headers": { "X": "{{ $vars.token }}" } })
        ),
        node("big", "condition", json!({ "if": "$vars.limit > 3" })),
    ]);
    let path = flows.create("Reader", nodes, &["start>greet", "greet>call", "call>big"]).await;
    flows.publish(&path).await;
    flows.patch(&path, json!({ "draft": draft(json!([start()]), &[]) })).await.expect(200);
    let variables = flows.get("/variables").await;
    let mut found = Vec::new();
    for variable in variables.as_array().unwrap() {
        assert_eq!(variable["used_by_count"], json!(1), "{variable}");
        let usages = flows.get(&format!("/variables/{}/usages", variable["id"])).await;
        assert_eq!((&usages[0]["type"], &usages[0]["id"]), (&json!("flow"), &json!(id(&path).to_string())));
        found.push(format!("{} {}", variable["key"].as_str().unwrap(), usages[0]["field"].as_str().unwrap()));
    }
    found.sort();
    assert_eq!(found, ["limit nodes.big.if", "shop.phone nodes.greet.text", "token nodes.call.headers.X"]);
}
