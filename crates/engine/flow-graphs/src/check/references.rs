//! Checks of expressions: whether they can be understood, and whether what they read can be there.

use super::{Findings, IssueCode, node_param};
use crate::graph::{Graph, Node};
use crate::index::{Index, Place};
use crate::nodes::NodeType;
use expressions::{Condition, Mistake, Path, Roots, Step, Template};
use input::nearest;
use serde_json::Value;

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
        let param = format!("{}.config", node_param(place));
        for (name, value) in &node.config {
            if !node.kind.is_verbatim(name) {
                reader.setting(name, value, &format!("{param}.{name}"));
            }
        }
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
    /// Checks a setting. `name` is its path within the settings, with `[]` for the elements of lists.
    fn setting(&mut self, name: &str, value: &Value, param: &str) {
        if self.node.kind.is_condition(name) {
            // The filters of these read an event or an element of their own.
            let reads_own = matches!(self.node.kind, NodeType::WaitForEvent | NodeType::Transform);
            match Condition::parse(value, &ROOTS) {
                Ok(condition) => self.paths(&condition.references(), param, reads_own),
                Err(mistake) => self.mistake(mistake, param),
            }
            return;
        }
        match value {
            Value::String(text) => match Template::parse(text, &ROOTS) {
                Ok(template) => self.paths(&template.references(), param, false),
                Err(mistake) => self.mistake(mistake, param),
            },
            Value::Array(elements) => {
                for (place, element) in elements.iter().enumerate() {
                    self.setting(&format!("{name}[]"), element, &format!("{param}[{place}]"));
                }
            }
            Value::Object(members) => {
                for (member, value) in members {
                    self.setting(&format!("{name}.{member}"), value, &format!("{param}.{member}"));
                }
            }
            _ => {}
        }
    }

    fn mistake(&mut self, mistake: Mistake, param: &str) {
        let error = mistake.of_param(param);
        let message = format!("The expression {}.", error.message);
        self.found.error_at(IssueCode::InvalidExpression, &self.node.id, error.param, message);
    }

    fn paths(&mut self, paths: &[&Path], param: &str, reads_own: bool) {
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
