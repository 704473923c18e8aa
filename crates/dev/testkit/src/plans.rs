//! SQLite's query plans, for tests that a query uses an index.

use crate::TestDb;
use diesel::prelude::*;
use diesel::sql_types::Text;

#[derive(QueryableByName)]
struct Part {
    #[diesel(sql_type = Text)]
    detail: String,
}

/// Asserts that each query (the text of `debug_query`) starts with its index and does not sort.
pub async fn expect_indexes<const N: usize>(data: &TestDb, queries: [(String, &str); N]) {
    for (query, index) in queries {
        let (query, _) = query.split_once(" -- binds").unwrap();
        let explain = format!("EXPLAIN QUERY PLAN {query}");
        let plan = data.db.read(move |read| Ok(diesel::sql_query(explain).load::<Part>(read.connection())?));
        let plan: Vec<String> = plan.await.unwrap().into_iter().map(|part| part.detail).collect();
        assert!(plan[0].contains(index), "{query}: {plan:?}");
        assert!(plan.iter().all(|part| !part.contains("FOR ORDER BY")), "{query}: {plan:?}");
    }
}
