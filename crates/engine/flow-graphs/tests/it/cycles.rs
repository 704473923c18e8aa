//! Cycles and loops, also of graphs that are drawn at random.

use crate::{errors, graph, issues, node, start};
use flow_graphs::{Anything, Graph, IssueCode, check};
use proptest::prelude::*;
use serde_json::{Value, json};

fn note(id: &str) -> Value {
    node(id, "note", json!({ "text": "x" }))
}

#[test]
fn a_cycle_needs_a_node_that_waits() {
    let nodes = |middle: Value| json!([start(), note("a"), middle]);
    let edges = ["start>a", "a>b", "b>a"];
    for middle in [
        note("b"),
        node("b", "delay", json!({ "seconds": 0 })),
        json!({ "id": "b", "type": "delay", "config": { "days": 1 }, "disabled": true }),
    ] {
        let found = errors(&graph(nodes(middle), &edges));
        assert!(found.contains(&"error unbounded_cycle nodes[1]".to_owned()), "{found:?}");
    }
    assert_eq!(errors(&graph(nodes(node("b", "delay", json!({ "days": 1 }))), &edges)), Vec::<String>::new());
    // A jump is an edge.
    let jumping = json!([start(), note("a"), node("b", "jump", json!({ "node_id": "a" }))]);
    assert_eq!(errors(&graph(jumping, &["start>a", "a>b"])), ["error unbounded_cycle nodes[1]"]);
    // A loop whose end leads to itself.
    let looped = json!([start(), node("each", "for_each", json!({ "list": [] })), note("a")]);
    assert_eq!(
        errors(&graph(looped, &["start>each", "each.each>a", "each>each"])),
        ["error unbounded_cycle nodes[1]"]
    );
}

#[test]
fn the_body_of_a_loop_is_its_own() {
    let each = |id: &str| node(id, "for_each", json!({ "list": [] }));
    let nodes = json!([start(), each("each"), note("a"), note("b"), note("after")]);
    let fine = ["start>each", "each.each>a", "a>b", "each>after"];
    assert_eq!(issues(&graph(nodes.clone(), &fine)), Vec::<String>::new());
    assert_eq!(
        errors(&graph(nodes.clone(), &["start>each", "each.each>a", "a>b", "each>after", "after>b"])),
        ["error crosses_loop nodes[3]"]
    );
    assert_eq!(
        errors(&graph(nodes, &["start>each", "each.each>a", "a>after", "each>after"])),
        ["error crosses_loop nodes[4]"]
    );
    let depth = 40;
    let mut nodes = vec![start()];
    let mut edges = vec!["start>l0".to_owned()];
    for level in 0..depth {
        nodes.push(each(&format!("l{level}")));
        edges.push(format!("l{level}.each>l{}", level + 1));
    }
    nodes.push(note(&format!("l{depth}")));
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let found = errors(&graph(json!(nodes), &edges));
    assert_eq!(found.len(), depth - 5, "{found:?}");
    assert!(found.iter().all(|issue| issue.contains("too_deep")));
}

/// Whether a cycle of the graph has no delay, by following all ways from each node.
fn has_unbounded_cycle(graph: &Graph) -> bool {
    let waits =
        |id: &str| graph.nodes.iter().any(|node| node.id == id && node.kind == flow_graphs::NodeType::Delay);
    graph.nodes.iter().filter(|node| !waits(&node.id)).any(|node| {
        let mut seen = std::collections::BTreeSet::new();
        let mut open = vec![node.id.as_str()];
        while let Some(at) = open.pop() {
            for edge in graph.edges.iter().filter(|edge| edge.from == at && !waits(&edge.to)) {
                if edge.to == node.id {
                    return true;
                }
                if seen.insert(edge.to.as_str()) {
                    open.push(&edge.to);
                }
            }
        }
        false
    })
}

proptest! {
    #[test]
    fn cycles_are_found_as_a_naive_search_finds_them(
        kinds in proptest::collection::vec(any::<bool>(), 1..12),
        edges in proptest::collection::vec((0_usize..12, 0_usize..12), 0..24),
    ) {
        let mut nodes = vec![start()];
        for (number, waits) in kinds.iter().enumerate() {
            let id = format!("n{number}");
            nodes.push(if *waits { node(&id, "delay", json!({ "days": 1 })) } else { note(&id) });
        }
        let edges: Vec<String> = edges
            .iter()
            .map(|(from, to)| format!("n{}>n{}", from % kinds.len(), to % kinds.len()))
            .chain(["start>n0".to_owned()])
            .collect();
        let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
        let graph = graph(json!(nodes), &edges);
        let found = check(&graph, &Anything).iter().any(|issue| issue.code == IssueCode::UnboundedCycle);
        prop_assert_eq!(found, has_unbounded_cycle(&graph));
    }
}

#[test]
fn the_largest_flow_is_checked() {
    let mut nodes = vec![start()];
    let mut edges = vec!["start>n0".to_owned()];
    for number in 0..499 {
        nodes.push(node(
            &format!("n{number}"),
            "note",
            json!({ "text": "{{ $contact.$name }} {{ $nodes.start.output }}" }),
        ));
        edges.push(format!("n{number}>n{}", number + 1));
    }
    edges.pop();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    assert_eq!(issues(&graph(json!(nodes), &edges)), Vec::<String>::new());
}
