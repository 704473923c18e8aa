//! A condition with the values of its parts.

use super::ROOTS;
use expressions::{Condition, Context, Mistake, Path, Template};
use serde_json::{Map, Value, json};

/// The most characters of a value that an evaluation shows.
const LONGEST_SHOWN: usize = 500;

/// The conditions of an automation.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    whole: Condition,
    tree: Node,
}

/// What an evaluation found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// Whether the conditions hold; an error is neither.
    pub(crate) holds: Result<bool, String>,
    /// The conditions with the values of their parts.
    pub(crate) tree: Value,
}

#[derive(Debug, Clone)]
enum Node {
    Group(&'static str, Vec<Node>),
    Not(Box<Node>),
    Leaf(Box<Leaf>),
}

#[derive(Debug, Clone)]
struct Leaf {
    source: Value,
    condition: Condition,
    /// What is compared, as far as it is computed.
    operands: Vec<(&'static str, Template)>,
}

impl Conditions {
    /// Reads conditions.
    ///
    /// # Errors
    /// What is wrong with them, with the path below them.
    pub(crate) fn parse(json: &Value) -> Result<Self, Mistake> {
        Ok(Self { whole: Condition::parse(json, &ROOTS)?, tree: node(json)? })
    }

    /// Returns the paths that the conditions read.
    pub(crate) fn references(&self) -> Vec<&Path> {
        self.whole.references()
    }

    /// Evaluates them.
    pub(crate) fn evaluate(&self, context: &Context<'_>) -> Verdict {
        let holds = self.whole.holds(context).map_err(|failure| failure.to_string());
        Verdict { holds, tree: shown(&self.tree, context) }
    }
}

/// The parts of a condition that is known to be one.
fn node(json: &Value) -> Result<Node, Mistake> {
    let group = |word: &str| json.get(word).filter(|_| json.get("op").is_none());
    for word in ["and", "or"] {
        if let Some(Value::Array(parts)) = group(word) {
            let parts = parts.iter().map(node).collect::<Result<Vec<_>, _>>()?;
            return Ok(Node::Group(if word == "and" { "and" } else { "or" }, parts));
        }
    }
    if let Some(inner) = group("not") {
        return Ok(Node::Not(Box::new(node(inner)?)));
    }
    let mut operands = Vec::new();
    for side in ["left", "right"] {
        if let Some(text) = json.get(side).and_then(Value::as_str) {
            operands.push((side, Template::parse(text, &ROOTS)?));
        }
    }
    Ok(Node::Leaf(Box::new(Leaf {
        source: json.clone(),
        condition: Condition::parse(json, &ROOTS)?,
        operands,
    })))
}

/// A part with its values.
fn shown(node: &Node, context: &Context<'_>) -> Value {
    match node {
        Node::Group(word, parts) => {
            let parts: Vec<Value> = parts.iter().map(|part| shown(part, context)).collect();
            let results: Vec<Option<bool>> = parts.iter().map(holds).collect();
            let decides = *word == "or";
            let holds = if results.contains(&Some(decides)) {
                Some(decides)
            } else {
                (!results.contains(&None)).then_some(!decides)
            };
            json!({ (*word): parts, "holds": holds })
        }
        Node::Not(inner) => {
            let inner = shown(inner, context);
            let holds = holds(&inner).map(|holds| !holds);
            json!({ "not": inner, "holds": holds })
        }
        Node::Leaf(leaf) => leaf.shown(context),
    }
}

fn holds(shown: &Value) -> Option<bool> {
    shown.get("holds").and_then(Value::as_bool)
}

impl Leaf {
    fn shown(&self, context: &Context<'_>) -> Value {
        let mut shown = match &self.source {
            Value::Object(members) => members.clone(),
            expression => Map::from_iter([("expression".to_owned(), expression.clone())]),
        };
        for (side, template) in self.operands.iter().filter(|(_, template)| !template.references().is_empty())
        {
            let value = template.evaluate(context).and_then(expressions::Value::into_json);
            shown.insert(format!("{side}_value"), value.map_or(Value::Null, shortened));
        }
        match self.condition.holds(context) {
            Ok(holds) => shown.insert("holds".to_owned(), holds.into()),
            Err(failure) => {
                shown.insert("error".to_owned(), failure.to_string().into());
                shown.insert("holds".to_owned(), Value::Null)
            }
        };
        Value::Object(shown)
    }
}

/// A value that is not longer than what a person reads.
fn shortened(value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
        _ => return value,
    };
    if text.chars().count() <= LONGEST_SHOWN {
        return value;
    }
    let mut short: String = text.chars().take(LONGEST_SHOWN).collect();
    short.push('…');
    Value::String(short)
}
