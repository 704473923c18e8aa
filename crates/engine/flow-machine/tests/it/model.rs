//! Flows that are drawn at random do what a naive interpreter of their structure does, in whatever order their tasks end.

use crate::support::{Run, node, program};
use flow_machine::Outcome;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A part of a flow.
#[derive(Debug, Clone)]
enum Part {
    /// A node that acts.
    Act,
    /// A node that adds 1 to the variable `n`.
    Count,
    /// A node that fails for good: its way of errors follows, and then what comes after it.
    Rescue(Vec<Part>),
    /// A node that fails and goes on.
    Shrug,
    /// A condition of this value.
    If(bool, Vec<Part>, Vec<Part>),
    /// A loop over so many elements, so many at a time.
    Each(u8, u8, Vec<Part>),
    /// Branches that come together.
    Fork(Vec<Vec<Part>>),
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let leaf = prop_oneof![3 => Just(Part::Act), 1 => Just(Part::Count), 1 => Just(Part::Shrug)];
    let part = leaf.prop_recursive(3, 20, 4, |inner| {
        let list = || proptest::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            list().prop_map(Part::Rescue),
            (any::<bool>(), list(), list()).prop_map(|(holds, yes, no)| Part::If(holds, yes, no)),
            (0_u8..4, 1_u8..4, list()).prop_map(|(count, parallel, body)| Part::Each(count, parallel, body)),
            proptest::collection::vec(list(), 2..4).prop_map(Part::Fork),
        ]
    });
    proptest::collection::vec(part, 1..6)
}

/// Draws a flow, and notes what its nodes should do.
#[derive(Default)]
struct Drawing {
    nodes: Vec<Value>,
    edges: Vec<String>,
}

type Exits = Vec<(String, String)>;

impl Drawing {
    fn add(&mut self, kind: &str, config: Value, from: &Exits) -> String {
        let id = format!("n{}", self.nodes.len());
        self.nodes.push(node(&id, kind, config));
        self.edges.extend(from.iter().map(|(from, port)| format!("{from}.{port}>{id}")));
        id
    }

    /// Draws parts behind these exits, and gives the exits of the last.
    fn draw(&mut self, parts: &[Part], mut from: Exits) -> Exits {
        let exit = |id: &str, port: &str| (id.to_owned(), port.to_owned());
        for part in parts {
            from = match part {
                Part::Act => vec![exit(&self.add("note", json!({ "text": "act" }), &from), "next")],
                Part::Count => {
                    let config = json!({ "assignments": [{ "name": "n", "op": "increment" }] });
                    vec![exit(&self.add("set_variables", config, &from), "next")]
                }
                Part::Shrug => {
                    let id = self.add("note", json!({ "text": "fail" }), &from);
                    self.nodes.last_mut().unwrap()["on_error"] = json!("continue");
                    vec![exit(&id, "next")]
                }
                Part::Rescue(rescue) => {
                    let id = self.add("note", json!({ "text": "fail" }), &from);
                    self.nodes.last_mut().unwrap()["on_error"] = json!("branch");
                    // Without a node on the way of errors there is no such way.
                    let first = self.add("note", json!({ "text": "act" }), &vec![exit(&id, "error")]);
                    self.draw(rescue, vec![exit(&first, "next")])
                }
                Part::If(holds, yes, no) => {
                    let id = self.add("condition", json!({ "if": holds.to_string() }), &from);
                    let mut exits = self.draw(yes, vec![exit(&id, "true")]);
                    exits.extend(self.draw(no, vec![exit(&id, "false")]));
                    exits
                }
                Part::Each(count, parallel, body) => {
                    let list: Vec<u8> = (0..*count).collect();
                    let id = self.add("for_each", json!({ "list": list, "parallel": parallel }), &from);
                    self.draw(body, vec![exit(&id, "each")]);
                    vec![exit(&id, "next")]
                }
                Part::Fork(branches) => {
                    let ids: Vec<Value> =
                        (0..branches.len()).map(|number| json!({ "id": format!("b{number}") })).collect();
                    let id = self.add("parallel", json!({ "branches": ids }), &from);
                    let mut exits = Vec::new();
                    for (number, branch) in branches.iter().enumerate() {
                        exits.extend(self.draw(branch, vec![exit(&id, &format!("b{number}"))]));
                    }
                    vec![exit(&self.add("join", json!({}), &exits), "next")]
                }
            };
        }
        from
    }
}

/// How often tasks act and fail, and how often the variable is counted up.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Tally {
    acts: u64,
    fails: u64,
    counts: u64,
}

fn expected(parts: &[Part]) -> Tally {
    let mut tally = Tally::default();
    let mut add = |other: Tally, times: u64| {
        tally.acts += other.acts * times;
        tally.fails += other.fails * times;
        tally.counts += other.counts * times;
    };
    for part in parts {
        match part {
            Part::Act => add(Tally { acts: 1, ..Tally::default() }, 1),
            Part::Count => add(Tally { counts: 1, ..Tally::default() }, 1),
            Part::Shrug => add(Tally { fails: 1, ..Tally::default() }, 1),
            Part::Rescue(rescue) => {
                add(Tally { fails: 1, acts: 1, ..Tally::default() }, 1);
                add(expected(rescue), 1);
            }
            Part::If(holds, yes, no) => add(expected(if *holds { yes } else { no }), 1),
            Part::Each(count, _, body) => add(expected(body), u64::from(*count)),
            Part::Fork(branches) => branches.iter().for_each(|branch| add(expected(branch), 1)),
        }
    }
    tally
}

proptest! {
    #[test]
    fn every_effect_is_there_once(parts in parts(), order in proptest::collection::vec(any::<u32>(), 64)) {
        let mut drawing = Drawing::default();
        drawing.nodes.push(json!({ "id": "start", "type": "trigger" }));
        drawing.draw(&parts, vec![("start".to_owned(), "next".to_owned())]);
        let edges: Vec<&str> = drawing.edges.iter().map(String::as_str).collect();
        let variables = json!([{ "name": "n", "type": "number", "default": 0 }]);
        let program = program(json!(drawing.nodes), &edges, variables);

        let mut run = Run::start(&program, json!({}));
        let mut seen: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut tally = Tally::default();
        let mut turn = 0;
        while !run.open.is_empty() {
            let choice = order[turn % order.len()];
            turn += 1;
            let task = run.open[choice as usize % run.open.len()].clone();
            run.open.retain(|other| other.token != task.token);
            // Some attempts fail for a moment first.
            let outcome = if choice % 5 == 0 && task.attempt == 1 {
                Outcome::Failed { code: "timeout".into(), message: String::new(), is_transient: true, retry_after: None }
            } else {
                *seen.entry((task.node.clone(), task.path.clone())).or_default() += 1;
                if task.config["text"] == "fail" {
                    tally.fails += 1;
                    Outcome::Failed { code: "broken".into(), message: String::new(), is_transient: false, retry_after: None }
                } else {
                    tally.acts += 1;
                    Outcome::done(json!(turn))
                }
            };
            let again = program.finish(&mut run.state, task.token, outcome, &run.values);
            run.open.extend(again);
            run.advance();
        }
        tally.counts = run.state.variables["n"].as_u64().unwrap();
        prop_assert!(matches!(run.state.ending, Some(flow_machine::Ending::Completed { .. })), "{:?}", run.state);
        prop_assert_eq!(tally, expected(&parts));
        prop_assert!(seen.values().all(|times| *times == 1), "{:?}", seen);
    }
}
