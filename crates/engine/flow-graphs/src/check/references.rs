//! Checks of expressions: whether they can be understood, and whether what they read can be there.

use super::{Findings, IssueCode, node_param};
use crate::graph::{Graph, Node};
use crate::index::{Index, Place};
use crate::nodes::NodeType;
use expressions::{Condition, Mistake, Path, Roots, Step, Template};
use input::nearest;
use serde_json::Value;
use std::collections::BTreeSet;

/// The roots that expressions of flows can read.
pub const ROOTS: Roots<'static> = Roots::new(&[
    "contact",
    "trigger",
    "input",
    "vars",
    "flow",
    "nodes",
    "loop",
    "conversation",
    "message",
    "agent",
    "run",
    "error",
    "now",
])
.keyed(&["vars"])
.bare();

pub(super) fn check(graph: &Graph, index: &Index<'_>, found: &mut Findings) {
    let dominators = index.dominators();
    let bodies: Vec<Vec<bool>> = (0..index.len())
        .filter(|place| index.node(*place).is_some_and(|node| node.kind.is_loop()))
        .map(|place| index.body(place))
        .collect();
    for (place, node) in graph.nodes.iter().enumerate() {
        let in_loop = bodies.iter().any(|body| body.get(place) == Some(&true));
        let mut reader = Reader { graph, index, dominators: &dominators, place, node, in_loop, found };
        for Written { setting, is_condition, paths } in written(node) {
            let param = format!("{}.config.{setting}", node_param(place));
            // The filters of these read an event or an element of their own.
            let reads_own = is_condition && matches!(node.kind, NodeType::WaitForEvent | NodeType::Transform);
            match paths {
                Ok(paths) => reader.paths(&paths, &param, reads_own),
                Err(mistake) => reader.mistake(mistake, &param),
            }
        }
    }
}

/// A variable of the workspace that a setting of a node reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableUse<'a> {
    /// The id of the node.
    pub node_id: &'a str,
    /// The path of the setting, such as `text` or `headers.Authorization`.
    pub setting: String,
    /// The place in the graph, such as `nodes[3].config.text`.
    pub param: String,
    /// The key of the variable.
    pub key: String,
}

/// Returns the variables of the workspace that the nodes of a graph read, each once for a setting.
pub fn variables(graph: &Graph) -> Vec<VariableUse<'_>> {
    let mut all: Vec<VariableUse<'_>> = Vec::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        for Written { setting, paths, .. } in written(node) {
            let keys: BTreeSet<String> = paths.into_iter().flatten().filter_map(key).collect();
            let param = format!("{}.config.{setting}", node_param(place));
            all.extend(keys.into_iter().map(|key| VariableUse {
                node_id: &node.id,
                setting: setting.clone(),
                param: param.clone(),
                key,
            }));
        }
    }
    all
}

/// The key of the variable of the workspace that a path reads.
fn key(path: Path) -> Option<String> {
    match path.steps.into_iter().next() {
        Some(Step::Name(key)) if path.root == "vars" => Some(key),
        _ => None,
    }
}

/// A setting that is an expression, or has some.
struct Written {
    /// Its path.
    setting: String,
    is_condition: bool,
    /// What it reads, or why it cannot be understood.
    paths: Result<Vec<Path>, Mistake>,
}

/// Returns the settings of a node that are expressions or texts.
fn written(node: &Node) -> Vec<Written> {
    let mut found = Vec::new();
    for (name, value) in node.config.iter().filter(|(name, _)| !node.kind.is_verbatim(name)) {
        read(node.kind, name, value, name.clone(), &mut found);
    }
    found
}

/// Reads a setting. `name` is its path with `[]` for the elements of lists, as the table of types has it.
fn read(kind: NodeType, name: &str, value: &Value, setting: String, found: &mut Vec<Written>) {
    let owned = |paths: Vec<&Path>| paths.into_iter().cloned().collect();
    if kind.is_condition(name) {
        let paths = Condition::parse(value, &ROOTS).map(|condition| owned(condition.references()));
        found.push(Written { setting, is_condition: true, paths });
        return;
    }
    match value {
        Value::String(text) => {
            let paths = Template::parse(text, &ROOTS).map(|template| owned(template.references()));
            found.push(Written { setting, is_condition: false, paths });
        }
        Value::Array(elements) => {
            for (place, element) in elements.iter().enumerate() {
                read(kind, &format!("{name}[]"), element, format!("{setting}[{place}]"), found);
            }
        }
        Value::Object(members) => {
            for (member, value) in members {
                read(kind, &format!("{name}.{member}"), value, format!("{setting}.{member}"), found);
            }
        }
        _ => {}
    }
}

struct Reader<'a> {
    graph: &'a Graph,
    index: &'a Index<'a>,
    dominators: &'a [Vec<bool>],
    place: Place,
    node: &'a Node,
    in_loop: bool,
    found: &'a mut Findings,
}

impl Reader<'_> {
    fn mistake(&mut self, mistake: Mistake, param: &str) {
        let error = mistake.of_param(param);
        let message = format!("The expression {}.", error.message);
        self.found.error_at(IssueCode::InvalidExpression, &self.node.id, error.param, message);
    }

    fn paths(&mut self, paths: &[Path], param: &str, reads_own: bool) {
        for path in paths {
            match path.root.as_str() {
                "nodes" => self.node_reference(path, param),
                "flow" => self.variable_reference(path, param),
                "loop" if !self.in_loop && !reads_own => {
                    let message = format!("`{path}` can be read in the body of a loop only.");
                    self.found.error_at(IssueCode::UnknownReference, &self.node.id, param, message);
                }
                _ => {}
            }
        }
    }

    fn variable_reference(&mut self, path: &Path, param: &str) {
        let Some(Step::Name(name)) = path.steps.first() else { return };
        let names = || self.graph.variables.iter().map(|variable| variable.name.as_str());
        if names().any(|known| known == name) {
            return;
        }
        let near = nearest(name, names()).map(|near| format!(" Did you mean `$flow.{near}`?"));
        let message = format!("The flow has no variable `{name}`.{}", near.unwrap_or_default());
        self.found.error_at(IssueCode::UnknownReference, &self.node.id, param, message);
    }

    fn node_reference(&mut self, path: &Path, param: &str) {
        let Some(Step::Name(id)) = path.steps.first() else {
            let message = "`$nodes` is followed by the id of a node: `$nodes.greet.output`.";
            self.found.error_at(IssueCode::UnknownReference, &self.node.id, param, message);
            return;
        };
        let Some(read) = self.index.place(id) else {
            let ids = self.graph.nodes.iter().map(|node| node.id.as_str());
            let near = nearest(id, ids).map(|near| format!(" Did you mean `$nodes.{near}`?"));
            let message = format!("There is no node `{id}`.{}", near.unwrap_or_default());
            self.found.error_at(IssueCode::UnknownReference, &self.node.id, param, message);
            return;
        };
        let behind: Vec<Place> = self.index.successors(read).iter().map(|(_, to)| *to).collect();
        if self.index.reachable(&behind, |_| true).get(self.place) != Some(&true) {
            let message = format!("`{id}` cannot have run before `{}`.", self.node.id);
            self.found.error_at(IssueCode::NeverRunBefore, &self.node.id, param, message);
            return;
        }
        let always = self.dominators.get(self.place).and_then(|all| all.get(read));
        if always != Some(&true) {
            let message = format!(
                "`{id}` has not run on every way to `{}`. There its output is missing.",
                self.node.id
            );
            self.found.warning_at(IssueCode::MayNotHaveRun, &self.node.id, param, message);
        }
    }
}
