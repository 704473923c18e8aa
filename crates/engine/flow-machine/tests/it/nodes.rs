//! What each node does.

use crate::support::{Run, node, program};
use flow_machine::Outcome;
use serde_json::{Value, json};

fn start() -> Value {
    json!({ "id": "start", "type": "trigger" })
}

fn note(id: &str, text: &str) -> Value {
    node(id, "note", json!({ "text": text }))
}

#[test]
fn a_task_gets_its_settings_and_gives_its_output() {
    let program = program(
        json!([start(), note("a", "Hello {{ $contact.$name }}"), note("b", "{{ $nodes.a.output.id }}")]),
        &["start>a", "a>b"],
        json!([]),
    );
    let mut run = Run::start(&program, json!({}));
    assert_eq!(run.open[0].config, json!({ "text": "Hello Ana" }));
    run.done("a", json!({ "id": 5 }));
    // A single reference keeps its type.
    assert_eq!(run.open[0].config, json!({ "text": 5 }));
    run.done("b", json!({ "id": 6 }));
    assert_eq!(run.output(), &json!({ "id": 6 }));
    // What comes after the end changes nothing.
    let before = run.state.clone();
    program.finish(&mut run.state, 2, Outcome::done(json!(1)), &run.values);
    assert_eq!(run.state, before);
}

#[test]
fn conditions_and_switches_choose_a_port() {
    let cases = json!({ "value": "{{ $input.kind }}", "cases": [
        { "id": "one", "equals": 1 }, { "id": "big", "if": "$input.kind == 11" }, { "id": "text", "equals": "x" }] });
    let nodes = json!([
        start(),
        node("check", "condition", json!({ "if": { "left": "$input.go", "op": "eq", "right": true } })),
        node("which", "switch", cases),
        note("a", "x"),
        note("b", "x"),
        note("c", "x"),
        note("d", "x"),
        note("no", "x"),
    ]);
    let edges = [
        "start>check",
        "check.true>which",
        "check.false>no",
        "which.one>a",
        "which.big>b",
        "which.text>c",
        "which.default>d",
    ];
    let program = program(nodes, &edges, json!([]));
    for (input, open) in [
        (json!({ "go": true, "kind": 1 }), "a"),
        (json!({ "go": true, "kind": 11 }), "b"),
        (json!({ "go": true, "kind": "x" }), "c"),
        (json!({ "go": true }), "d"),
        (json!({ "go": false }), "no"),
        (json!({}), "no"),
    ] {
        assert_eq!(Run::start(&program, input.clone()).open(), [open], "{input}");
    }
}

#[test]
fn an_error_of_a_condition_is_neither_true_nor_false() {
    let program = program(
        json!([start(), node("check", "condition", json!({ "if": "1 / $input.zero > 1" })), note("a", "x")]),
        &["start>check", "check.true>a", "check.false>a"],
        json!([]),
    );
    assert_eq!(Run::start(&program, json!({ "zero": 0 })).fault(), ("check", "division_by_zero"));
}

#[test]
fn variables_are_changed_exactly_and_together() {
    let assign = |list: Value| node("set", "set_variables", json!({ "assignments": list }));
    let variables = json!([
        { "name": "sum", "type": "number", "default": 0.1 }, { "name": "list", "type": "list" }, { "name": "text", "type": "text", "default": "x" },
    ]);
    let good = json!([
        { "name": "sum", "op": "increment", "value": 0.2 }, { "name": "list", "op": "append", "value": "{{ $input.a }}" },
        { "name": "text", "op": "unset" },
    ]);
    let ok = program(json!([start(), assign(good)]), &["start>set"], variables.clone());
    let run = Run::start(&ok, json!({ "a": 1 }));
    assert_eq!(Value::Object(run.state.variables.clone()), json!({ "sum": 0.3, "list": [1], "text": null }));
    let bad = json!([{ "name": "sum", "op": "increment" }, { "name": "text", "op": "increment" }]);
    let failing = program(json!([start(), assign(bad)]), &["start>set"], variables);
    let run = Run::start(&failing, json!({}));
    assert_eq!(run.fault(), ("set", "wrong_type"));
    assert_eq!(run.state.variables["sum"], json!(0.1));
}

#[test]
fn lists_are_filtered_sorted_cut_and_grouped() {
    let transform = |config: Value| {
        let program = program(json!([start(), node("t", "transform", config)]), &["start>t"], json!([]));
        let list = json!([{ "n": 3, "k": "a" }, { "n": 1, "k": "b" }, { "k": "a" }, { "n": 2, "k": "a" }]);
        Run::start(&program, json!({ "list": list })).output().clone()
    };
    let list = "{{ $input.list }}";
    let numbers = |output: Value| -> Vec<Value> {
        output["data"].as_array().unwrap().iter().map(|item| item["n"].clone()).collect()
    };
    assert_eq!(
        numbers(transform(json!({ "list": list, "sort": "n" }))),
        [json!(1), json!(2), json!(3), Value::Null]
    );
    assert_eq!(numbers(transform(json!({ "list": list, "sort": "-n", "limit": 2 }))), [json!(3), json!(2)]);
    assert_eq!(
        numbers(transform(
            json!({ "list": list, "filter": { "left": "$loop.item.n", "op": "gt", "right": 1 }, "offset": 1 })
        )),
        [json!(2)]
    );
    assert_eq!(
        transform(json!({ "list": list, "group": "k" }))["data"][1]["items"],
        json!([{ "n": 1, "k": "b" }])
    );
    assert_eq!(
        transform(json!({ "fields": { "a": "{{ $input.list | size }}" } })),
        json!({ "data": { "a": 4 } })
    );
}

#[test]
fn a_split_keeps_a_contact_with_its_variant() {
    let variants = json!({ "variants": [{ "id": "a", "weight": 1 }, { "id": "b", "weight": 3 }] });
    let program = program(
        json!([start(), node("s", "split", variants), note("x", "x"), note("y", "y")]),
        &["start>s", "s.a>x", "s.b>y"],
        json!([]),
    );
    let mut chosen = std::collections::BTreeMap::new();
    for contact in 0..2000 {
        let mut run = Run::start(&program, json!({}));
        run.values.contact = Some(contact.to_string());
        run.state = program.start(&json!({}));
        run.open.clear();
        run.advance();
        *chosen.entry(run.open()[0].to_owned()).or_insert(0) += 1;
    }
    let (x, y) = (chosen["x"], chosen["y"]);
    assert!((400..600).contains(&x) && x + y == 2000, "{chosen:?}");
}

#[test]
fn loops_collect_their_results_in_order() {
    let each = json!({ "list": "{{ $input.list }}", "parallel": 2 });
    let nodes = json!([
        start(),
        node("each", "for_each", each),
        note("a", "{{ $loop.item }}/{{ $loop.index }}/{{ $loop.last }}"),
        note("after", "x")
    ]);
    let program = program(nodes, &["start>each", "each.each>a", "each>after"], json!([]));
    let mut run = Run::start(&program, json!({ "list": ["x", "y", "z"] }));
    assert_eq!(run.open(), ["a", "a"]);
    let second = run.open.remove(1);
    assert_eq!((second.path.as_str(), &second.config["text"]), ("each[1]", &json!("y/1/false")));
    program.finish(&mut run.state, second.token, Outcome::done(json!("second")), &run.values);
    run.advance();
    assert_eq!(run.open.iter().map(|task| task.path.as_str()).collect::<Vec<_>>(), ["each[0]", "each[2]"]);
    run.done("a", json!("first"));
    run.done("a", json!("third"));
    assert_eq!(run.open(), ["after"]);
    run.done("after", Value::Null);
    let mut empty = Run::start(&program, json!({ "list": [] }));
    empty.done("after", json!("end"));
    assert_eq!(empty.output(), &json!("end"));
    assert_eq!(Run::start(&program, json!({ "list": vec![0; 1001] })).fault(), ("each", "list_too_long"));
    assert_eq!(Run::start(&program, json!({ "list": "x" })).fault(), ("each", "wrong_type"));
}

#[test]
fn an_element_that_fails_is_skipped_or_null_or_stops_all() {
    for (policy, results) in [("skip", json!([1])), ("null", json!([null, 1]))] {
        let each = json!({ "list": [1, 2], "on_item_error": policy });
        let nodes = json!([
            start(),
            node("each", "for_each", each),
            note("a", "x"),
            note("after", "{{ $nodes.each.output.results }}")
        ]);
        let program = program(nodes, &["start>each", "each.each>a", "each>after"], json!([]));
        let mut run = Run::start(&program, json!({}));
        run.fails("a", "broken", false);
        run.done("a", json!(1));
        assert_eq!(run.open[0].config["text"], results, "{policy}");
    }
    let nodes = json!([start(), node("each", "for_each", json!({ "list": [1, 2] })), note("a", "x")]);
    let program = program(nodes, &["start>each", "each.each>a"], json!([]));
    let mut run = Run::start(&program, json!({}));
    run.fails("a", "broken", false);
    assert_eq!(run.fault(), ("a", "broken"));
}

#[test]
fn a_while_ends_with_its_condition_or_its_limit() {
    let nodes = |most: i64| {
        json!([
            start(),
            node("w", "while", json!({ "if": "$flow.n < 3", "max_iterations": most })),
            node("add", "set_variables", json!({ "assignments": [{ "name": "n", "op": "increment" }] })),
            note("done", "{{ $nodes.w.output.iterations }}"),
            note("limit", "x"),
        ])
    };
    let edges = ["start>w", "w.each>add", "w>done", "w.limit>limit"];
    let variables = json!([{ "name": "n", "type": "number", "default": 0 }]);
    let enough = program(nodes(10), &edges, variables.clone());
    let run = Run::start(&enough, json!({}));
    assert_eq!((run.open(), &run.open[0].config["text"]), (vec!["done"], &json!(3)));
    let limited = program(nodes(2), &edges, variables);
    assert_eq!(Run::start(&limited, json!({})).open(), ["limit"]);
}

#[test]
fn joins_wait_for_what_can_still_arrive() {
    let nodes = |mode: Value| {
        json!([
            start(),
            node("fork", "parallel", json!({ "branches": [{ "id": "x" }, { "id": "y" }] })),
            note("a", "x"),
            note("b", "x"),
            node("meet", "join", mode),
            note("after", "x"),
        ])
    };
    let edges = ["start>fork", "fork.x>a", "fork.y>b", "a>meet", "b>meet", "meet>after"];
    let all = program(nodes(json!({})), &edges, json!([]));
    let mut run = Run::start(&all, json!({}));
    run.done("b", Value::Null);
    assert_eq!(run.open(), ["a"]);
    run.done("a", Value::Null);
    assert_eq!(run.open(), ["after"]);
    // The others end.
    let any = program(nodes(json!({ "mode": "any" })), &edges, json!([]));
    let mut run = Run::start(&any, json!({}));
    run.done("b", Value::Null);
    assert_eq!(run.open(), ["a", "after"]);
    assert_eq!(run.state.busy().map(|(_, node)| node).collect::<Vec<_>>(), ["after"]);
    run.done("a", Value::Null);
    run.done("after", json!("end"));
    assert_eq!(run.output(), &json!("end"));
    // A timeout is a task of the outside.
    let timed = program(nodes(json!({ "timeout_seconds": 60 })), &edges, json!([]));
    let mut run = Run::start(&timed, json!({}));
    run.done("b", Value::Null);
    assert_eq!(run.open(), ["a", "meet"]);
    run.port("meet", "timeout", Value::Null);
    run.done("a", Value::Null);
    assert_eq!(run.output(), &json!({ "arrived": 1, "branches": { "b": null } }));
}

#[test]
fn a_branch_that_fails_elsewhere_does_not_block_a_join() {
    let mut failing = note("a", "x");
    failing["on_error"] = json!("branch");
    let nodes = json!([
        start(),
        node("fork", "parallel", json!({ "branches": [{ "id": "x" }, { "id": "y" }] })),
        failing,
        note("b", "x"),
        note("rescue", "{{ $error.code }}"),
        node("meet", "join", json!({})),
        note("after", "x"),
    ]);
    let edges = ["start>fork", "fork.x>a", "fork.y>b", "a>meet", "a.error>rescue", "b>meet", "meet>after"];
    let program = program(nodes, &edges, json!([]));
    let mut run = Run::start(&program, json!({}));
    run.done("b", Value::Null);
    run.fails("a", "broken", false);
    assert_eq!(run.open(), ["rescue", "after"]);
    assert_eq!(run.open[0].config["text"], json!("broken"));
}

#[test]
fn failures_are_tried_again_and_then_follow_the_policy() {
    let failing = |more: Value| {
        let mut a = note("a", "x");
        for (name, value) in more.as_object().unwrap() {
            a[name] = value.clone();
        }
        program(json!([start(), a, note("next", "{{ $error.code }}")]), &["start>a", "a>next"], json!([]))
    };
    let plain = failing(json!({}));
    let mut run = Run::start(&plain, json!({}));
    run.fails("a", "timeout", true);
    assert_eq!((run.open[0].attempt, run.open[0].delay_seconds), (2, 5));
    run.fails("a", "timeout", true);
    assert_eq!((run.open[0].attempt, run.open[0].delay_seconds), (3, 10));
    run.fails("a", "timeout", true);
    assert_eq!(run.fault(), ("a", "timeout"));
    let mut run = Run::start(&plain, json!({}));
    run.fails("a", "refused", false);
    assert_eq!(run.fault(), ("a", "refused"));

    let listed = failing(
        json!({ "retry": { "max_attempts": 2, "retry_on": ["refused"], "backoff": "fixed", "delay_seconds": 60 } }),
    );
    let mut run = Run::start(&listed, json!({}));
    run.finish(
        "a",
        Outcome::Failed {
            code: "refused".into(),
            message: String::new(),
            is_transient: false,
            retry_after: Some(90),
        },
    );
    assert_eq!(run.open[0].delay_seconds, 90);

    for (policy, output) in [("continue", Value::Null), ("default", json!({ "x": 1 }))] {
        let rescued = failing(json!({ "on_error": policy, "default_output": { "x": 1 } }));
        let mut run = Run::start(&rescued, json!({}));
        run.fails("a", "refused", false);
        assert_eq!(run.open[0].config["text"], json!("refused"), "{policy} {output}");
    }
    let paused = failing(json!({ "on_error": "pause" }));
    let mut run = Run::start(&paused, json!({}));
    run.fails("a", "refused", false);
    assert!(run.open.is_empty() && run.state.ending.is_none());
    assert_eq!(run.state.pauses().map(|fault| fault.code.as_str()).collect::<Vec<_>>(), ["refused"]);
    paused.resume(&mut run.state);
    run.advance();
    assert_eq!(run.open(), ["a"]);
}

#[test]
fn an_unknown_outcome_follows_its_policy() {
    let of = |policy: &str, edges: &[&str]| {
        let mut a = note("a", "x");
        a["effect_policy"] = json!(policy);
        program(json!([start(), a, note("rescue", "x")]), edges, json!([]))
    };
    let again = of("retry", &["start>a"]);
    let mut run = Run::start(&again, json!({}));
    run.finish("a", Outcome::Unknown);
    assert_eq!((run.open(), run.open[0].attempt), (vec!["a"], 2));
    // The attempts are those of a node that fails.
    run.finish("a", Outcome::Unknown);
    assert_eq!((run.open(), run.open[0].attempt), (vec!["a"], 3));
    run.finish("a", Outcome::Unknown);
    assert_eq!(run.fault(), ("a", "outcome_unknown"));
    let once = of("once", &["start>a", "a.error>rescue"]);
    let mut run = Run::start(&once, json!({}));
    run.finish("a", Outcome::Unknown);
    assert_eq!(run.open(), ["rescue"]);
    let alone = of("once", &["start>a"]);
    let mut run = Run::start(&alone, json!({}));
    run.finish("a", Outcome::Unknown);
    assert_eq!(run.fault(), ("a", "outcome_unknown"));
    let paused = of("pause", &["start>a"]);
    let mut run = Run::start(&paused, json!({}));
    run.finish("a", Outcome::Unknown);
    assert_eq!(run.state.pauses().count(), 1);
}

#[test]
fn an_unknown_outcome_is_repeated_by_default_only_where_that_is_safe() {
    for (kind, config, is_safe) in [
        ("note", json!({ "text": "x" }), true),
        ("http_request", json!({ "method": "GET", "url": "https://example.com" }), true),
        ("http_request", json!({ "method": "PUT", "url": "https://example.com" }), true),
        ("http_request", json!({ "method": "POST", "url": "https://example.com" }), false),
        ("http_request", json!({ "method": "PATCH", "url": "https://example.com" }), false),
        ("function", json!({ "function_id": 1 }), false),
    ] {
        let program = program(json!([start(), node("a", kind, config)]), &["start>a"], json!([]));
        let mut run = Run::start(&program, json!({}));
        run.finish("a", Outcome::Unknown);
        assert_eq!(!run.open.is_empty(), is_safe, "{kind}");
    }
}

#[test]
fn a_question_saves_its_answer_and_goes_by_its_choice() {
    let ask = json!({ "text": "?", "expects": "choice", "save_to": "size", "choices": [{ "id": "s", "title": "S" }, { "id": "l", "title": "L" }] });
    let program = program(
        json!([
            start(),
            node("q", "ask", ask),
            note("small", "{{ $flow.size }}"),
            note("any", "{{ $flow.size }}")
        ]),
        &["start>q", "q.s>small", "q>any"],
        json!([{ "name": "size", "type": "text" }]),
    );
    let mut run = Run::start(&program, json!({}));
    run.port("q", "s", json!({ "value": "s", "raw": "S" }));
    assert_eq!((run.open(), &run.open[0].config["text"]), (vec!["small"], &json!("s")));
    // A choice without an edge goes on at `next`; a timeout without one ends the branch.
    let mut run = Run::start(&program, json!({}));
    run.port("q", "l", json!({ "value": "l", "raw": "L" }));
    assert_eq!(run.open(), ["any"]);
    let mut run = Run::start(&program, json!({}));
    run.port("q", "timeout", Value::Null);
    assert_eq!(run.output(), &Value::Null);
}

#[test]
fn a_cycle_ends_at_the_limit_of_steps() {
    let nodes = json!([
        start(),
        node("wait", "delay", json!({ "days": 1 })),
        node("back", "jump", json!({ "node_id": "wait" }))
    ]);
    let program = program(nodes, &["start>wait", "wait>back"], json!([]));
    let mut run = Run::start(&program, json!({}));
    for _ in 0..4_999 {
        run.done("wait", Value::Null);
    }
    run.done("wait", Value::Null);
    assert_eq!(run.fault().1, "step_limit");
}

#[test]
fn an_end_ends_all_branches() {
    let nodes = json!([
        start(),
        node("fork", "parallel", json!({ "branches": [{ "id": "x" }, { "id": "y" }] })),
        note("a", "x"),
        node("stop", "end", json!({ "output": { "who": "{{ $contact.$name }}" } })),
    ]);
    let program = program(nodes, &["start>fork", "fork.x>a", "fork.y>stop"], json!([]));
    let run = Run::start(&program, json!({}));
    assert_eq!(run.output(), &json!({ "who": "Ana" }));
    assert!(!run.state.is_busy());
}

#[test]
fn a_join_gives_the_outputs_of_its_branches() {
    let nodes = |join: Value| {
        json!([
            start(),
            node("fork", "parallel", json!({ "branches": [{ "id": "x" }, { "id": "y" }, { "id": "z" }] })),
            note("a", "x"),
            note("b", "x"),
            note("c", "x"),
            node("meet", "join", join),
            note("after", "{{ $nodes.meet.output.branches.a }}"),
        ])
    };
    let edges =
        ["start>fork", "fork.x>a", "fork.y>b", "fork.z>c", "a>meet", "b>meet", "c>meet", "meet>after"];
    let all = program(nodes(json!({})), &edges, json!([]));
    let mut run = Run::start(&all, json!({}));
    run.done("c", json!(3));
    run.done("a", json!({ "n": 1 }));
    run.done("b", json!("two"));
    assert_eq!(run.open[0].config["text"], json!({ "n": 1 }));
    run.done("after", Value::Null);
    let timed = program(nodes(json!({ "timeout_seconds": 60 })), &edges, json!([]));
    let mut run = Run::start(&timed, json!({}));
    run.done("b", json!("two"));
    // The time is over: the output has the branches that have arrived.
    run.port("meet", "timeout", Value::Null);
    assert_eq!(run.output(), &json!({ "arrived": 1, "branches": { "b": "two" } }));
}

#[test]
fn a_join_in_a_loop_gives_the_outputs_of_its_iteration() {
    let nodes = json!([
        start(),
        node("each", "for_each", json!({ "list": [1, 2] })),
        node("fork", "parallel", json!({ "branches": [{ "id": "x" }, { "id": "y" }] })),
        node("a", "transform", json!({ "fields": { "value": "{{ $loop.item }}" } })),
        node("b", "transform", json!({ "fields": { "value": "{{ $loop.item * 10 }}" } })),
        node("meet", "join", json!({})),
    ]);
    let edges = ["start>each", "each.each>fork", "fork.x>a", "fork.y>b", "a>meet", "b>meet"];
    let program = program(nodes, &edges, json!([]));
    let run = Run::start(&program, json!({}));
    let results = run.output();
    assert_eq!(results["results"][1]["branches"]["b"]["data"]["value"], json!(20), "{results}");
}
