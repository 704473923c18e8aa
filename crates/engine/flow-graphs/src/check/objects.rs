//! The objects of the workspace that nodes name.

use super::node_param;
use crate::graph::{Graph, Node};
use crate::index::Place;
use crate::nodes::NodeType;
use serde_json::Value;

/// The settings that name objects: their paths, and the words for the objects.
const OBJECTS: [(&str, &str); 13] = [
    ("agent_id", "agent"),
    ("function_id", "function"),
    ("flow_id", "flow"),
    ("collection_id", "collection"),
    ("channel_id", "channel"),
    ("template.channel_id", "channel"),
    ("connection_id", "connection"),
    ("assignee_id", "member"),
    ("approver_ids", "member"),
    ("task_id", "task"),
    ("file_id", "file"),
    ("template.file_id", "file"),
    ("file_ids", "file"),
];

/// An object of the workspace that a node names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectReference<'a> {
    /// The id of the node.
    pub node_id: &'a str,
    /// Whether the node is disabled, so that runs pass it over.
    pub is_disabled: bool,
    /// The place in the graph, such as `nodes[3].config.agent_id`.
    pub param: String,
    /// The type of the object, such as `agent`.
    pub object: &'static str,
    /// Its id.
    pub id: i64,
    /// The version that the node pins. `None` for the one that is current when it is executed.
    pub version: Option<i64>,
}

/// Returns the objects that the nodes of a graph name, in their order. An id that a template gives is known only at run time.
pub fn objects(graph: &Graph) -> Vec<ObjectReference<'_>> {
    graph.nodes.iter().enumerate().flat_map(|(place, node)| objects_of(place, node)).collect()
}

/// Returns the types of the events for which nodes wait, with the places of the nodes.
pub fn awaited_events(graph: &Graph) -> impl Iterator<Item = (Place, &str)> {
    let nodes = graph.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeType::WaitForEvent);
    nodes.filter_map(|(place, node)| Some((place, node.config.get("type")?.as_str()?)))
}

pub(super) fn objects_of(place: Place, node: &Node) -> Vec<ObjectReference<'_>> {
    let mut found = Vec::new();
    for (setting, object) in OBJECTS {
        let Some(value) = setting_at(node, setting) else { continue };
        let version = node.config.get("version").and_then(Value::as_i64);
        let param = format!("{}.config.{setting}", node_param(place));
        let reference = |id, param| ObjectReference {
            node_id: &node.id,
            is_disabled: node.disabled,
            param,
            object,
            id,
            version,
        };
        match value {
            Value::Array(ids) => found.extend(ids.iter().enumerate().filter_map(|(number, id)| {
                id.as_i64().map(|id| reference(id, format!("{param}[{number}]")))
            })),
            id => found.extend(id.as_i64().map(|id| reference(id, param))),
        }
    }
    found
}

fn setting_at<'a>(node: &'a Node, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = node.config.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}
