//! What migrations make of rows that are there.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use store::schema::events;
use testkit::{Kind, TestDb};

/// Key, actor, root and depth of an event.
type Row = (Option<String>, Option<String>, Option<String>, i64);

/// A request with a log row, one without, and none: three events of the version before.
const OLD: &str = "
    INSERT INTO request_logs (id, created_at, key_id, method, path, status, latency_us, energy, replayed)
        VALUES ('req_1', '2026-01-01 00:00:00', 'key_1', 'POST', '/runs', 200, 1, 0, FALSE);
    INSERT INTO events (id, workspace_id, kind, livemode, data, request_id, created_at)
        VALUES ('evt_1', 7, 'run.completed', TRUE, '{}', 'req_1', '2026-01-01 00:00:00');
    INSERT INTO events (id, workspace_id, kind, livemode, data, request_id, created_at)
        VALUES ('evt_2', 7, 'run.completed', TRUE, '{}', 'req_2', '2026-01-01 00:00:00');
    INSERT INTO events (id, workspace_id, kind, livemode, data, request_id, created_at)
        VALUES ('evt_3', 7, 'billing.threshold', TRUE, '{}', NULL, '2026-01-01 00:00:00');";

testkit::on_both! {
    async fn old_events_get_the_keys_that_the_request_log_knows(kind: Kind) {
        let steps = match kind {
            Kind::Sqlite => [
                include_str!("../../../../migrations/sqlite/0008_event_causes/down.sql"),
                OLD,
                include_str!("../../../../migrations/sqlite/0008_event_causes/up.sql"),
            ],
            Kind::Postgres => [
                include_str!("../../../../migrations/postgres/0008_event_causes/down.sql"),
                OLD,
                include_str!("../../../../migrations/postgres/0008_event_causes/up.sql"),
            ],
        };
        let test = TestDb::new(kind);
        let upgrade = test.db.write(move |tx| {
            for step in steps {
                store::each!(tx.connection(), |connection| connection.batch_execute(step))?;
            }
            Ok(())
        });
        upgrade.await.unwrap();
        let columns = (events::key_id, events::actor, events::root_event_id, events::depth);
        let rows: Vec<Row> = test
            .db
            .read(move |read| Ok(events::table.order(events::id).select(columns).load(read.connection())?))
            .await
            .unwrap();
        let actor = r#"{"type":"api_key","id":"key_1"}"#.to_owned();
        assert_eq!(rows, [(Some("key_1".to_owned()), Some(actor), None, 0), (None, None, None, 0), (None, None, None, 0)]);
    }
}
