//! A graph with its edges resolved, and what follows from their shape.

use crate::graph::{Edge, Graph, Node};
use crate::nodes::NodeType;
use std::collections::HashMap;

/// The place of a node in the list of its graph.
pub type Place = usize;

/// A graph whose edges are resolved. Edges to nodes that do not exist are left out.
#[derive(Debug)]
pub struct Index<'a> {
    graph: &'a Graph,
    places: HashMap<&'a str, Place>,
    successors: Vec<Vec<(&'a str, Place)>>,
    predecessors: Vec<Vec<(Place, &'a str)>>,
}

impl<'a> Index<'a> {
    /// Resolves the edges of a graph. Of two nodes with one id the first counts.
    pub fn new(graph: &'a Graph) -> Self {
        let mut places = HashMap::with_capacity(graph.nodes.len());
        for (place, node) in graph.nodes.iter().enumerate() {
            places.entry(node.id.as_str()).or_insert(place);
        }
        let mut index = Self {
            graph,
            places,
            successors: vec![Vec::new(); graph.nodes.len()],
            predecessors: vec![Vec::new(); graph.nodes.len()],
        };
        for edge in &graph.edges {
            index.connect(&edge.from, &edge.port, &edge.to);
        }
        for node in &graph.nodes {
            if let Some(target) = jump_target(node) {
                index.connect(&node.id, Edge::NEXT, target);
            }
        }
        index
    }

    fn connect(&mut self, from: &str, port: &'a str, to: &str) {
        let (Some(from), Some(to)) = (self.place(from), self.place(to)) else { return };
        if let Some(successors) = self.successors.get_mut(from) {
            successors.push((port, to));
        }
        if let Some(predecessors) = self.predecessors.get_mut(to) {
            predecessors.push((from, port));
        }
    }

    /// Returns the place of the node with this id.
    pub fn place(&self, id: &str) -> Option<Place> {
        self.places.get(id).copied()
    }

    /// Returns the node at a place.
    pub fn node(&self, place: Place) -> Option<&'a Node> {
        self.graph.nodes.get(place)
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.graph.nodes.len()
    }

    /// Returns whether the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.graph.nodes.is_empty()
    }

    /// Returns the place of the trigger.
    pub fn trigger(&self) -> Option<Place> {
        self.graph.nodes.iter().position(|node| node.kind == NodeType::Trigger)
    }

    /// Returns the edges that leave a node: their ports and where they lead.
    pub fn successors(&self, place: Place) -> &[(&'a str, Place)] {
        self.successors.get(place).map_or(&[], Vec::as_slice)
    }

    /// Returns the edges that lead to a node: where they come from and by which port.
    pub fn predecessors(&self, place: Place) -> &[(Place, &'a str)] {
        self.predecessors.get(place).map_or(&[], Vec::as_slice)
    }

    /// Returns where a port of a node leads.
    pub fn behind(&self, place: Place, port: &str) -> impl Iterator<Item = Place> + '_ {
        let port = port.to_owned();
        self.successors(place).iter().filter(move |(name, _)| *name == port).map(|(_, to)| *to)
    }

    /// Returns which nodes can be reached from these, which are among them. `passes` says whether the way may go on behind a node.
    pub fn reachable(&self, from: &[Place], passes: impl Fn(Place) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.len()];
        let mut open = from.to_vec();
        while let Some(place) = open.pop() {
            let Some(is_reached) = reached.get_mut(place) else { continue };
            if std::mem::replace(is_reached, true) || !passes(place) {
                continue;
            }
            open.extend(self.successors(place).iter().map(|(_, to)| *to));
        }
        reached
    }

    /// Returns the body of a loop: what can be reached from its port `each` without passing the loop again.
    pub fn body(&self, of: Place) -> Vec<bool> {
        let first: Vec<Place> = self.behind(of, "each").collect();
        let mut body = self.reachable(&first, |place| place != of);
        if let Some(is_in_body) = body.get_mut(of) {
            *is_in_body = false;
        }
        body
    }

    /// Returns for each node those that every way from the trigger to it passes, itself included. Nodes that cannot be reached
    /// have none.
    pub fn dominators(&self) -> Vec<Vec<bool>> {
        let Some(trigger) = self.trigger() else { return vec![Vec::new(); self.len()] };
        let reached = self.reachable(&[trigger], |_| true);
        let all = vec![true; self.len()];
        let mut dominators = vec![all; self.len()];
        if let Some(own) = dominators.get_mut(trigger) {
            *own = only(trigger, self.len());
        }
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for place in (0..self.len()).filter(|place| *place != trigger) {
                let mut common: Option<Vec<bool>> = None;
                let before = self.predecessors(place).iter().map(|(from, _)| *from);
                for from in before.filter(|from| reached.get(*from) == Some(&true)) {
                    let Some(of_from) = dominators.get(from) else { continue };
                    common = Some(match common {
                        Some(common) => common.iter().zip(of_from).map(|(a, b)| *a && *b).collect(),
                        None => of_from.clone(),
                    });
                }
                let mut own = common.unwrap_or_else(|| vec![false; self.len()]);
                if let Some(itself) = own.get_mut(place) {
                    *itself = true;
                }
                if let Some(stored) = dominators.get_mut(place).filter(|stored| **stored != own) {
                    *stored = own;
                    has_changed = true;
                }
            }
        }
        dominators
    }

    /// Returns groups of nodes that lie on a cycle together, among those that `counts` accepts.
    pub fn cycles(&self, counts: impl Fn(Place) -> bool) -> Vec<Vec<Place>> {
        let mut left: Vec<bool> = (0..self.len()).map(&counts).collect();
        // Nodes without a predecessor or without a successor among the rest lie on no cycle.
        loop {
            let is_left = |place: Place| left.get(place) == Some(&true);
            let on_no_cycle: Vec<Place> = (0..self.len())
                .filter(|place| is_left(*place))
                .filter(|place| {
                    !self.successors(*place).iter().any(|(_, to)| is_left(*to))
                        || !self.predecessors(*place).iter().any(|(from, _)| is_left(*from))
                })
                .collect();
            if on_no_cycle.is_empty() {
                break;
            }
            for place in on_no_cycle {
                if let Some(is_left) = left.get_mut(place) {
                    *is_left = false;
                }
            }
        }
        let mut groups = Vec::new();
        for place in 0..self.len() {
            let is_left = |place: Place| left.get(place) == Some(&true);
            if !is_left(place) {
                continue;
            }
            let from_here = self.reachable(&[place], is_left);
            let group: Vec<Place> = (0..self.len())
                .filter(|other| is_left(*other) && from_here.get(*other) == Some(&true))
                .filter(|other| self.leads_to(*other, place, is_left))
                .collect();
            for member in &group {
                if let Some(is_left) = left.get_mut(*member) {
                    *is_left = false;
                }
            }
            if !group.is_empty() {
                groups.push(group);
            }
        }
        groups
    }

    fn leads_to(&self, from: Place, to: Place, passes: impl Fn(Place) -> bool) -> bool {
        let first: Vec<Place> =
            self.successors(from).iter().map(|(_, next)| *next).filter(|next| passes(*next)).collect();
        self.reachable(&first, &passes).get(to) == Some(&true)
    }
}

fn only(place: Place, len: usize) -> Vec<bool> {
    (0..len).map(|other| other == place).collect()
}

/// Returns the node that a `jump` leads to.
fn jump_target(node: &Node) -> Option<&str> {
    (node.kind == NodeType::Jump).then(|| node.config.get("node_id")?.as_str()).flatten()
}
