//! A graph, compiled: the expressions are parsed and the ways are known.

use expressions::{Condition, Failure, Mistake, Path, Roots, Step, Template};
use flow_graphs::{Edge, Graph, Index, Node, NodeType};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// A compiled graph. It is the same for all runs of a version.
#[derive(Debug)]
pub struct Program {
    pub(crate) graph: Graph,
    places: HashMap<String, usize>,
    settings: Vec<Setting>,
    conditions: Vec<HashMap<String, Condition>>,
    successors: Vec<Vec<(String, usize)>>,
    /// Which nodes can be reached from each, over at least one edge.
    reach: Vec<Vec<bool>>,
}

/// A setting with its templates.
#[derive(Debug)]
enum Setting {
    Plain(Value),
    Template(Template),
    /// A condition that is evaluated later, by whoever has the event that it is about.
    Later(Value, Vec<Path>),
    List(Vec<Setting>),
    Object(Vec<(String, Setting)>),
}

impl Program {
    /// Compiles a graph that [`flow_graphs::check()`] accepts.
    ///
    /// # Errors
    /// The first expression that cannot be understood, with its path.
    pub fn compile(graph: Graph) -> Result<Self, Mistake> {
        let index = Index::new(&graph);
        let successors: Vec<Vec<(String, usize)>> = (0..index.len())
            .map(|place| index.successors(place).iter().map(|(port, to)| ((*port).to_owned(), *to)).collect())
            .collect();
        let reach = successors
            .iter()
            .map(|behind| index.reachable(&behind.iter().map(|(_, to)| *to).collect::<Vec<_>>(), |_| true))
            .collect();
        let mut places = HashMap::with_capacity(graph.nodes.len());
        let (mut settings, mut conditions) = (Vec::new(), Vec::new());
        for (place, node) in graph.nodes.iter().enumerate() {
            places.insert(node.id.clone(), place);
            let mut own = HashMap::new();
            let mut members = Vec::new();
            for (name, value) in &node.config {
                members.push((name.clone(), compiled(node.kind, name, name, value, &mut own)?));
            }
            settings.push(Setting::Object(members));
            conditions.push(own);
        }
        Ok(Self { graph, places, settings, conditions, successors, reach })
    }

    pub(crate) fn node(&self, id: &str) -> Option<&Node> {
        self.places.get(id).and_then(|place| self.graph.nodes.get(*place))
    }

    pub(crate) fn trigger(&self) -> Option<&Node> {
        self.graph.nodes.iter().find(|node| node.kind == NodeType::Trigger)
    }

    /// Returns the nodes to which a port leads. A port without an edge leads where `next` does, unless it is about a failure.
    pub(crate) fn behind(&self, id: &str, port: &str) -> Vec<&str> {
        let found = self.at_port(id, port);
        if found.is_empty() && !matches!(port, Edge::ERROR | "timeout" | "invalid" | "each" | "limit") {
            return self.at_port(id, Edge::NEXT);
        }
        found
    }

    fn at_port(&self, id: &str, port: &str) -> Vec<&str> {
        let successors = self.places.get(id).and_then(|place| self.successors.get(*place));
        let leading = successors.into_iter().flatten().filter(|(name, _)| name == port);
        leading.filter_map(|(_, to)| self.graph.nodes.get(*to)).map(|node| node.id.as_str()).collect()
    }

    pub(crate) fn has_edge(&self, id: &str, port: &str) -> bool {
        !self.at_port(id, port).is_empty()
    }

    /// Returns whether a way leads from a node to another.
    pub(crate) fn leads(&self, from: &str, to: &str) -> bool {
        let (Some(from), Some(to)) = (self.places.get(from), self.places.get(to)) else { return false };
        self.reach.get(*from).and_then(|reached| reached.get(*to)) == Some(&true)
    }

    /// Computes the settings of a node.
    pub(crate) fn settings(&self, id: &str, context: &expressions::Context<'_>) -> Result<Value, Failure> {
        let setting = self.places.get(id).and_then(|place| self.settings.get(*place));
        setting.map_or(Ok(Value::Object(Map::new())), |setting| setting.value(context))
    }

    /// Returns the condition at a path of the settings of a node.
    pub(crate) fn condition(&self, id: &str, path: &str) -> Option<&Condition> {
        self.places.get(id).and_then(|place| self.conditions.get(*place)?.get(path))
    }
}

fn compiled(
    kind: NodeType,
    pattern: &str,
    path: &str,
    value: &Value,
    conditions: &mut HashMap<String, Condition>,
) -> Result<Setting, Mistake> {
    let roots: &Roots<'_> = &flow_graphs::ROOTS;
    if kind.is_condition(pattern) {
        let condition = Condition::parse(value, roots)?;
        let reads: Vec<Path> = condition.references().into_iter().cloned().collect();
        conditions.insert(path.to_owned(), condition);
        let is_later = kind == NodeType::WaitForEvent && !value.is_null();
        return Ok(if is_later {
            Setting::Later(value.clone(), reads)
        } else {
            Setting::Plain(value.clone())
        });
    }
    if kind.is_verbatim(pattern) {
        return Ok(Setting::Plain(value.clone()));
    }
    Ok(match value {
        Value::String(text) => Setting::Template(Template::parse(text, roots)?),
        Value::Array(elements) => {
            let mut list = Vec::with_capacity(elements.len());
            for (place, element) in elements.iter().enumerate() {
                let path = format!("{path}[{place}]");
                list.push(compiled(kind, &format!("{pattern}[]"), &path, element, conditions)?);
            }
            Setting::List(list)
        }
        Value::Object(members) => {
            let mut object = Vec::with_capacity(members.len());
            for (name, member) in members {
                let (pattern, path) = (format!("{pattern}.{name}"), format!("{path}.{name}"));
                object.push((name.clone(), compiled(kind, &pattern, &path, member, conditions)?));
            }
            Setting::Object(object)
        }
        plain => Setting::Plain(plain.clone()),
    })
}

impl Setting {
    fn value(&self, context: &expressions::Context<'_>) -> Result<Value, Failure> {
        match self {
            Self::Plain(value) => Ok(value.clone()),
            Self::Template(template) => template.evaluate(context)?.into_json(),
            Self::Later(condition, reads) => {
                Ok(json!({ "condition": condition, "values": read(reads, context)? }))
            }
            Self::List(elements) => elements.iter().map(|element| element.value(context)).collect(),
            Self::Object(members) => members
                .iter()
                .map(|(name, member)| Ok((name.clone(), member.value(context)?)))
                .collect::<Result<Map<_, _>, _>>()
                .map(Value::Object),
        }
    }
}

/// Reads what a condition needs besides the event, in the shape of the roots: `{"contact": {"$name": …}}`.
fn read(paths: &[Path], context: &expressions::Context<'_>) -> Result<Map<String, Value>, Failure> {
    let mut values = Map::new();
    for path in paths.iter().filter(|path| path.root != "trigger") {
        if let Some(Step::Name(name)) = path.steps.first() {
            let value = context.scope.member(&path.root, name)?.into_json()?;
            let members = values.entry(path.root.clone()).or_insert_with(|| json!({}));
            if let Value::Object(members) = members {
                members.insert(name.clone(), value);
            }
        } else {
            values.insert(path.root.clone(), context.scope.root(&path.root)?.into_json()?);
        }
    }
    Ok(values)
}
