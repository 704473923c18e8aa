//! A query, and how it was answered.

use fields::Filter;
use fields::sort::Sort;

/// Which items, and in which order.
#[derive(Debug, Clone)]
pub struct Query {
    /// The conditions.
    pub filter: Filter,
    /// The order.
    pub sort: Sort,
    /// Those in the trash instead of the live ones.
    pub trashed: bool,
}

impl Query {
    /// A query whose order leaves out what its conditions fix.
    pub fn new(filter: Filter, sort: Sort, trashed: bool) -> Self {
        let sort = sort.under(&filter);
        Self { filter, sort, trashed }
    }
}

/// How items were found.
#[derive(Debug, Clone)]
pub struct Report {
    /// The plan's name.
    pub plan: String,
    /// The indexes that were used.
    pub uses: Vec<model::IndexId>,
    /// Items, keys and links that were looked at.
    pub visited: usize,
    /// The same as the cost of the query: items of which only columns were read count as a fraction.
    pub cost: usize,
}

impl Report {
    /// As the header `X-Svc-Query-Plan` has it.
    pub fn header(&self) -> (&'static str, String) {
        ("x-svc-query-plan", format!("{}; visited={}", self.plan, self.visited))
    }
}
