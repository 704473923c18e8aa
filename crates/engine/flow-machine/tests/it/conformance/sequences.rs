//! Sequences, and values that are set.

use super::Expect::{Order, Output, Variables};
use super::{act, case, check, colors, give, paint, set};
use crate::support::node;
use serde_json::{Value, json};

#[test]
fn sequences() {
    let three = || vec![paint("red", "red"), paint("green", "green"), paint("blue", "blue"), colors("all")];
    let all = json!(["red", "green", "blue"]);
    let mut disabled = three();
    disabled[1]["disabled"] = true.into();
    let jumps = vec![
        paint("red", "red"),
        node("to_green", "jump", json!({ "node_id": "green" })),
        paint("blue", "blue"),
        colors("all"),
        paint("green", "green"),
        node("to_blue", "jump", json!({ "node_id": "blue" })),
    ];
    let backwards: Vec<Value> = three().into_iter().rev().collect();
    let chain: &[&str] = &["start>red", "red>green", "green>blue", "blue>all"];
    for case in [
        case("parts of a sequence follow each other", three(), chain, json!({}), Output(all.clone())),
        case(
            "the order is that of the edges, not of the nodes",
            backwards,
            chain,
            json!({}),
            Output(all.clone()),
        ),
        case("each node once", three(), chain, json!({}), Order(&["red", "green", "blue", "all"])),
        case(
            "a node that is switched off is passed over",
            disabled,
            chain,
            json!({}),
            Output(json!(["red", "blue"])),
        ),
        case(
            "a directive names the node that follows",
            jumps,
            &["start>red", "red>to_green", "green>to_blue", "blue>all"],
            json!({}),
            Output(all),
        ),
        case(
            "the output is that of the last node",
            vec![act("one", "x"), act("two", "y")],
            &["start>one", "one>two"],
            json!({}),
            Output(json!("y")),
        ),
        case("an empty flow gives its input", vec![], &[], json!({ "a": 1 }), Output(json!({ "a": 1 }))),
    ] {
        check(&case);
    }
}

#[test]
fn values_that_are_set() {
    let shape = json!({ "shape": "circle", "size": "{{ $input.configuration.size }}", "fill": "{{ $input.configuration.fill }}" });
    let configuration =
        json!({ "size": { "width": 6, "height": 6 }, "fill": { "red": 69, "green": 69, "blue": 69 } });
    let configured =
        json!({ "shape": "circle", "size": configuration["size"], "fill": configuration["fill"] });
    let one: &[&str] = &["start>set"];
    for case in [
        case(
            "objects are taken over as they are",
            vec![give("set", shape)],
            one,
            json!({ "configuration": configuration }),
            Output(json!({ "data": configured })),
        ),
        case(
            "an input is narrowed to one of its members",
            vec![give("set", json!({ "player": "{{ $input.user.claims.subject }}" }))],
            one,
            json!({ "user": { "claims": { "subject": "6AsnRgGEB0q2O7ux9JXFAw" } } }),
            Output(json!({ "data": { "player": "6AsnRgGEB0q2O7ux9JXFAw" } })),
        ),
        case(
            "an output that is no object is read by the next node",
            vec![
                act("first", "{{ $input.id }}"),
                give("set", json!({ "ids": ["{{ $nodes.first.output }}", 2] })),
            ],
            &["start>first", "first>set"],
            json!({ "id": 1 }),
            Output(json!({ "data": { "ids": [1, 2] } })),
        ),
        case(
            "a reference keeps its type, a text with words is text",
            vec![give(
                "set",
                json!({ "is": "{{ $input.is }}", "no": "{{ $input.no }}", "list": "{{ $input.list }}", "text": "is {{ $input.is }}" }),
            )],
            one,
            json!({ "is": true, "no": 0, "list": [] }),
            Output(json!({ "data": { "is": true, "no": 0, "list": [], "text": "is true" } })),
        ),
        case(
            "what is missing is null, and nothing within a text",
            vec![give("set", json!({ "alone": "{{ $input.a.b[3] }}", "text": "<{{ $input.a.b }}>" }))],
            one,
            json!({ "a": "text" }),
            Output(json!({ "data": { "alone": null, "text": "<>" } })),
        ),
        case(
            "values are those from before the node, so that two can be exchanged",
            vec![set(
                "set",
                json!([{ "name": "a", "value": "{{ $flow.b }}" }, { "name": "b", "value": "{{ $flow.a }}" }]),
            )],
            one,
            json!({}),
            Variables(json!({ "a": "2", "b": "1" })),
        ),
        case(
            "other variables stay",
            vec![set("set", json!([{ "name": "a", "op": "unset" }]))],
            one,
            json!({}),
            Variables(json!({ "a": null, "b": "2", "n": 0 })),
        ),
        case(
            "decimals stay exact",
            vec![
                set("set", json!([{ "name": "n", "value": 0.1 }])),
                set("more", json!([{ "name": "n", "op": "increment", "value": 0.2 }])),
            ],
            &["start>set", "set>more"],
            json!({}),
            Variables(json!({ "n": 0.3 })),
        ),
    ] {
        check(&case);
    }
}
