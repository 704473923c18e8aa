//! Switches and branches.

use super::Expect::{Fault, Order, Output, Variables};
use super::{act, case, check, colors, end, fork, paint, set, with};
use crate::support::node;
use serde_json::{Value, json};

#[test]
fn switches() {
    let cases = json!([{ "id": "red", "equals": "red" }, { "id": "green", "equals": "green" }, { "id": "blue", "equals": "blue" }]);
    let which = || {
        let which = node("which", "switch", json!({ "value": "{{ $input.color }}", "cases": cases }));
        vec![
            which,
            paint("red", "red"),
            paint("green", "green"),
            paint("blue", "blue"),
            paint("other", "{{ $input.color }}"),
            colors("all"),
        ]
    };
    let ways: &[&str] = &[
        "start>which",
        "which.red>red",
        "which.green>green",
        "which.blue>blue",
        "red>all",
        "green>all",
        "blue>all",
    ];
    let with_default: &[&str] = &[
        "start>which",
        "which.red>red",
        "which.green>green",
        "which.blue>blue",
        "red>all",
        "green>all",
        "blue>all",
        "which.default>other",
        "other>all",
    ];
    let by = |mode: &str, cases: Value| {
        node("which", "switch", json!({ "mode": mode, "cases": cases, "value": "{{ $input.n }}" }))
    };
    let sizes = json!([{ "id": "some", "if": "$input.n > 0" }, { "id": "many", "if": "$input.n > 10" }]);
    let two: &[&str] = &["start>which", "which.some>some", "which.many>many"];
    let painted = || vec![paint("some", "some"), paint("many", "many")];
    let sized = |mode: &str| [vec![by(mode, sizes.clone())], painted()].concat();
    for case in [
        case("the case that fits", which(), ways, json!({ "color": "red" }), Output(json!(["red"]))),
        case("the last case", which(), ways, json!({ "color": "blue" }), Output(json!(["blue"]))),
        case(
            "no case, and no default: the branch ends",
            which(),
            ways,
            json!({ "color": "yellow" }),
            Order(&["which"]),
        ),
        case(
            "no case, but a default",
            which(),
            with_default,
            json!({ "color": "yellow" }),
            Output(json!(["yellow"])),
        ),
        case(
            "a case that fits is no default",
            which(),
            with_default,
            json!({ "color": "green" }),
            Order(&["which", "green", "all"]),
        ),
        case(
            "without a value the default",
            which(),
            with_default,
            json!({}),
            Order(&["which", "other", "all"]),
        ),
        case(
            "the first of several that fit",
            sized("first"),
            two,
            json!({ "n": 11 }),
            Variables(json!({ "colors": ["some"] })),
        ),
        case(
            "all that fit",
            sized("all"),
            two,
            json!({ "n": 11 }),
            Variables(json!({ "colors": ["some", "many"] })),
        ),
        case(
            "a condition that cannot be computed is no default",
            sized("first"),
            two,
            json!({ "n": [] }),
            Fault("which", "wrong_type"),
        ),
        case(
            "true is not 1",
            [
                vec![by("first", json!([{ "id": "some", "equals": 1 }, { "id": "many", "equals": true }]))],
                painted(),
            ]
            .concat(),
            two,
            json!({ "n": true }),
            Variables(json!({ "colors": ["many"] })),
        ),
    ] {
        check(&case);
    }
}

#[test]
fn branches() {
    let three = |join: Value| {
        let ends = node("join", "join", join);
        vec![
            fork("fork", &["r", "g", "b"]),
            act("red", "red"),
            act("green", "green"),
            act("blue", "blue"),
            ends,
            set("after", json!([{ "name": "n", "op": "increment" }])),
            end("end", json!({ "output": "{{ $nodes.join.output.arrived }}" })),
        ]
    };
    let ways: &[&str] = &[
        "start>fork",
        "fork.r>red",
        "fork.g>green",
        "fork.b>blue",
        "red>join",
        "green>join",
        "blue>join",
        "join>after",
        "after>end",
    ];
    let painted = vec![fork("fork", &["r", "g"]), paint("red", "red"), paint("green", "green")];
    let one_ends = vec![
        fork("fork", &["r", "g"]),
        act("red", "red"),
        node("stop", "condition", json!({ "if": "false" })),
        node("join", "join", json!({})),
        act("after", "after"),
    ];
    let mut failing = three(json!({}));
    failing[2] = act("green", "fail broken");
    let mut shrugging = three(json!({}));
    shrugging[2] = with(act("green", "fail broken"), json!({ "on_error": "continue" }));
    for case in [
        case(
            "all branches, then once what follows",
            three(json!({})),
            ways,
            json!({}),
            Variables(json!({ "n": 1 })),
        ),
        case("all have arrived", three(json!({})), ways, json!({}), Output(json!(3))),
        case(
            "branches that compete: one arrives",
            three(json!({ "mode": "any" })),
            ways,
            json!({}),
            Output(json!(1)),
        ),
        case(
            "what follows a competition happens once",
            three(json!({ "mode": "any" })),
            ways,
            json!({}),
            Variables(json!({ "n": 1 })),
        ),
        case(
            "two of three",
            three(json!({ "mode": "count", "count": 2 })),
            ways,
            json!({}),
            Output(json!(2)),
        ),
        case(
            "branches without a join share the variables",
            painted,
            &["start>fork", "fork.r>red", "fork.g>green"],
            json!({}),
            Variables(json!({ "colors": ["red", "green"] })),
        ),
        case(
            "a branch that ends before the join is not waited for",
            one_ends,
            &["start>fork", "fork.r>red", "fork.g>stop", "stop.true>join", "red>join", "join>after"],
            json!({}),
            Order(&["fork", "stop", "red", "join", "after"]),
        ),
        case("a branch that fails fails the run", failing, ways, json!({}), Fault("green", "broken")),
        case("a branch whose failure is accepted arrives", shrugging, ways, json!({}), Output(json!(3))),
    ] {
        check(&case);
    }
}
