//! Looking at items: filters, order, pages, search, sums.
//!
//! A query is read against the collection's [`Shape`](crate::shape::Shape), then planned over the key tables, then run
//! within a budget. Indexes only narrow what is looked at: every item that is answered was tested by [`fields::Filter::fits`],
//! so that a query means the same with any indexes or none, on both databases.

pub mod aggregate;
mod list;
mod operators;
mod params;
mod pick;
mod plan;
mod planner;
mod run;
mod search;
mod usage;
mod walk;

pub use params::{Asked, Meant};
pub(crate) use pick::pick;
pub use planner::{Budget, Planner};
pub use run::{Found, Page, Query, Report};
pub(crate) use usage::{Due, LARGE, Wish};
pub(crate) use walk::{in_range, rows};

use operation::Operations;

pub(crate) fn operations() -> Operations {
    vec![
        Box::new(list::ListItems),
        Box::new(search::SearchItems),
        Box::new(aggregate::AggregateItems),
        Box::new(operators::ListItemFilterOperators),
    ]
}
