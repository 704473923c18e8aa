//! Errors that are caught, retried and raised.

use super::Expect::{Failed, Fault, Order, Output};
use super::{act, case, check, end, fork, give, run, with};
use crate::support::{node, program};
use flow_machine::Ending;
use serde_json::{Value, json};

#[test]
fn errors_that_are_caught() {
    let trying = |outcome: &str, more: Value| {
        let call = with(act("call", outcome), more);
        vec![
            call,
            give("caught", json!({ "code": "{{ $error.code }}", "node": "{{ $error.node_id }}" })),
            act("after", "after"),
        ]
    };
    let branch = || json!({ "on_error": "branch" });
    let ways: &[&str] = &["start>call", "call.error>caught", "call>after"];
    let plain: &[&str] = &["start>call", "call>after"];
    let caught = |code: &str| Output(json!({ "data": { "code": code, "node": "call" } }));
    let filtered = |status: &str| {
        vec![
            with(act("call", &format!("fail {status}")), branch()),
            node(
                "is_404",
                "condition",
                json!({ "if": { "left": "$error.code", "op": "eq", "right": "http_404" } }),
            ),
            act("caught", "caught"),
            end("raised", json!({ "status": "failed", "output": "{{ $error.code }}" })),
        ]
    };
    let filters: &[&str] = &["start>call", "call.error>is_404", "is_404.true>caught", "is_404.false>raised"];
    let retry = |retry: Value| json!({ "retry": retry, "on_error": "branch" });
    let nested = vec![
        with(act("call", "fail inner"), branch()),
        with(act("second", "fail outer"), branch()),
        give("caught", json!({ "code": "{{ $error.code }}", "node": "{{ $error.node_id }}" })),
    ];
    let in_loop = vec![
        node("each", "for_each", json!({ "list": ["fail broken", "x"] })),
        with(act("call", "{{ $loop.item }}"), branch()),
        act("caught", "saved"),
        end("end", json!({ "output": "{{ $nodes.each.output.results }}" })),
    ];
    let in_body: &[&str] = &["start>each", "each.each>call", "call.error>caught", "each>end"];
    for case in [
        case(
            "the handler knows what failed, and where",
            trying("fail http_404", branch()),
            ways,
            json!({}),
            caught("http_404"),
        ),
        case(
            "without an error the handler is passed over",
            trying("fine", branch()),
            ways,
            json!({}),
            Output(json!("after")),
        ),
        case(
            "an error without a handler ends the run",
            trying("fail http_404", json!({})),
            plain,
            json!({}),
            Fault("call", "http_404"),
        ),
        case("a handler for this error", filtered("http_404"), filters, json!({}), Output(json!("caught"))),
        case(
            "a handler for another error",
            filtered("http_403"),
            filters,
            json!({}),
            Failed(json!("http_403")),
        ),
        case(
            "retried until it succeeds",
            trying("flaky http_503 2", retry(json!({ "max_attempts": 3 }))),
            ways,
            json!({}),
            Output(json!("after")),
        ),
        case(
            "retried, and caught in the end",
            trying("fail http_503", retry(json!({ "max_attempts": 3 }))),
            ways,
            json!({}),
            Order(&["call", "call", "call", "caught"]),
        ),
        case(
            "an error that no repetition mends is not retried",
            trying("flaky http_404 1", retry(json!({ "max_attempts": 3 }))),
            ways,
            json!({}),
            caught("http_404"),
        ),
        case(
            "only errors that are listed are retried",
            trying("flaky http_503 1", retry(json!({ "max_attempts": 3, "retry_on": ["http_404"] }))),
            ways,
            json!({}),
            caught("http_503"),
        ),
        case(
            "a listed error is retried",
            trying("flaky http_404 1", retry(json!({ "max_attempts": 3, "retry_on": ["http_404"] }))),
            ways,
            json!({}),
            Output(json!("after")),
        ),
        case(
            "another output in the place of that of a failure",
            vec![
                with(
                    act("call", "fail broken"),
                    json!({ "on_error": "default", "default_output": { "a": 1 } }),
                ),
                give("after", json!({ "a": "{{ $nodes.call.output.a }}" })),
            ],
            plain,
            json!({}),
            Output(json!({ "data": { "a": 1 } })),
        ),
        case(
            "a failure that is passed over gives null",
            vec![
                with(act("call", "fail broken"), json!({ "on_error": "continue" })),
                give("after", json!({ "a": "{{ $nodes.call.output }}", "code": "{{ $error.code }}" })),
            ],
            plain,
            json!({}),
            Output(json!({ "data": { "a": null, "code": "broken" } })),
        ),
        case(
            "a handler that fails has a handler",
            nested,
            &["start>call", "call.error>second", "second.error>caught"],
            json!({}),
            Output(json!({ "data": { "code": "outer", "node": "second" } })),
        ),
        case(
            "an error in a loop is caught within it",
            in_loop,
            in_body,
            json!({}),
            Output(json!(["saved", "x"])),
        ),
        case(
            "an effect of which nobody knows is caught",
            trying("lost", json!({ "on_error": "branch", "effect_policy": "once" })),
            ways,
            json!({}),
            caught("outcome_unknown"),
        ),
        case(
            "an error of an expression is caught",
            vec![with(act("call", "{{ 1 / $input.zero }}"), branch()), act("caught", "{{ $error.code }}")],
            &["start>call", "call.error>caught"],
            json!({ "zero": 0 }),
            Output(json!("division_by_zero")),
        ),
    ] {
        check(&case);
    }
}

#[test]
fn errors_that_are_raised() {
    let raise = |output: Value| end("raise", json!({ "status": "failed", "output": output }));
    let problem = json!({ "status": 400, "type": "compliance", "title": "Compliance Error" });
    for case in [
        case(
            "a run that says that it failed",
            vec![raise(problem.clone())],
            &["start>raise"],
            json!({}),
            Failed(problem),
        ),
        case(
            "what is raised is computed",
            vec![raise(json!({ "title": "No {{ $input.what }}" }))],
            &["start>raise"],
            json!({ "what": "stock" }),
            Failed(json!({ "title": "No stock" })),
        ),
        case(
            "an error in one branch ends the others",
            vec![fork("fork", &["a", "b"]), act("slow", "x"), raise(json!("b"))],
            &["start>fork", "fork.a>slow", "fork.b>raise"],
            json!({}),
            Failed(json!("b")),
        ),
        case(
            "an error that is raised in a loop is no failure of its element",
            vec![
                node("each", "for_each", json!({ "list": [1, 2], "on_item_error": "skip" })),
                raise(json!("{{ $loop.item }}")),
            ],
            &["start>each", "each.each>raise"],
            json!({}),
            Failed(json!(1)),
        ),
        case(
            "an error names its node",
            vec![give("sum", json!({ "a": "{{ 1 / $input.zero }}" }))],
            &["start>sum"],
            json!({ "zero": 0 }),
            Fault("sum", "division_by_zero"),
        ),
        case(
            "a run that ends early has done its work",
            vec![end("done", json!({ "output": 1 })), act("after", "x")],
            &["start>done"],
            json!({}),
            Output(json!(1)),
        ),
    ] {
        let mut case = case;
        // A node that nothing leads to is a warning, not an error.
        case.nodes.retain(|node| node["id"] != "after");
        check(&case);
    }
}

#[test]
fn attempts_wait_longer_each_time() {
    for (retry, delays) in [
        (json!({ "max_attempts": 4, "delay_seconds": 5 }), vec![5, 10, 20]),
        (json!({ "max_attempts": 4, "delay_seconds": 5, "backoff": "fixed" }), vec![5, 5, 5]),
        (json!({ "max_attempts": 4, "delay_seconds": 5, "factor": 10, "max_delay": 60 }), vec![5, 50, 60]),
        (json!({ "max_attempts": 1 }), vec![]),
    ] {
        let nodes = json!([{ "id": "start", "type": "trigger" }, with(act("call", "fail http_503"), json!({ "retry": retry }))]);
        let gone = run(&program(nodes, &["start>call"], json!([])), &json!({}), false);
        assert_eq!(gone.delays, delays, "{retry}");
        assert!(matches!(gone.state.ending, Some(Ending::Fault(_))));
    }
}
