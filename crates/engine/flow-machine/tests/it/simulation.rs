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
