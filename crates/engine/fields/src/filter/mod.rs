//! Filters: trees of conditions, as callers write them and ready to be tested on records.

mod comparison;
mod condition;
mod exact;
mod like;
mod op;
mod operand;
mod range;
mod related;
pub mod relative;
mod schema;
mod tree;

pub use comparison::{Comparison, name_of, subject};
pub(crate) use condition::empty_text;
pub use condition::{Condition, Test};
pub use like::Pattern;
pub use op::Op;
pub use range::{Range, behind, joined};
pub use related::{Compared, Related};
pub use schema::{FilterAnd, FilterCondition, FilterNot, FilterOr, FilterTree, filter_tree_text};
pub use tree::{MOST_CONDITIONS, Node, unknown_op};

use crate::definitions::set::FieldSet;
use crate::definitions::subject::Subject;
use crate::record::Record;
use crate::search::words::Words;
use model::{Error, FieldId, Result, Timestamp};
use serde_json::Value;
use std::collections::BTreeSet;

/// A tree of conditions.
#[derive(Debug, Clone)]
pub enum Filter {
    /// All of them hold.
    All(Vec<Filter>),
    /// One of them holds.
    Any(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// A condition.
    One(Condition),
    /// It contains these words.
    Finds(Words),
}

impl Filter {
    /// Reads what a tree compares with. Days are those of `now`.
    ///
    /// # Errors
    /// 400 `validation_error` with the path of what is wrong, and for conditions on related records: only a query can read
    /// those.
    pub fn of(fields: &FieldSet, node: &Node, now: Timestamp) -> Result<Self> {
        let all = |nodes: &[Node]| -> Result<Vec<Self>> {
            nodes.iter().map(|node| Self::of(fields, node, now)).collect()
        };
        Ok(match node {
            Node::And(nodes) => Self::All(all(nodes)?),
            Node::Or(nodes) => Self::Any(all(nodes)?),
            Node::Not(node) => Self::Not(Box::new(Self::of(fields, node, now)?)),
            Node::Is(comparison) => Self::One(Condition::of(fields, comparison, now)?),
            Node::Related(related) => {
                let rule = "compares a field of other records, which is not possible here";
                return Err(Error::invalid(related.at.as_str(), rule));
            }
        })
    }

    /// Whether a record fits. `links` tells whether a relation field points to one of some ids where the record's own
    /// values do not say, because they hold the first few only.
    ///
    /// # Errors
    /// What `links` fails with.
    pub fn fits(
        &self,
        fields: &FieldSet,
        record: Record<'_>,
        links: &mut dyn FnMut(FieldId, &[Value]) -> Result<bool>,
    ) -> Result<bool> {
        match self {
            Self::All(filters) => {
                for filter in filters {
                    if !filter.fits(fields, record, links)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(filters) => {
                for filter in filters {
                    if filter.fits(fields, record, links)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(filter) => Ok(!filter.fits(fields, record, links)?),
            Self::One(condition) => condition.fits(fields, record, links),
            Self::Finds(words) => Ok(words.fit(fields, record)),
        }
    }

    /// The conditions that must all hold, whatever else must.
    pub fn musts(&self) -> Vec<&Condition> {
        match self {
            Self::All(filters) => filters.iter().flat_map(Self::musts).collect(),
            Self::Any(filters) => match filters.as_slice() {
                [one] => one.musts(),
                _ => Vec::new(),
            },
            Self::Not(_) | Self::Finds(_) => Vec::new(),
            Self::One(condition) => vec![condition],
        }
    }

    /// Whether every record fits.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(filters) if filters.iter().all(Self::is_empty))
    }

    /// Whether it is nothing but conditions that must all hold.
    pub fn is_conjunction(&self) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(Self::is_conjunction),
            Self::One(_) => true,
            Self::Any(_) | Self::Not(_) | Self::Finds(_) => false,
        }
    }

    /// Everything that it looks at.
    pub fn subjects(&self, fields: &FieldSet, into: &mut BTreeSet<FieldId>) {
        match self {
            Self::All(filters) | Self::Any(filters) => {
                filters.iter().for_each(|filter| filter.subjects(fields, into));
            }
            Self::Not(filter) => filter.subjects(fields, into),
            Self::Finds(_) => into.extend(super::search::words::searchable(fields).map(|field| field.id)),
            Self::One(condition) => {
                if let Subject::Field(id) = condition.subject {
                    into.insert(id);
                }
            }
        }
    }
}
