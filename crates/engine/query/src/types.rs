//! A query, and the report of its execution.

use fields::Filter;
use fields::sort::Sort;

/// The items to find, and their order.
#[derive(Debug, Clone)]
pub struct Query {
    /// The conditions.
    pub filter: Filter,
    /// The order.
    pub sort: Sort,
    /// Whether to find items in the trash instead of live ones.
    pub trashed: bool,
}

impl Query {
    /// Creates a query. Drops parts of the order whose value the conditions determine.
    pub fn new(filter: Filter, sort: Sort, trashed: bool) -> Self {
        let sort = sort.under(&filter);
        Self { filter, sort, trashed }
    }
}

/// The report of a query.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name of the plan.
    pub plan: String,
    /// The indexes used.
    pub uses: Vec<model::IndexId>,
    /// The number of items, keys and links examined.
    pub visited: usize,
    /// The cost: like `visited`, but items whose columns alone were read count as a fraction.
    pub cost: usize,
}

impl Report {
    /// Returns the header `X-Svc-Query-Plan`.
    pub fn header(&self) -> (&'static str, String) {
        ("x-svc-query-plan", format!("{}; visited={}", self.plan, self.visited))
    }
}
