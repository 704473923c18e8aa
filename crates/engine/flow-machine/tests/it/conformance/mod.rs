//! What the public conformance suite of the Serverless Workflow specification asks of a runtime (`ctk/features`: do, flow, set,
//! switch, for, branch, try, raise), said anew for our nodes. Each row is a flow, its input, and what has to come of it.

mod errors;
mod loops;
mod sequences;
mod ways;

use crate::support::{node, program, values};
use flow_machine::{ComputedStep, Ending, Outcome, Program, State, Task};
use serde_json::{Value, json};

/// What has to come of a run.
enum Expect {
    /// It is completed with this output.
    Output(Value),
    /// It is completed, and its variables are these.
    Variables(Value),
    /// An `end` node says that it has failed.
    Failed(Value),
    /// A node failed: its id, and the code.
    Fault(&'static str, &'static str),
    /// The nodes were executed in this order.
    Order(&'static [&'static str]),
}

struct Case {
    name: &'static str,
    nodes: Vec<Value>,
    edges: &'static [&'static str],
    variables: Value,
    input: Value,
    expect: Expect,
}

fn case(
    name: &'static str,
    nodes: Vec<Value>,
    edges: &'static [&'static str],
    input: Value,
    expect: Expect,
) -> Case {
    let variables = json!([
        { "name": "colors", "type": "list" }, { "name": "indexes", "type": "list" }, { "name": "n", "type": "number", "default": 0 },
        { "name": "a", "type": "text", "default": "1" }, { "name": "b", "type": "text", "default": "2" },
    ]);
    Case { name, nodes, edges, variables, input, expect }
}

/// A node that appends a colour.
fn paint(id: &str, color: &str) -> Value {
    set(id, json!([{ "name": "colors", "op": "append", "value": color }]))
}

fn set(id: &str, assignments: Value) -> Value {
    node(id, "set_variables", json!({ "assignments": assignments }))
}

/// A node that gives an object.
fn give(id: &str, fields: Value) -> Value {
    node(id, "transform", json!({ "fields": fields }))
}

/// A node that acts. Its text is its outcome: `fail CODE`, `flaky CODE TIMES`, `lost`, or the output.
fn act(id: &str, outcome: &str) -> Value {
    node(id, "note", json!({ "text": outcome }))
}

/// The same node with further members.
fn with(mut node: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        node[name] = value.clone();
    }
    node
}

fn end(id: &str, config: Value) -> Value {
    node(id, "end", config)
}

fn fork(id: &str, branches: &[&str]) -> Value {
    let branches: Vec<Value> = branches.iter().map(|branch| json!({ "id": branch })).collect();
    node(id, "parallel", json!({ "branches": branches }))
}

fn colors(id: &str) -> Value {
    end(id, json!({ "output": "{{ $flow.colors }}" }))
}

/// How a run went.
struct Gone {
    state: State,
    /// The nodes in the order in which they were executed, with their iterations.
    order: Vec<String>,
    /// The delays of further attempts.
    delays: Vec<u64>,
}

/// Executes a flow. Of several tasks that are open, the newest is carried out first, or the oldest.
fn run(program: &Program, input: &Value, newest_first: bool) -> Gone {
    let values = values(input.clone());
    let mut gone = Gone { state: program.start(input), order: Vec::new(), delays: Vec::new() };
    let mut open: Vec<Task> = Vec::new();
    for _ in 0..1_000 {
        let mut trace: Vec<ComputedStep> = Vec::new();
        let tasks = program.advance_traced(&mut gone.state, &values, &mut trace);
        gone.order.extend(trace.into_iter().map(|step| at(&step.path, &step.node)));
        open.extend(tasks);
        open.retain(|task| gone.state.has(task.token));
        if open.is_empty() || gone.state.ending.is_some() {
            return gone;
        }
        let task = if newest_first { open.remove(open.len() - 1) } else { open.remove(0) };
        gone.order.push(at(&task.path, &task.node));
        let again = program.finish(&mut gone.state, task.token, outcome(&task), &values);
        gone.delays.extend(again.iter().map(|task| task.delay_seconds));
        open.extend(again);
    }
    panic!("the run does not end");
}

fn at(path: &str, node: &str) -> String {
    if path.is_empty() { node.to_owned() } else { format!("{path}.{node}") }
}

fn outcome(task: &Task) -> Outcome {
    let text = task.config["text"].as_str().unwrap_or_default();
    let words: Vec<&str> = text.split(' ').collect();
    let failed = |code: &str| Outcome::Failed {
        code: code.to_owned(),
        message: "It failed.".to_owned(),
        is_transient: code.starts_with("http_5"),
        retry_after: None,
    };
    match words.as_slice() {
        ["fail", code] => failed(code),
        ["flaky", code, times] if task.attempt <= times.parse().unwrap() => failed(code),
        ["lost"] => Outcome::Unknown,
        _ => Outcome::done(task.config["text"].clone()),
    }
}

fn check(case: &Case) {
    let mut nodes = vec![json!({ "id": "start", "type": "trigger" })];
    nodes.extend(case.nodes.clone());
    let program = program(json!(nodes), case.edges, case.variables.clone());
    for newest_first in [false, true] {
        let Gone { state, order, .. } = run(&program, &case.input, newest_first);
        let order: Vec<&str> = order.iter().map(String::as_str).collect();
        let name = case.name;
        match (&case.expect, &state.ending) {
            (Expect::Output(wanted), Some(Ending::Completed { output })) => {
                assert_eq!(output, wanted, "{name}");
            }
            (Expect::Failed(wanted), Some(Ending::Failed { output })) => assert_eq!(output, wanted, "{name}"),
            (Expect::Variables(wanted), Some(Ending::Completed { .. })) => {
                for (variable, value) in wanted.as_object().unwrap() {
                    assert_eq!(&state.variables[variable], value, "{name}: {variable}");
                }
            }
            (Expect::Fault(node, code), Some(Ending::Fault(fault))) => {
                assert_eq!((fault.node_id.as_str(), fault.code.as_str()), (*node, *code), "{name}");
            }
            (Expect::Order(wanted), Some(Ending::Completed { .. })) => assert_eq!(&order, wanted, "{name}"),
            (_, ending) => panic!("{name}: {ending:?} after {order:?}"),
        }
    }
}
