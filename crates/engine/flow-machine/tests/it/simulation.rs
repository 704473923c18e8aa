//! Test runs.

use crate::support::{node, program, values};
use flow_machine::{Ending, Simulation};
use serde_json::{Value, json};

#[test]
fn a_test_run_takes_answers_and_acts_on_nothing() {
    let ask = json!({ "text": "Which size?", "expects": "choice", "save_to": "size",
        "choices": [{ "id": "small", "title": "Small one" }, { "id": "large", "title": "Large one" }] });
    let mut priced = node("price", "http_request", json!({ "url": "https://shop.example/{{ $flow.size }}" }));
    priced["pinned_output"] = json!({ "body": { "cents": 1290 } });
    let nodes = json!([
        { "id": "start", "type": "trigger" },
        node("size", "ask", ask),
        priced,
        node("later", "delay", json!({ "days": 3 })),
        node("tell", "send_message", json!({ "text": "It is {{ $nodes.price.output.body.cents / 100 }} €." })),
        node("sorry", "send_message", json!({ "text": "Sorry." })),
    ]);
    let edges = ["start>size", "size>price", "size.invalid>sorry", "price>later", "later>tell"];
    let program = program(nodes, &edges, json!([{ "name": "size", "type": "text" }]));
    let run = |replies: &[&str]| {
        let simulation = Simulation { replies: replies.iter().map(|reply| (*reply).to_owned()).collect() };
        simulation.run(&program, &json!({}), &values(json!({})))
    };
    let (steps, ending) = run(&["large ONE"]);
    let seen: Vec<(&str, &str)> =
        steps.iter().map(|step| (step.node_id.as_str(), step.port.as_str())).collect();
    assert_eq!(seen, [("size", "large"), ("price", "next"), ("later", "next"), ("tell", "next")]);
    assert_eq!(steps[1].input["url"], "https://shop.example/large");
    assert_eq!(steps[3].input["text"], "It is 12.9 €.");
    assert_eq!(ending, Some(Ending::Completed { output: json!({ "simulated": true }) }));
    assert_eq!(run(&["medium"]).0[1].node_id, "sorry");
    let (steps, ending) = run(&[]);
    assert_eq!(
        (steps.len(), steps[0].port.as_str(), ending),
        (1, "timeout", Some(Ending::Completed { output: Value::Null }))
    );
}

#[test]
fn replies_of_a_test_run_are_checked_as_those_of_contacts() {
    let asked = |expects: &str, replies: &[&str]| {
        let ask = json!({ "text": "?", "expects": expects, "save_to": "said", "retries": 1 });
        let nodes = json!([{ "id": "start", "type": "trigger" }, node("q", "ask", ask)]);
        let program = program(nodes, &["start>q"], json!([{ "name": "said", "type": "text" }]));
        let simulation = Simulation { replies: replies.iter().map(|reply| (*reply).to_owned()).collect() };
        let (steps, _) = simulation.run(&program, &json!({}), &values(json!({})));
        (steps[0].port.clone(), steps[0].output["value"].clone())
    };
    let next = |value: Value| ("next".to_owned(), value);
    let invalid = || ("invalid".to_owned(), Value::Null);
    assert_eq!(asked("number", &["12,5"]), next(json!(12.5)));
    assert_eq!(asked("number", &["many"]), invalid());
    // The question is repeated once.
    assert_eq!(asked("number", &["many", "7"]), next(json!(7)));
    assert_eq!(asked("number", &["many", "more", "7"]), invalid());
    assert_eq!(asked("email", &["Ana@Example.com"]), next(json!("ana@example.com")));
    assert_eq!(asked("email", &["ana"]), invalid());
    assert_eq!(asked("date", &["24.12.2026"]), next(json!("2026-12-24")));
    assert_eq!(asked("phone", &["+34 600 000 000"]), next(json!("+34600000000")));
    assert_eq!(asked("phone", &["call me"]), invalid());
    assert_eq!(asked("file", &["photo.jpg"]), next(json!("photo.jpg")));
}

#[test]
fn a_join_with_a_timeout_waits_for_its_branches_in_a_test_run() {
    let nodes = json!([
        { "id": "start", "type": "trigger" },
        node("fork", "parallel", json!({ "branches": [{ "id": "x" }, { "id": "y" }] })),
        node("a", "note", json!({ "text": "a" })),
        node("later", "delay", json!({ "days": 3 })),
        node("b", "note", json!({ "text": "b" })),
        node("meet", "join", json!({ "timeout_seconds": 60 })),
    ]);
    let edges = ["start>fork", "fork.x>a", "fork.y>later", "later>b", "a>meet", "b>meet"];
    let program = program(nodes, &edges, json!([]));
    let (_, ending) = Simulation::default().run(&program, &json!({}), &values(json!({})));
    let Some(Ending::Completed { output }) = ending else { panic!("{ending:?}") };
    assert_eq!(output["arrived"], 2, "{output}");
}
