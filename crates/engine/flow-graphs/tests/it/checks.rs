//! Nodes, edges and settings.

use crate::{errors, graph, issues, node, start};
use flow_graphs::{Anything, Graph, Surroundings, check, missing_scopes, objects, scopes, variables};
use serde_json::json;

#[test]
fn a_flow_of_every_day_has_no_issue() {
    let nodes = json!([
        start(),
        node("greet", "send_message", json!({ "text": "Hello {{ $contact.$name | default: \"there\" }}!" })),
        node(
            "size",
            "ask",
            json!({ "text": "Which size?", "expects": "choice", "save_to": "size",
            "choices": [{ "id": "small", "title": "Small" }, { "id": "large", "title": "Large" }] })
        ),
        node(
            "save",
            "write_item",
            json!({ "collection_id": 7, "values": { "size": "{{ $nodes.size.output.value }}" } })
        ),
        node("later", "delay", json!({ "days": 3 })),
        node("done", "end", json!({})),
    ]);
    let edges = [
        "start>greet",
        "greet>size",
        "size.small>save",
        "size.large>save",
        "save>later",
        "later>done",
        "size.timeout>done",
    ];
    let graph = graph(nodes, &edges);
    assert_eq!(issues(&graph), Vec::<String>::new());
    let scopes: Vec<&str> = scopes(&graph).into_iter().map(model::Scope::as_str).collect();
    assert_eq!(scopes.len(), 2);
    assert!(scopes.contains(&"channels:send") && scopes.contains(&"items:write"));
}

#[test]
fn nodes_and_edges_are_checked_all_at_once() {
    let nodes = json!([
        start(),
        { "id": "again", "type": "trigger" },
        node("a", "note", json!({ "text": "x" })),
        node("a", "note", json!({ "text": "x" })),
        node("b", "end", json!({})),
        node("alone", "note", json!({ "text": "x" })),
        node("meet", "join", json!({})),
        node("hop", "jump", json!({ "node_id": "nowhere" })),
    ]);
    let edges = ["start>a", "a.wrong>b", "a>missing", "b>a", "a>start", "a>hop"];
    assert_eq!(
        issues(&graph(nodes, &edges)),
        [
            "error duplicate_id nodes[3].id",
            "error unknown_port edges[1].port",
            "error unknown_node edges[2].to",
            "error unknown_port edges[3].port",
            "error leads_to_trigger edges[4].to",
            "error several_triggers nodes[1]",
            "warning unreachable nodes[3]",
            "warning unreachable nodes[5]",
            "error unreachable nodes[6]",
            "error unknown_node nodes[7].config.node_id",
            "error unbounded_cycle nodes[0]",
        ]
    );
    assert_eq!(issues(&graph(json!([]), &[])), ["error no_trigger nodes"]);
}

#[test]
fn settings_follow_their_schema_and_their_rules() {
    for (kind, config, expected) in [
        ("delay", json!({ "days": 366 }), "error invalid_config nodes[1].config.days"),
        ("delay", json!({ "seconds": -1 }), "error invalid_config nodes[1].config.seconds"),
        ("delay", json!({ "days": 365, "seconds": 1 }), "error invalid_config nodes[1].config"),
        ("delay", json!({}), "error invalid_config nodes[1].config"),
        ("delay", json!({ "weeks": 1 }), "error invalid_config nodes[1].config.weeks"),
        ("delay", json!({ "days": "three" }), "error invalid_config nodes[1].config.days"),
        ("wait_until", json!({}), "error invalid_config nodes[1].config.time"),
        (
            "wait_for_event",
            json!({ "type": "item.updated", "match": {} }),
            "error unindexed_wait nodes[1].config.match",
        ),
        ("ask", json!({ "text": "?", "expects": "choice" }), "error invalid_config nodes[1].config.choices"),
        (
            "ask",
            json!({ "text": "?", "if_window_closed": "template" }),
            "error invalid_config nodes[1].config.template",
        ),
        (
            "ask",
            json!({ "text": "?", "expects": "choice", "choices": [{ "id": "next", "title": "N" }] }),
            "error invalid_config nodes[1].config.choices[0].id",
        ),
        ("wait_for_reply", json!({ "pattern": "(" }), "error invalid_config nodes[1].config.pattern"),
        ("wait_for_reply", json!({ "pattern": "(?=a)" }), "error invalid_config nodes[1].config.pattern"),
        ("switch", json!({ "cases": [{ "id": "a" }] }), "error invalid_config nodes[1].config.cases[0]"),
        ("transform", json!({}), "error invalid_config nodes[1].config"),
        ("join", json!({ "mode": "count" }), "error invalid_config nodes[1].config.count"),
        (
            "write_item",
            json!({ "collection_id": 1, "op": "update" }),
            "error invalid_config nodes[1].config.item_id",
        ),
        (
            "write_item",
            json!({ "collection_id": 1, "op": "upsert" }),
            "error invalid_config nodes[1].config.key",
        ),
        (
            "extract",
            json!({ "text": "x", "schema": { "$ref": "https://a.example/s" } }),
            "error invalid_config nodes[1].config.schema",
        ),
        ("emit_event", json!({ "name": "contact.created" }), "error invalid_config nodes[1].config.name"),
        (
            "while",
            json!({ "if": "$flow.n < 3", "max_iterations": 101 }),
            "error invalid_config nodes[1].config.max_iterations",
        ),
        ("image", json!({ "prompt": "x" }), "error not_available nodes[1].type"),
        ("mcp_tool", json!({ "connection_id": 1, "tool": "x" }), "error not_available nodes[1].type"),
    ] {
        let found = errors(&graph(json!([start(), node("n", kind, config.clone())]), &["start>n"]));
        assert!(
            found.iter().any(|issue| issue == expected || issue.starts_with(&format!("{expected}."))),
            "{kind} {config}: {found:?}"
        );
    }
    // A template stands for a value that is not known yet.
    let nodes = json!([start(), node("n", "delay", json!({ "days": "{{ $input.days }}" }))]);
    assert_eq!(errors(&graph(nodes, &["start>n"])), Vec::<String>::new());
}

#[test]
fn a_failed_node_with_a_default_needs_one() {
    let nodes =
        json!([start(), { "id": "n", "type": "note", "config": { "text": "x" }, "on_error": "default" }]);
    assert_eq!(errors(&graph(nodes, &["start>n"])), ["error invalid_config nodes[1].default_output"]);
}

#[test]
fn the_nodes_name_objects_that_exist() {
    struct Shop;
    impl Surroundings for Shop {
        fn missing(&self, object: &str, id: i64) -> Option<String> {
            (object != "agent" || id != 7).then(|| format!("There is no {object} {id}."))
        }
    }
    let nodes = json!([
        start(),
        node("a", "agent", json!({ "agent_id": 7, "input": "x" })),
        node("f", "function", json!({ "function_id": 9 })),
    ]);
    let graph = graph(nodes, &["start>a", "a>f"]);
    assert_eq!(check(&graph, &Anything), []);
    let issues = check(&graph, &Shop);
    assert_eq!(issues.len(), 1);
    assert_eq!(
        (issues[0].param.as_str(), issues[0].message.as_str()),
        ("nodes[2].config.function_id", "There is no function 9.")
    );
}

#[test]
fn what_the_schema_refuses_is_named() {
    let json = json!({ "nodes": [{ "id": "X", "type": "nope" }], "edges": [{ "from": "a" }], "more": 1 });
    let error = Graph::read(json).unwrap_err();
    let body = error.body();
    let params: Vec<&str> =
        body["errors"].as_array().unwrap().iter().map(|error| error["param"].as_str().unwrap()).collect();
    assert_eq!(params, ["nodes[0].id", "nodes[0].type", "edges[0].to", "more"]);
}

#[test]
fn objects_are_named_with_their_place() {
    struct Shop;
    impl Surroundings for Shop {
        fn missing(&self, object: &str, id: i64) -> Option<String> {
            (id == 9).then(|| format!("There is no {object} 9."))
        }

        fn unusable(&self, object: &str, _: i64, version: Option<i64>) -> Option<String> {
            (object == "flow" && version.is_none()).then(|| "It is off.".to_owned())
        }
    }
    let nodes = json!([
        start(),
        node("a", "approval", json!({ "text": "?", "approver_ids": [1, 9] })),
        node(
            "m",
            "send_message",
            json!({ "if_window_closed": "template",
            "template": { "channel_id": 9, "name": "x", "language": "en", "namespace": "n", "file_id": 3 } })
        ),
        node("s", "sub_flow", json!({ "flow_id": 3 })),
        node("t", "task", json!({ "task_id": "{{ $flow.task }}", "fields": {} })),
    ]);
    let graph = graph(nodes, &["start>a", "a.approved>m", "m>s", "s>t"]);
    let named: Vec<(String, &str, i64)> =
        objects(&graph).into_iter().map(|one| (one.param, one.object, one.id)).collect();
    let expected = [
        ("nodes[1].config.approver_ids[0]", "member", 1),
        ("nodes[1].config.approver_ids[1]", "member", 9),
        ("nodes[2].config.template.channel_id", "channel", 9),
        ("nodes[2].config.template.file_id", "file", 3),
        ("nodes[3].config.flow_id", "flow", 3),
    ];
    assert_eq!(named, expected.map(|(param, object, id)| (param.to_owned(), object, id)));
    let found: Vec<String> = check(&graph, &Shop)
        .into_iter()
        .filter(|issue| issue.code.as_str().ends_with("_object"))
        .map(|issue| format!("{} {} {}", issue.severity.as_str(), issue.code.as_str(), issue.param))
        .collect();
    assert_eq!(
        found,
        [
            "error missing_object nodes[1].config.approver_ids[1]",
            "error missing_object nodes[2].config.template.channel_id",
            "warning unusable_object nodes[3].config.flow_id",
        ]
    );
}

#[test]
fn variables_are_named_with_their_setting() {
    let nodes = json!([
        start(),
        node(
            "greet",
            "note",
            json!({ "text": "{{ $vars.shop.phone }} {{vars.shop.phone}} {{ $vars.hours | upper }}" })
        ),
        node(
            "call",
            "http_request",
            json!({ "url": "https://a.example", "headers": { "X": "{{ $vars.token }}" } })
        ),
        node("big", "condition", json!({ "if": "$vars.limit > 3" })),
        node("js", "code", json!({ "code": "export default () => '{{ $vars.no }}'" })),
    ]);
    let graph = graph(nodes, &[]);
    let found: Vec<String> = variables(&graph)
        .into_iter()
        .map(|one| format!("{}.{} {} {}", one.node_id, one.setting, one.param, one.key))
        .collect();
    assert_eq!(
        found,
        [
            "greet.text nodes[1].config.text hours",
            "greet.text nodes[1].config.text shop.phone",
            "call.headers.X nodes[2].config.headers.X token",
            "big.if nodes[3].config.if limit",
        ]
    );
}

#[test]
fn scopes_that_a_key_lacks_are_issues() {
    let nodes = json!([
        start(),
        node("a", "note", json!({ "text": "x" })),
        { "id": "b", "type": "task", "config": { "fields": {} }, "disabled": true },
        node("c", "find_items", json!({ "collection_id": 1 })),
    ]);
    let found = missing_scopes(&graph(nodes, &[]), |scope| scope.as_str() == "contacts:write");
    let found: Vec<&str> = found.iter().map(|issue| issue.param.as_str()).collect();
    assert_eq!(found, ["nodes[3].type"]);
}
