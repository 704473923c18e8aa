//! Flows as tools of MCP clients.

use super::{Flows, node, start};
use model::Env;
use serde_json::json;
use testkit::Kind;

#[testkit::both]
async fn active_flows_are_tools(kind: Kind) {
    let flows = Flows::open(kind).await;
    let schema = json!({ "type": "object", "properties": { "order": { "type": "string" } } });
    let tool = json!({ "mcp_tool": true, "description": "Finds an order." });
    let nodes = json!([node("start", "trigger", json!({ "input_schema": schema }))]);
    let first = flows.create_with("Où est ma commande ?", nodes, &[], tool).await;
    let second =
        flows.create_with("ou est ma commande", json!([start()]), &[], json!({ "mcp_tool": true })).await;
    let third = flows.create("No tool", json!([start()]), &[]).await;
    let list = format!("{}/mcp-tools", flows.at);
    assert_eq!(flows.get(&list).await, json!([]));
    for path in [&first, &second, &third] {
        flows.publish(path).await;
    }
    // What is not published does not count.
    flows.patch(&third, json!({ "settings": { "mcp_tool": true } })).await.expect(200);
    flows.patch(&first, json!({ "settings": { "description": "Later." } })).await.expect(200);
    let (one, two) = (super::id(&first), super::id(&second));
    let expected = json!([
        { "object": "flow_tool", "name": "ou_est_ma_commande", "description": "Finds an order.",
          "input_schema": schema, "flow_id": one, "version": 1 },
        { "object": "flow_tool", "name": format!("ou_est_ma_commande_flow_{two}"), "description": null,
          "input_schema": { "type": "object" }, "flow_id": two, "version": 1 },
    ]);
    assert_eq!(flows.get(&list).await, expected);
    flows.post(&format!("{second}/unpublish"), json!({})).await.expect(200);
    let test = flows.key(Env::Test, &["*"]).await;
    flows.app.post(&format!("{third}/publish"), &test, json!({})).await.expect(200);
    assert_eq!(flows.get(&list).await, json!([expected[0]]));
    let of_test = flows.app.get(&list, &test).await.expect(200);
    assert_eq!(of_test.as_array().unwrap().len(), 2);
    let reader = flows.key(Env::Live, &["automations:read"]).await;
    flows.app.get(&list, &reader).await.expect_error(403, "missing_scope");
}
