//! Queries: filters, order, pages, search, aggregates.
//!
//! A query is read against the [`Shape`](crate::shape::Shape), then planned over the key tables, then run within a
//! budget. Indexes only narrow what is looked at: every record that is answered was tested by [`fields::Filter::fits`],
//! so that a query means the same with any indexes or none, on both databases.

pub mod aggregate;
mod candidates;
mod columns;
mod cursor;
mod fetch;
mod ordered;
mod params;
mod pick;
mod plan;
mod planner;
mod run;
pub mod scan;
pub mod search;
mod tally;
mod types;
mod usage;
mod visit;

pub use cursor::{ListPosition, cursor_at, place_behind};
pub use fetch::rows;
pub use params::{ParsedQuery, QueryParams};
pub use pick::pick;
pub use planner::{Budget, Planner};
pub use scan::in_range;
pub use types::{Query, Report};
pub use usage::{IndexRequest, LARGE, Needs};
pub use visit::{Page, PlacedRow};
