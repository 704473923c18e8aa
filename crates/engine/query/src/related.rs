//! Conditions on related records, such as `filter[bike.brand]=Trek`.
//!
//! A separate query with its own budget finds the related records that meet the condition. The condition then becomes
//! a test that the field contains one of their ids. If there are few ids, links and set indexes can answer it.

use crate::counting::count_query;
use crate::planning::planner::Planner;
use crate::types::Query;
use fields::filter::{Condition, Node, Related, Test};
use fields::sort::Sort;
use fields::{Field, FieldType, Filter, Subject};
use model::{ApiKey, Error, ItemId, Result, Scope, Timestamp};
use records::sets;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use store::Read;

/// The maximum number of such conditions in a filter, because each is a query.
const MOST: usize = 5;

/// Resolves conditions on related records.
#[derive(Clone)]
pub struct RelatedRecords {
    /// The shapes of the related collections.
    pub shapes: Arc<Shapes>,
    /// Plans the queries on them.
    pub planner: Arc<Planner>,
    /// The key of the request, which needs the scope to read the related records. `None` if the request was
    /// authorized earlier.
    pub key: Option<Arc<ApiKey>>,
}

impl fmt::Debug for RelatedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelatedRecords").finish_non_exhaustive()
    }
}

impl RelatedRecords {
    /// Builds the filter of a tree and resolves its conditions on related records.
    ///
    /// # Errors
    /// 400 `validation_error` or `query_too_expensive`, 403 `missing_scope`.
    pub(crate) fn filter(
        &self,
        read: &mut Read,
        shape: &Shape,
        node: &Node,
        now: Timestamp,
    ) -> Result<Filter> {
        let all = |read: &mut Read, nodes: &[Node]| -> Result<Vec<Filter>> {
            nodes.iter().map(|node| self.filter(read, shape, node, now)).collect()
        };
        Ok(match node {
            Node::And(nodes) => Filter::All(all(read, nodes)?),
            Node::Or(nodes) => Filter::Any(all(read, nodes)?),
            Node::Not(node) => Filter::Not(Box::new(self.filter(read, shape, node, now)?)),
            Node::Is(_) => Filter::of(shape, node, now)?,
            Node::Related(related) => self.pointing(read, shape, related, now)?,
        })
    }

    /// Resolves one condition: finds the related records that meet it, and returns a test for their ids.
    fn pointing(&self, read: &mut Read, shape: &Shape, related: &Related, now: Timestamp) -> Result<Filter> {
        let field = field_of(shape, related)?;
        if let Some(key) = &self.key {
            key.expect_scope(match field.kind {
                FieldType::Contact => Scope::ContactsRead,
                _ => Scope::ItemsRead,
            })?;
        }
        let mut ids = Vec::new();
        // If the collection was deleted, no record meets the condition.
        if let Some(target) = sets::target_of(read, &self.shapes, shape.workspace, field)? {
            let condition = Condition::of(&target, &related.comparison(shape, &target)?, now)?;
            let filter = target.follow_merges(read, Filter::One(condition))?;
            let query = Query::new(filter, Sort::of(&[]), false);
            let found = query.for_each(read, &self.planner, &target, &[], |fitting| {
                ids.push(fitting.row.id.0);
                Ok(())
            });
            // Count it like any other query. If it reads too much, an index is needed.
            count_query(&self.planner, &target, &query, found.as_ref(), ids.len(), now);
            found?;
        }
        let ids: Vec<ItemId> = ids.into_iter().map(ItemId).collect();
        // A locked record can still contain the id of a record that was merged.
        let ids = self.shapes.merged().same(read, field.kind, shape.workspace, &ids)?;
        let test = Test::PointsTo(ids.into_iter().map(|id| Value::from(id.0)).collect());
        Ok(Filter::One(Condition { subject: Subject::Field(field.id), family: field.family(), test }))
    }
}

/// Checks the conditions on related records when a filter is saved.
///
/// # Errors
/// 400 `validation_error`.
pub fn check_related(
    read: &mut Read,
    shapes: &Shapes,
    shape: &Shape,
    node: &Node,
    now: Timestamp,
) -> Result<()> {
    refuse_many(node)?;
    for related in node.related() {
        let field = field_of(shape, related)?;
        if let Some(target) = sets::target_of(read, shapes, shape.workspace, field)? {
            Condition::of(&target, &related.comparison(shape, &target)?, now)?;
        }
    }
    Ok(())
}

fn field_of<'s>(shape: &'s Shape, related: &Related) -> Result<&'s Field> {
    let field = shape.field_by_id(related.through);
    field.ok_or_else(|| Error::invalid(related.at.as_str(), "uses a field that no longer exists"))
}

/// Returns an error if a tree has too many conditions on related records.
///
/// # Errors
/// 400 `validation_error`.
pub(crate) fn refuse_many(node: &Node) -> Result<()> {
    let related = node.related();
    match related.get(MOST) {
        None => Ok(()),
        Some(one) => {
            let rule =
                format!("is one too many: a filter compares fields of other records at most {MOST} times");
            Err(Error::invalid(one.at.as_str(), rule))
        }
    }
}
