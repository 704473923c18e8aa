//! The issues of drafts.

use super::{Flows, draft, id, node, short, start};
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn all_issues_are_listed_at_once(kind: Kind) {
    let flows = Flows::open(kind).await;
    let nodes = json!([
        start(),
        { "id": "again", "type": "trigger" },
        node("a", "note", json!({ "text": "x" })),
        node("a", "note", json!({ "text": "{{ $nodes.b.output }} {{ $flow.nope }}" })),
        node("b", "end", json!({})),
        node("meet", "join", json!({})),
        node("act", "delay", json!({ "days": 366 })),
        node("event", "wait_for_event", json!({ "type": "item.updated", "match": {} })),
        node("later", "image", json!({ "prompt": "x" })),
        node("call", "http_request", json!({ "url": format!("https://a.example/{{{{ {} }}}}", "1+".repeat(1001)) })),
        node("deep", "condition", json!({ "if": format!("{}1{} == 1", "(".repeat(500), ")".repeat(500)) })),
    ]);
    let edges = [
        "start>a",
        "a.wrong>b",
        "a>missing",
        "b>a",
        "a>act",
        "act>event",
        "event>later",
        "later>call",
        "call>deep",
    ];
    let path = flows.create("Wrong", nodes, &edges).await;
    let issues = flows.issues(&path).await;
    for expected in [
        "error duplicate_id draft.nodes[3].id",
        "error unknown_port draft.edges[1].port",
        "error unknown_node draft.edges[2].to",
        "error unknown_port draft.edges[3].port",
        "error several_triggers draft.nodes[1]",
        "error unreachable draft.nodes[5]",
        "error invalid_config draft.nodes[6].config.days",
        "error unindexed_wait draft.nodes[7].config.match",
        "error not_available draft.nodes[8].type",
        "error unknown_reference draft.nodes[3].config.text",
        "error invalid_expression draft.nodes[9].config.url",
        "error invalid_expression draft.nodes[10].config.if",
    ] {
        assert!(issues.iter().any(|issue| issue == expected), "{expected}: {issues:#?}");
    }
    let validation = flows.get(&format!("{path}/validation")).await;
    assert_eq!(
        (&validation["object"], &validation["publishable"]),
        (&json!("flow_validation"), &json!(false))
    );
    assert_eq!(validation["version"], json!(1));
    let counts = flows.get(&path).await["issue_counts"].clone();
    let errors = issues.iter().filter(|issue| issue.starts_with("error")).count();
    assert_eq!(counts, json!({ "errors": errors, "warnings": issues.len() - errors }));
}

#[testkit::both]
async fn shapes_that_could_run_for_ever_are_errors(kind: Kind) {
    let flows = Flows::open(kind).await;
    let path = flows.create("Shape", json!([start()]), &[]).await;
    let note = |id: &str| node(id, "note", json!({ "text": "x" }));
    let each = |id: &str| node(id, "for_each", json!({ "list": [1] }));
    let mut nested = vec![start()];
    let mut nested_edges = vec!["start>l0".to_owned()];
    for depth in 0..40 {
        nested.push(each(&format!("l{depth}")));
        nested_edges.push(format!("l{depth}.each>l{}", depth + 1));
    }
    nested.push(note("l40"));
    let nested_edges: Vec<&str> = nested_edges.iter().map(String::as_str).collect();
    for (nodes, edges, expected) in [
        (
            json!([start(), note("a"), note("b")]),
            &["start>a", "a>b", "b>a"][..],
            "error unbounded_cycle draft.nodes[1]",
        ),
        (
            json!([start(), each("l"), note("a")]),
            &["start>l", "l.each>a", "l>l"],
            "error unbounded_cycle draft.nodes[1]",
        ),
        (
            json!([start(), node("j", "jump", json!({ "node_id": "a" })), note("a")]),
            &["start>a", "a>j"],
            "error unbounded_cycle draft.nodes[1]",
        ),
        (json!(nested), &nested_edges, "error too_deep draft.nodes[7]"),
    ] {
        flows.patch(&path, json!({ "draft": draft(nodes, edges) })).await.expect(200);
        let issues = flows.issues(&path).await;
        assert!(issues.iter().any(|issue| issue == expected), "{expected}: {issues:?}");
    }
    let waits = json!([start(), note("a"), node("d", "delay", json!({ "hours": 1 }))]);
    flows.patch(&path, json!({ "draft": draft(waits, &["start>a", "a>d", "d>a"]) })).await.expect(200);
    assert_eq!(flows.issues(&path).await, [""; 0]);
}

#[testkit::both]
async fn what_a_flow_names_is_looked_up(kind: Kind) {
    let flows = Flows::open(kind).await;
    let agent = flows.post("/agents", json!({ "name": "Sales" })).await.expect(201)["id"].clone();
    let function = json!({ "name": "f", "code": "export default () => 1", "effect": "read" });
    let function = flows.post("/functions", function).await.expect(201)["id"].clone();
    let collection = json!({ "name": "Things", "fields": [{ "label": "Name", "type": "text" }] });
    let collection = flows.post("/collections", collection).await.expect(201)["id"].clone();
    let variable = json!({ "key": "shop.phone", "type": "string", "value": "1" });
    flows.post("/variables", variable).await.expect(201);
    let never = flows.create("Never", json!([start()]), &[]).await;
    let nodes = |agent: &Value, function: &Value, collection: &Value, flow: i64, key: &str| {
        json!([
            start(),
            node("a", "agent", json!({ "agent_id": agent, "input": format!("{{{{ $vars.{key} }}}}") })),
            node("f", "function", json!({ "function_id": function })),
            node("c", "find_items", json!({ "collection_id": collection })),
            node("s", "sub_flow", json!({ "flow_id": flow })),
        ])
    };
    let edges = ["start>a", "a>f", "f>c", "c>s"];
    let there = nodes(&agent, &function, &collection, id(&never), "shop.phone");
    let path = flows.create("Names", there, &edges).await;
    let expected = [
        "warning unusable_object draft.nodes[2].config.function_id",
        "warning unusable_object draft.nodes[4].config.flow_id",
    ];
    assert_eq!(flows.issues(&path).await, expected);
    flows.publish(&never).await;
    flows.post(&format!("/functions/{function}/publish"), json!({})).await.expect(200);
    assert_eq!(flows.issues(&path).await, [""; 0]);
    let nothing = json!(999);
    let gone = nodes(&nothing, &nothing, &nothing, 999, "shop.fax");
    let members = node("m", "approval", json!({ "text": "?", "approver_ids": [999] }));
    let tasks = node("t", "task", json!({ "task_id": 999, "fields": {} }));
    let channel = node("w", "send_message", json!({ "text": "Hi", "channel_id": 999 }));
    let event = node("e", "wait_for_event", json!({ "type": "contact.update" }));
    let more = [members, tasks, channel, event];
    let gone: Vec<Value> = gone.as_array().unwrap().iter().cloned().chain(more).collect();
    let edges = ["start>a", "a>f", "f>c", "c>s", "s>m", "m.approved>t", "t>w", "w>e"];
    let body = json!({ "draft": draft(json!(gone), &edges),
        "settings": { "error_flow_id": 998, "cancel_on": [{ "type": "contact.deleted", "match": {} },
            { "type": "custom.done", "match": { "id": "{{ $custumer.id }}" } }, { "type": "contact.removed" }] } });
    flows.patch(&path, body).await.expect(200);
    let expected = [
        "error missing_object draft.nodes[1].config.agent_id",
        "error missing_object draft.nodes[2].config.function_id",
        "error missing_object draft.nodes[3].config.collection_id",
        "error missing_object draft.nodes[4].config.flow_id",
        "error missing_object draft.nodes[5].config.approver_ids[0]",
        "error missing_object draft.nodes[6].config.task_id",
        "error missing_object draft.nodes[7].config.channel_id",
        "warning unknown_reference draft.nodes[1].config.input",
        "error unknown_reference draft.nodes[8].config.type",
        "error missing_object settings.error_flow_id",
        "error unindexed_wait settings.cancel_on[0].match",
        "error invalid_expression settings.cancel_on[1].match.id",
        "error unknown_reference settings.cancel_on[2].type",
    ];
    assert_eq!(flows.issues(&path).await, expected);
}

#[testkit::both]
async fn a_flow_does_not_start_itself(kind: Kind) {
    let flows = Flows::open(kind).await;
    let sub = |flow: i64| json!([start(), node("s", "sub_flow", json!({ "flow_id": flow }))]);
    let first = flows.create("First", json!([start()]), &[]).await;
    let second = flows.create("Second", sub(id(&first)), &["start>s"]).await;
    let third = flows.create("Third", sub(id(&second)), &["start>s"]).await;
    flows.publish(&first).await;
    flows.publish(&second).await;
    // The draft of the third is not published, so it leads nowhere yet.
    let draw = |flow: &str| json!({ "draft": draft(sub(id(flow)), &["start>s"]) });
    flows.patch(&first, draw(&third)).await.expect(200);
    assert_eq!(flows.issues(&first).await, ["warning unusable_object draft.nodes[1].config.flow_id"]);
    flows.publish(&third).await;
    let recursion = ["error recursion draft.nodes[1].config.flow_id"];
    assert_eq!(flows.issues(&first).await, recursion);
    let refused = flows.post(&format!("{first}/publish"), json!({})).await;
    assert_eq!(short(&refused.body["error"]["details"]["issues"]), recursion);
    let param = refused.expect_error(400, "validation_error");
    assert_eq!(param.as_deref(), Some("draft.nodes[1].config.flow_id"));
    flows.patch(&first, draw(&first)).await.expect(200);
    assert_eq!(flows.issues(&first).await, recursion);
    let off = json!([start(), { "id": "s", "type": "sub_flow", "config": { "flow_id": id(&first) }, "disabled": true }]);
    let body = json!({ "draft": draft(off, &["start>s"]), "settings": { "error_flow_id": id(&first) } });
    flows.patch(&first, body).await.expect(200);
    assert_eq!(flows.issues(&first).await, ["error recursion settings.error_flow_id"]);
}

#[testkit::both]
async fn scopes_that_the_key_lacks_are_issues(kind: Kind) {
    let flows = Flows::open(kind).await;
    let nodes = json!([start(), node("n", "note", json!({ "text": "x" })), node("e", "end", json!({}))]);
    let path = flows.create("Scopes", nodes, &["start>n", "n>e"]).await;
    let reader = flows.key(Env::Live, &["automations:read", "automations:write"]).await;
    let validation = flows.app.get(&format!("{path}/validation"), &reader).await.expect(200);
    assert_eq!(short(&validation["issues"]), ["error missing_scope draft.nodes[1].type"]);
    assert_eq!(validation["scopes"], json!(["contacts:write"]));
    assert_eq!(validation["publishable"], json!(false));
    let refused = flows.app.post(&format!("{path}/publish"), &reader, json!({})).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("contacts:write"));
    let dry =
        flows.app.post(&format!("{path}/publish"), &reader, json!({ "dry_run": true })).await.expect(200);
    assert_eq!(short(&dry["issues"]), ["error missing_scope draft.nodes[1].type"]);
    assert_eq!(flows.get(&format!("{path}/validation")).await["publishable"], json!(true));
}
