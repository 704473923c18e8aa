//! Trees of conditions as they are sent and stored: what they name is known, what they compare with is not yet read.

use super::comparison::{Comparison, name_of};
use super::op::Op;
use super::related::{Compared, Related};
use crate::definitions::set::FieldSet;
use model::{Error, Result};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// How deep a tree may be: a lone condition is one level.
pub(super) const MOST_LEVELS: usize = 5;
/// How many conditions it may have.
pub const MOST_CONDITIONS: usize = 100;

/// A tree of conditions.
///
/// Stored ones name fields by id, so that a field may get another key, and keep what they compare with as it was
/// written, so that `today` is the day on which they are used.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// All of them hold.
    And(Vec<Node>),
    /// One of them holds.
    Or(Vec<Node>),
    /// It does not hold.
    Not(Box<Node>),
    /// A comparison.
    Is(Comparison),
    /// A comparison with a field of the records that a field points to.
    Related(Related),
}

impl Node {
    /// Reads a tree that a caller sent. `param` says where it stood.
    ///
    /// # Errors
    /// 400 `validation_error` with the path of what is wrong.
    pub fn from_api(fields: &FieldSet, tree: &Value, param: &str) -> Result<Self> {
        let mut left = MOST_CONDITIONS;
        read(fields, tree, param, 1, &mut left)
    }

    /// The condition on what a caller named. `at` says where the name stood, `param` where the value did.
    pub fn comparing(compared: Compared, op: Op, value: Value, at: String, param: String) -> Self {
        match compared {
            Compared::Own(subject) => Self::Is(Comparison { subject, op, value, param }),
            Compared::Related { through, name } => {
                Self::Related(Related { through, name, op, value, param, at })
            }
        }
    }

    /// The tree as callers write it. A field that is gone is named by its id: `#12`.
    pub fn to_api(&self, fields: &FieldSet) -> Value {
        let list = |nodes: &[Self]| -> Value { nodes.iter().map(|node| node.to_api(fields)).collect() };
        match self {
            Self::And(nodes) => json!({ "and": list(nodes) }),
            Self::Or(nodes) => json!({ "or": list(nodes) }),
            Self::Not(node) => json!({ "not": node.to_api(fields) }),
            Self::Is(comparison) => json!({
                "field": name_of(comparison.subject, fields), "op": comparison.op, "value": comparison.value,
            }),
            Self::Related(related) => json!({
                "field": related.path(fields), "op": related.op, "value": related.value,
            }),
        }
    }

    /// Every comparison of the record itself in it.
    pub fn comparisons(&self) -> Vec<&Comparison> {
        let own = self.leaves().into_iter().filter_map(|leaf| match leaf {
            Self::Is(comparison) => Some(comparison),
            _ => None,
        });
        own.collect()
    }

    /// Every condition on related records in it.
    pub fn related(&self) -> Vec<&Related> {
        let related = self.leaves().into_iter().filter_map(|leaf| match leaf {
            Self::Related(related) => Some(related),
            _ => None,
        });
        related.collect()
    }

    fn leaves(&self) -> Vec<&Self> {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().flat_map(Self::leaves).collect(),
            Self::Not(node) => node.leaves(),
            Self::Is(_) | Self::Related(_) => vec![self],
        }
    }
}

fn read(fields: &FieldSet, tree: &Value, param: &str, level: usize, left: &mut usize) -> Result<Node> {
    const RULE: &str =
        "must be {\"and\": […]}, {\"or\": […]}, {\"not\": {…}} or {\"field\", \"op\", \"value\"}";
    if level > MOST_LEVELS {
        return Err(Error::invalid(param, format_args!("must be at most {MOST_LEVELS} levels deep")));
    }
    let object = tree.as_object().ok_or_else(|| Error::invalid(param, RULE))?;
    let list = |name: &str, nodes: &Value, left: &mut usize| -> Result<Vec<Node>> {
        let path = format!("{param}.{name}");
        let nodes = nodes.as_array().ok_or_else(|| Error::invalid(&path, "must be a list of conditions"))?;
        if nodes.is_empty() || nodes.len() > MOST_CONDITIONS {
            let rule = format!("must have 1 to {MOST_CONDITIONS} conditions");
            return Err(Error::invalid(&path, rule));
        }
        let read =
            |(place, node): (usize, &Value)| read(fields, node, &format!("{path}[{place}]"), level + 1, left);
        nodes.iter().enumerate().map(read).collect()
    };
    let mut parts = object.iter();
    match (parts.next(), parts.next()) {
        (Some((name, nodes)), None) if name == "and" => Ok(Node::And(list(name, nodes, left)?)),
        (Some((name, nodes)), None) if name == "or" => Ok(Node::Or(list(name, nodes, left)?)),
        (Some((name, node)), None) if name == "not" => {
            Ok(Node::Not(Box::new(read(fields, node, &format!("{param}.not"), level + 1, left)?)))
        }
        (Some(_), Some(_)) if object.contains_key("field") => {
            *left = left.checked_sub(1).ok_or_else(|| {
                Error::invalid(param, format_args!("exceeds the limit of {MOST_CONDITIONS} conditions"))
            })?;
            condition(fields, object, param)
        }
        _ => Err(Error::invalid(param, RULE)),
    }
}

fn condition(fields: &FieldSet, object: &Map<String, Value>, param: &str) -> Result<Node> {
    if let Some(name) = object.keys().find(|name| !["field", "op", "value"].contains(&name.as_str())) {
        let name: String = name.chars().take(63).collect();
        return Err(Error::invalid(format!("{param}.{name}"), "is not part of a condition"));
    }
    let text = |name: &str| -> Result<&str> {
        let found = object.get(name).and_then(Value::as_str);
        found.ok_or_else(|| Error::invalid(format!("{param}.{name}"), "must be a string"))
    };
    let at = format!("{param}.field");
    let compared = Compared::named(fields, text("field")?, &at)?;
    let op = Op::parse(text("op")?).ok_or_else(|| unknown_op(format!("{param}.op")))?;
    let value = object.get("value").cloned().unwrap_or(Value::Null);
    Ok(Node::comparing(compared, op, value, at, format!("{param}.value")))
}

/// The refusal of an operator that does not exist.
pub fn unknown_op(param: String) -> Error {
    let names: Vec<&str> = Op::ALL.into_iter().map(Op::as_str).collect();
    Error::invalid(param, format_args!("must be one of {}", names.join(", ")))
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = match self {
            Self::Is(comparison) => return comparison.serialize(serializer),
            Self::Related(related) => return related.serialize(serializer),
            _ => serializer.serialize_map(Some(1))?,
        };
        match self {
            Self::And(nodes) => map.serialize_entry("and", nodes)?,
            Self::Or(nodes) => map.serialize_entry("or", nodes)?,
            Self::Not(node) => map.serialize_entry("not", node)?,
            Self::Is(_) | Self::Related(_) => {}
        }
        map.end()
    }
}

/// Reads what was stored; what callers send is read by [`Node::from_api`].
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum StoredFilter {
            And { and: Vec<Node> },
            Or { or: Vec<Node> },
            Not { not: Box<Node> },
            // Before the other comparison, which would take it without `through`.
            Related(Related),
            Is(Comparison),
        }
        match StoredFilter::deserialize(deserializer)
            .map_err(|_| D::Error::custom("no tree of conditions"))?
        {
            StoredFilter::And { and } => Ok(Self::And(and)),
            StoredFilter::Or { or } => Ok(Self::Or(or)),
            StoredFilter::Not { not } => Ok(Self::Not(not)),
            StoredFilter::Related(related) => Ok(Self::Related(related)),
            StoredFilter::Is(comparison) => Ok(Self::Is(comparison)),
        }
    }
}
