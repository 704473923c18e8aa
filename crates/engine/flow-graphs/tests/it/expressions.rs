//! What expressions read.

use crate::{graph, issues, node, start};
use serde_json::json;

#[test]
fn references_name_what_is_there_and_has_run() {
    let nodes = json!([
        start(),
        node(
            "check",
            "condition",
            json!({ "if": { "left": "$contact.$country", "op": "eq", "right": "ES" } })
        ),
        node("first", "note", json!({ "text": "{{ $nodes.last.output }}" })),
        node("second", "note", json!({ "text": "{{ $nodes.first.output.id }} {{ $nodes.frist.output }}" })),
        node(
            "last",
            "note",
            json!({ "text": "{{ $flow.budget }} {{ $flow.bugdet }} {{ $loop.item }} {{ $custumer.x }}" })
        ),
    ]);
    let edges = ["start>check", "check.true>first", "check.false>second", "first>second", "second>last"];
    let mut graph = graph(nodes, &edges);
    graph.variables = serde_json::from_value(json!([{ "name": "budget", "type": "number" }])).unwrap();
    assert_eq!(
        issues(&graph),
        [
            "error never_run_before nodes[2].config.text",
            "warning may_not_have_run nodes[3].config.text",
            "error unknown_reference nodes[3].config.text",
            "error invalid_expression nodes[4].config.text",
        ]
    );
    graph.nodes[4].config["text"] = json!("{{ $flow.budget }} {{ $flow.bugdet }} {{ $loop.item }}");
    let found = issues(&graph);
    assert_eq!(
        found.iter().filter(|issue| issue.as_str() == "error unknown_reference nodes[4].config.text").count(),
        2
    );
}

#[test]
fn mistakes_name_their_place() {
    for (kind, config, param) in [
        (
            "condition",
            json!({ "if": { "and": [{ "left": "$contact.a", "op": "eqq", "right": 1 }] } }),
            "nodes[1].config.if.and[0].op",
        ),
        ("switch", json!({ "cases": [{ "id": "a", "if": "$contact.a >" }] }), "nodes[1].config.cases[0].if"),
        (
            "http_request",
            json!({ "url": "https://a.example", "headers": { "X": "{{ 1 +" } }),
            "nodes[1].config.headers.X",
        ),
        (
            "set_variables",
            json!({ "assignments": [{ "name": "a", "value": ["{{ nope() }}"] }] }),
            "nodes[1].config.assignments[0].value[0]",
        ),
        ("note", json!({ "text": "{{{{" }), "nodes[1].config.text"),
    ] {
        let found = issues(&graph(json!([start(), node("n", kind, config)]), &["start>n"]));
        assert!(found.contains(&format!("error invalid_expression {param}")), "{kind}: {found:?}");
    }
    let fine = json!([
        start(),
        node("n", "note", json!({ "text": "It costs $5, or \\{{ 5 }}" })),
        node("c", "code", json!({ "code": "export default () => `{{${1}}}`" })),
    ]);
    assert_eq!(issues(&graph(fine, &["start>n", "n>c"])), Vec::<String>::new());
}

#[test]
fn the_body_of_a_loop_reads_its_element() {
    let nodes = json!([
        start(),
        node("each", "for_each", json!({ "list": "{{ $input.orders }}" })),
        node("write", "note", json!({ "text": "{{ $loop.item.number }} {{ $loop.index }}" })),
        node("after", "note", json!({ "text": "{{ $nodes.each.output.results | size }}" })),
    ]);
    assert_eq!(issues(&graph(nodes, &["start>each", "each.each>write", "each>after"])), Vec::<String>::new());
}
