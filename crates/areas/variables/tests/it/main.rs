//! Variables through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod variables;

use diesel::prelude::*;
use testkit::TestApp;

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

/// Returns the number `n` that a query selects.
pub async fn number(app: &TestApp, sql: &str) -> i64 {
    let sql = sql.to_owned();
    let row = app.db().read(move |read| Ok(diesel::sql_query(&sql).get_result::<Number>(read.connection())?));
    row.await.unwrap().n
}
