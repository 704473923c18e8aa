//! Loops, and lists that are sorted.

use super::Expect::{Fault, Output, Variables};
use super::{act, case, check, colors, end, give, paint, run, set};
use crate::support::{node, program};
use flow_machine::Ending;
use serde_json::{Value, json};

#[test]
fn loops() {
    let each = |config: Value| node("each", "for_each", config);
    let mark = || {
        set(
            "mark",
            json!([
                { "name": "colors", "op": "append", "value": "{{ $loop.item }}" }, { "name": "indexes", "op": "append", "value": "{{ $loop.index }}" },
            ]),
        )
    };
    let body: &[&str] = &["start>each", "each.each>mark"];
    let list = json!({ "list": "{{ $input.colors }}" });
    let marked = |colors: Value, indexes: Value| Variables(json!({ "colors": colors, "indexes": indexes }));
    let acting = |config: Value, outcome: &str| {
        vec![each(config), act("mark", outcome), end("end", json!({ "output": "{{ $nodes.each.output }}" }))]
    };
    let then: &[&str] = &["start>each", "each.each>mark", "each>end"];
    let turning = |config: Value| {
        vec![
            node("each", "while", config),
            set("mark", json!([{ "name": "n", "op": "increment" }])),
            paint("limit", "limit"),
            end("end", json!({ "output": "{{ $flow.n }}" })),
        ]
    };
    let turns: &[&str] = &["start>each", "each.each>mark", "each>end", "each.limit>limit", "limit>end"];
    let nested = vec![
        node("outer", "for_each", json!({ "list": [1, 2] })),
        give("seen", json!({ "item": "{{ $loop.item }}" })),
        node("inner", "for_each", json!({ "list": ["a", "b"] })),
        set(
            "mark",
            json!([{ "name": "colors", "op": "append", "value": "{{ $nodes.seen.output.data.item }}{{ $loop.item }}" }]),
        ),
    ];
    for case in [
        case(
            "items and indexes",
            vec![each(list.clone()), mark()],
            body,
            json!({ "colors": ["red", "green", "blue"] }),
            marked(json!(["red", "green", "blue"]), json!([0, 1, 2])),
        ),
        case(
            "an empty list",
            vec![each(list.clone()), mark()],
            body,
            json!({ "colors": [] }),
            marked(Value::Null, Value::Null),
        ),
        case("no list", vec![each(list.clone()), mark()], body, json!({}), marked(Value::Null, Value::Null)),
        case(
            "a list with null",
            vec![each(list.clone()), mark()],
            body,
            json!({ "colors": [null] }),
            marked(json!([null]), json!([0])),
        ),
        case(
            "no list but a text",
            vec![each(list), mark()],
            body,
            json!({ "colors": "red" }),
            Fault("each", "wrong_type"),
        ),
        case(
            "the list is read once, also if the body changes it",
            vec![
                paint("first", "red"),
                each(json!({ "list": "{{ $flow.colors }}" })),
                paint("mark", "more"),
                colors("end"),
            ],
            &["start>first", "first>each", "each.each>mark", "each>end"],
            json!({}),
            Output(json!(["red", "more"])),
        ),
        case(
            "results in the order of the list, in whatever order they come",
            acting(json!({ "list": [1, 2, 3], "parallel": 3 }), "{{ $loop.item }}"),
            then,
            json!({}),
            Output(json!({ "results": [1, 2, 3], "failed": [] })),
        ),
        case(
            "an item that fails stops all",
            acting(json!({ "list": [1, 2] }), "fail broken"),
            then,
            json!({}),
            Fault("mark", "broken"),
        ),
        case(
            "items that fail are left out",
            acting(json!({ "list": ["fail broken", "x"], "on_item_error": "skip" }), "{{ $loop.item }}"),
            then,
            json!({}),
            Output(
                json!({ "results": ["x"], "failed": [{ "index": 0, "code": "broken", "message": "It failed." }] }),
            ),
        ),
        case(
            "loops within loops",
            nested,
            &["start>outer", "outer.each>seen", "seen>inner", "inner.each>mark"],
            json!({}),
            Variables(json!({ "colors": ["1a", "1b", "2a", "2b"] })),
        ),
        case(
            "while a condition holds",
            turning(json!({ "if": "$flow.n < 3" })),
            turns,
            json!({}),
            Output(json!(3)),
        ),
        case(
            "a condition that never holds",
            turning(json!({ "if": "$flow.n < 0" })),
            turns,
            json!({}),
            Output(json!(0)),
        ),
        case(
            "a condition that always holds",
            turning(json!({ "if": "true", "max_iterations": 5 })),
            turns,
            json!({}),
            Variables(json!({ "n": 5, "colors": ["limit"] })),
        ),
        case(
            "a condition that cannot be computed",
            turning(json!({ "if": "1 / (2 - $flow.n) > 0" })),
            turns,
            json!({}),
            Fault("each", "division_by_zero"),
        ),
    ] {
        check(&case);
    }
}

/// Texts that show numbers have another order among themselves than beside numbers. A sort by such an order must not panic.
#[test]
fn lists_without_an_order_are_sorted_or_refused() {
    let sorted = |list: Value| {
        let sort = node("sort", "transform", json!({ "list": "{{ $input.list }}", "sort": "n" }));
        let program =
            program(json!([{ "id": "start", "type": "trigger" }, sort]), &["start>sort"], json!([]));
        run(&program, &json!({ "list": list }), false).state.ending
    };
    let texts = |count: usize| -> Vec<Value> {
        let value = |place: usize| match place % 3 {
            0 => json!("10"),
            1 => json!("9"),
            _ => json!(9.5),
        };
        (0..count).map(|place| json!({ "n": value(place * 7 + place / 5) })).collect()
    };
    let Some(Ending::Completed { output }) = sorted(json!(texts(200))) else { panic!("it has no order") };
    assert_eq!(output["data"].as_array().unwrap().len(), 200);
    let mixed: Vec<Value> =
        (0..200).map(|n| json!({ "n": if n % 2 == 0 { json!(n) } else { json!(true) } })).collect();
    assert!(matches!(sorted(json!(mixed)), Some(Ending::Fault(fault)) if fault.code == "wrong_type"));
    let stable: Vec<Value> = (0..100).map(|n| json!({ "n": n % 3, "at": n })).collect();
    let Some(Ending::Completed { output }) = sorted(json!(stable)) else { panic!("it has an order") };
    let places: Vec<i64> = output["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["n"].as_i64().unwrap() * 1000 + item["at"].as_i64().unwrap())
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}
