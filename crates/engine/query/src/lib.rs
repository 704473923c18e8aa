//! Queries: filters, order, pages, search and aggregates.
//!
//! A query is parsed against the [`Shape`](records::shape::Shape), planned over the index tables, and executed within
//! a budget. Indexes only select candidates: [`fields::Filter::fits`] tests every record before it is returned. So a
//! query has the same result with any set of indexes, on both databases.

pub mod aggregate;
mod auto_index;
mod column_scan;
mod columns;
mod counting;
mod cursor;
mod dated;
mod ordered;
mod params;
mod planning;
pub mod references;
mod related;
mod run;
mod runs;
mod scan;
pub mod search;
mod tally;
mod types;
mod usage;
mod visit;

pub use auto_index::{counted_aggregate, counted_counts, counted_page, grant_index};
pub use cursor::{ListPosition, cursor_at, place_behind};
pub use dated::{DateSpan, DatedRow, dated_rows};
pub use params::{ParsedQuery, QueryParams};
pub use planning::planner::{Budget, Planner};
pub use related::{RelatedRecords, check_related};
pub use types::{Query, Report};
pub use usage::{IndexRequest, Needs};
pub use visit::{Page, PlacedRow};

use jobs::Job;
use records::shape::Shapes;
use std::sync::Arc;

/// Returns the jobs of this crate.
pub fn jobs(shapes: &Arc<Shapes>) -> Vec<Job> {
    let mut jobs = vec![references::job(shapes)];
    jobs.extend(auto_index::jobs(shapes));
    jobs
}
