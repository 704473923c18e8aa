//! Statistics of tables that have grown.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use store::Db;
use testkit::{Kind, TestDb};

#[derive(QueryableByName)]
struct Rows {
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

/// How many rows PostgreSQL believes a table to have.
async fn known_rows(db: &Db) -> i64 {
    let sql = "SELECT reltuples::bigint AS rows FROM pg_class WHERE relname = 'log_sizes'";
    db.read(move |read| Ok(diesel::sql_query(sql).get_result::<Rows>(read.connection())?.rows)).await.unwrap()
}

async fn add(db: &Db, from: i64, to: i64) {
    let sql = format!(
        "INSERT INTO log_sizes (log, workspace_id, row_count, bytes, purged_to) \
         SELECT 'test', id, 0, 0, 0 FROM generate_series({from}, {to}) AS id"
    );
    db.write(move |tx| {
        diesel::sql_query(&sql).execute(tx.connection())?;
        // Otherwise the server may know of them only a second later.
        diesel::sql_query("SELECT pg_stat_force_next_flush()").execute(tx.connection())?;
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn tables_are_analyzed_when_they_have_doubled() {
    let test = TestDb::new(Kind::Postgres);
    let alone = "ALTER TABLE log_sizes SET (autovacuum_enabled = false)";
    test.db.write(move |tx| Ok(diesel::sql_query(alone).execute(tx.connection())?)).await.unwrap();
    add(&test.db, 1, 400).await;
    assert_eq!((test.db.analyze_grown().await.unwrap(), known_rows(&test.db).await), (0, -1), "too few");
    add(&test.db, 401, 1_000).await;
    assert_eq!((test.db.analyze_grown().await.unwrap(), known_rows(&test.db).await), (1, 1_000));
    add(&test.db, 1_001, 1_900).await;
    assert_eq!(
        (test.db.analyze_grown().await.unwrap(), known_rows(&test.db).await),
        (0, 1_000),
        "not doubled"
    );
    add(&test.db, 1_901, 2_100).await;
    assert_eq!((test.db.analyze_grown().await.unwrap(), known_rows(&test.db).await), (1, 2_100));
    let embedded = TestDb::new(Kind::Sqlite);
    assert_eq!(embedded.db.analyze_grown().await.unwrap(), 0);
}
