//! What computed fields look at, over all collections of a workspace.

use super::rollup;
use crate::shape::{self, Shape, Shapes};
use fields::Problem;
use fields::formula::Formula;
use fields::{FieldOptions, FieldType};
use model::{CollectionId, Result};
use std::collections::HashMap;
use std::sync::Arc;
use store::Read;

/// A computed field that is to be saved.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The key of the field.
    pub key: &'a str,
    /// The type.
    pub kind: FieldType,
    /// Its options.
    pub options: &'a FieldOptions,
}

/// A field of some collection.
type Node = (CollectionId, String);

/// Checks a computed field, and that nothing it looks at looks back at it, and gives the type of its result. For other
/// types there is nothing to check.
///
/// # Errors
/// The inner one says what is wrong: `invalid_formula`, `formula_cycle` (with the path round), or what
/// [`rollup::check`] finds. The outer one is the database's.
pub fn check(
    read: &mut Read,
    shapes: &Shapes,
    shape: &Arc<Shape>,
    candidate: Candidate<'_>,
) -> Result<Result<Option<FieldType>, Problem>> {
    if !candidate.kind.is_computed() {
        return Ok(Ok(None));
    }
    let mut traversal = Traversal {
        shapes,
        known: HashMap::from([(shape.collection, Some(shape.clone()))]),
        candidate,
        home: shape.collection,
    };
    let start = (shape.collection, candidate.key.to_owned());
    if let Some(path) = traversal.path_back(read, &start)? {
        let message = format!("would depend on itself: {}", path.join(" → "));
        return Ok(Err(Problem::new("formula_cycle", message)));
    }
    Ok(match (candidate.kind, candidate.options.expression.as_deref()) {
        (FieldType::Formula, Some(text)) => {
            Formula::parse(text).and_then(|formula| formula.result_type(shape)).map(Some)
        }
        (FieldType::Formula, None) => Err(Problem::new("required", "is required")),
        (kind, _) => rollup::check(read, shapes, shape, kind, candidate.options)?.map(Some),
    })
}

struct Traversal<'a> {
    shapes: &'a Shapes,
    /// Shapes by collection; `None` for one that is gone.
    known: HashMap<CollectionId, Option<Arc<Shape>>>,
    candidate: Candidate<'a>,
    home: CollectionId,
}

impl Traversal<'_> {
    /// The path from a field back to itself, as keys; `None` where there is none.
    fn path_back(&mut self, read: &mut Read, start: &Node) -> Result<Option<Vec<String>>> {
        let mut seen: HashMap<Node, Node> = HashMap::new();
        let mut open = vec![start.clone()];
        while let Some(node) = open.pop() {
            for next in self.looks_at(read, &node)? {
                if next == *start {
                    let mut path = vec![start.1.clone()];
                    let mut place = &node;
                    while place != start {
                        path.push(place.1.clone());
                        let Some(before) = seen.get(place) else { break };
                        place = before;
                    }
                    path.push(start.1.clone());
                    path.reverse();
                    return Ok(Some(path));
                }
                if !seen.contains_key(&next) {
                    seen.insert(next.clone(), node.clone());
                    open.push(next);
                }
            }
        }
        Ok(None)
    }

    /// The fields that a field looks at.
    fn looks_at(&mut self, read: &mut Read, (collection, key): &Node) -> Result<Vec<Node>> {
        let Some(shape) = self.shape(read, *collection)? else { return Ok(Vec::new()) };
        let is_candidate = *collection == self.home && key == self.candidate.key;
        let (kind, options) = match shape.field(key) {
            _ if is_candidate => (self.candidate.kind, self.candidate.options),
            Some(field) => (field.kind, &field.options),
            None => return Ok(Vec::new()),
        };
        match kind {
            FieldType::Formula => {
                let formula = options.expression.as_deref().map(Formula::parse);
                let Some(Ok(formula)) = formula else { return Ok(Vec::new()) };
                Ok(formula.fields().into_iter().map(|key| (*collection, key.to_owned())).collect())
            }
            FieldType::Rollup | FieldType::Lookup => {
                let relation = options.relation.as_deref().and_then(|key| shape.field(key));
                let target = relation.and_then(|relation| relation.options.target_collection_id);
                Ok(target.zip(options.field.clone()).into_iter().collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn shape(&mut self, read: &mut Read, collection: CollectionId) -> Result<Option<Arc<Shape>>> {
        if let Some(known) = self.known.get(&collection) {
            return Ok(known.clone());
        }
        let workspace = self.known.get(&self.home).and_then(Option::as_ref).map(|shape| shape.workspace);
        let found = match workspace {
            Some(workspace) => match shape::for_read(read, self.shapes, workspace, collection) {
                Ok(shape) => Some(shape),
                Err(error) if error.code() == model::Code::NotFound => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        self.known.insert(collection, found.clone());
        Ok(found)
    }
}
