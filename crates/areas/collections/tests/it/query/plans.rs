//! The plans of the databases for the statements of scans: each seeks in an index, and none sorts.

use diesel::prelude::*;
use diesel::sql_types::Text;
use testkit::{Kind, TestDb};

#[derive(QueryableByName)]
struct SqliteStep {
    #[diesel(sql_type = Text)]
    detail: String,
}

#[derive(QueryableByName)]
struct PostgresStep {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    step: String,
}

/// The statement of `records/src/rows/fetch.rs`, with `IDS` as a placeholder for the condition on ids.
const BY_IDS: &str = "SELECT items.id, items.data, items.more IS NOT NULL FROM items WHERE IDS AND \
    items.collection_id + 0 = 7 AND items.workspace_id + 0 = 1 AND \
    CASE WHEN items.trashed_at IS NULL THEN 0 ELSE 1 END = 0";

/// The statements of `query/src/scan.rs`, `records/src/indexes/entries.rs` and `records/src/columnar/table.rs` with
/// values for their parameters, and the index in which each must seek, on SQLite and on PostgreSQL.
const STATEMENTS: [(&str, &str, &str); 12] = [
    (
        "SELECT k, item_id FROM item_keys WHERE index_id = 7 AND k >= X1 AND k < X2 ORDER BY k, item_id",
        "item_keys USING PRIMARY KEY (index_id=? AND k>? AND k<?)",
        "item_keys_pkey",
    ),
    (
        "SELECT k, item_id FROM item_keys WHERE index_id = 7 AND k >= X1 AND k < X2 ORDER BY k DESC, item_id DESC",
        "item_keys USING PRIMARY KEY (index_id=? AND k>? AND k<?)",
        "item_keys_pkey",
    ),
    (
        "SELECT k, item_id FROM item_keys WHERE index_id = 7 AND k = X1 AND item_id > 5 ORDER BY item_id",
        "item_keys USING PRIMARY KEY (index_id=? AND k=? AND item_id>?)",
        "item_keys_pkey",
    ),
    (
        "SELECT k, item_id FROM item_keys WHERE index_id = 7 AND k = X1 AND item_id < 5 ORDER BY item_id DESC",
        "item_keys USING PRIMARY KEY (index_id=? AND k=? AND item_id<?)",
        "item_keys_pkey",
    ),
    (
        "SELECT id FROM items WHERE collection_id = 7 AND id >= 1 AND id <= 900 AND trashed_at IS NULL ORDER BY id DESC",
        "items USING INDEX items_live (collection_id=? AND id>? AND id<?)",
        "items_live",
    ),
    (
        "SELECT id FROM items WHERE collection_id = 7 AND id >= 1 AND id <= 900 AND trashed_at IS NOT NULL ORDER BY id",
        "items USING INDEX items_in_trash (collection_id=? AND id>? AND id<?)",
        "items_in_trash",
    ),
    (
        "SELECT item_id FROM item_links WHERE to_kind = 'item' AND to_id = '5' AND workspace_id = 1 AND field_id = 3 \
         AND item_id > 0 ORDER BY item_id",
        "item_links USING COVERING INDEX item_links_in (to_kind=? AND to_id=? AND workspace_id=? AND field_id=? AND item_id>?)",
        "item_links_in",
    ),
    (
        "SELECT id FROM items WHERE collection_id = 7 AND external_key = 'x' AND external_key IS NOT NULL AND \
         trashed_at IS NULL",
        "items USING INDEX items_by_external_key (collection_id=? AND external_key=?)",
        "items_by_external_key",
    ),
    (
        "SELECT last_id, column_id, data FROM item_columns WHERE index_id = 7 AND column_id IN (0, 5) AND last_id > 9 \
         ORDER BY last_id, column_id",
        "item_columns USING INDEX sqlite_autoindex_item_columns_1 (index_id=? AND last_id>?)",
        "item_columns_pkey",
    ),
    (
        "SELECT last_id, column_id, data FROM item_columns WHERE index_id = 7 AND column_id IN (0, 5) AND last_id < 900 \
         ORDER BY last_id DESC, column_id DESC",
        "item_columns USING INDEX sqlite_autoindex_item_columns_1 (index_id=? AND last_id<?)",
        "item_columns_pkey",
    ),
    (
        "SELECT last_id FROM item_columns WHERE index_id = 7 AND column_id = 0 AND last_id >= 9 ORDER BY last_id",
        "item_columns USING COVERING INDEX sqlite_autoindex_item_columns_1 (index_id=? AND last_id>?)",
        "item_columns_pkey",
    ),
    (
        "SELECT item_id FROM item_changes WHERE index_id = 7 ORDER BY id",
        "item_changes USING INDEX item_changes_by_index (index_id=?)",
        "item_changes_by_index",
    ),
];

#[tokio::test]
async fn sqlite_seeks() {
    let data = TestDb::new(Kind::Sqlite);
    for (statement, wanted, _) in STATEMENTS {
        let sql = format!("EXPLAIN QUERY PLAN {statement}").replace("X1", "x'01'").replace("X2", "x'02'");
        let steps =
            data.db.read(move |read| Ok(diesel::sql_query(sql).load::<SqliteStep>(read.connection())?));
        let steps: Vec<String> = steps.await.unwrap().into_iter().map(|step| step.detail).collect();
        assert_eq!(steps, [format!("SEARCH {wanted}")], "{statement}");
    }
    let by_ids = BY_IDS.replace("IDS", "items.id IN (SELECT value FROM json_each('[5,7]'))");
    let sql = format!("EXPLAIN QUERY PLAN {by_ids}");
    let steps = data.db.read(move |read| Ok(diesel::sql_query(sql).load::<SqliteStep>(read.connection())?));
    assert_eq!(steps.await.unwrap()[0].detail, "SEARCH items USING INTEGER PRIMARY KEY (rowid=?)");
}

#[tokio::test]
async fn postgres_seeks() {
    let data = TestDb::new(Kind::Postgres);
    let fill = "INSERT INTO item_keys SELECT i % 5, int8send(i), i FROM generate_series(1, 20000) AS i; \
        INSERT INTO item_columns SELECT i % 5, i, i % 9, int8send(i) FROM generate_series(1, 20000) AS i; \
        INSERT INTO item_changes (index_id, item_id) SELECT i % 20, i FROM generate_series(1, 20000) AS i; ANALYZE; \
        INSERT INTO items (workspace_id, collection_id, data, title, external_key, comment_count, version, created_by, \
        updated_by, created_at, updated_at, trashed_at) SELECT 1, i % 9, '{}', '', i::text, 0, 1, '{}', '{}', now(), now(), \
        CASE WHEN i % 2 = 0 THEN now() END FROM generate_series(1, 20000) AS i; \
        INSERT INTO item_links (workspace_id, collection_id, item_id, field_id, to_kind, to_id, position, version, \
        created_by, created_at, updated_at) SELECT 1, 7, i, i % 4, 'item', (i % 300)::text, 0, 1, '{}', now(), now() \
        FROM generate_series(1, 20000) AS i";
    let filled = data.db.write(move |tx| {
        use diesel::connection::SimpleConnection;
        Ok(tx.connection().batch_execute(fill)?)
    });
    filled.await.unwrap();
    for (statement, _, index) in STATEMENTS {
        // On PostgreSQL the service adds a limit; on SQLite it stops reading.
        let sql = format!("EXPLAIN {statement} LIMIT 21").replace("X1", "'\\x01'").replace("X2", "'\\x02'");
        let steps =
            data.db.read(move |read| Ok(diesel::sql_query(sql).load::<PostgresStep>(read.connection())?));
        let plan: Vec<String> = steps.await.unwrap().into_iter().map(|step| step.step).collect();
        let plan = plan.join("\n");
        assert!(plan.contains(index), "{statement}\n{plan}");
        assert!(!plan.contains("Seq Scan"), "{statement}\n{plan}");
    }
    let sql = format!("EXPLAIN {}", BY_IDS.replace("IDS", "items.id = ANY('{5,7}')"));
    let steps = data.db.read(move |read| Ok(diesel::sql_query(sql).load::<PostgresStep>(read.connection())?));
    let plan: Vec<String> = steps.await.unwrap().into_iter().map(|step| step.step).collect();
    assert!(plan.join("\n").contains("items_pkey"), "{plan:?}");
}
