//! What migrations make of rows that are there.

use billing::schema::{agent_months, energy_holds};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use model::WorkspaceId;
use store::logs::{Logs, Retentions};
use store::schema::{events, log_sizes};
use testkit::{Kind, TestDb};

/// The statements that take a migration back, make rows of before, and apply it again.
async fn upgrade(test: &TestDb, steps: [&'static str; 3]) {
    let upgrade = test.db.write(move |tx| {
        for step in steps {
            store::each!(tx.connection(), |connection| connection.batch_execute(step))?;
        }
        Ok(())
    });
    upgrade.await.unwrap();
}

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

/// What agents 3 and 4 have spent: `run_1` holds in December and goes on in January, `run_2` was given back, and the
/// holds of the others are gone.
const SPENT: &str = "
    INSERT INTO runs (workspace_id, id, livemode, agent_id, agent_version, status, conversation_id, ephemeral, model,
        input_tokens, cached_tokens, output_tokens, reasoning_tokens, model_calls, tool_calls, energy,
        simulated_energy, options, metadata, key_id, key_lineage, request_id, epoch, queued_at)
        VALUES (7, 'run_1', TRUE, 3, 1, 'in_progress', 'c', FALSE, 'fast', 0, 0, 0, 0, 0, 0, 0, 0, '{}', '{}',
        'key_1', 'key_1', 'req_1', 1, '2025-12-31 23:59:00');
    INSERT INTO energy_holds (run_id, workspace_id, key_lineage, month, amount, used, reserved_micros, state,
        expires_at, created_at)
        VALUES ('run_1', 7, 'key_1', '2025-12', 50, 30, 0, 'open', '2026-01-01 00:15:00', '2025-12-31 23:59:00'),
        ('run_2', 7, 'key_1', '2026-01', 9, 0, 0, 'settled', '2026-01-01 00:15:00', '2026-01-01 00:00:00');
    INSERT INTO energy_entries (workspace_id, id, kind, amount, balance_after, counter_account, usd_micros,
        source_type, source_id, step, agent_id, operation, created_at)
        VALUES (7, 'led_1', 'debit', -10, 0, 'consumed', 0, 'run', 'run_1', 1, 3, 'run', '2025-12-31 23:59:00'),
        (7, 'led_2', 'debit', -20, 0, 'consumed', 0, 'run', 'run_1', 2, 3, 'run', '2026-01-01 00:00:00'),
        (7, 'led_3', 'debit', -9, 0, 'consumed', 0, 'run', 'run_2', 1, 3, 'run', '2026-01-01 00:00:00'),
        (7, 'led_4', 'refund', 9, 0, 'consumed', 0, 'run', 'run_2', 1, 3, 'run', '2026-01-01 00:00:00'),
        (7, 'led_5', 'absorb', 4, 0, 'platform_absorbed', 0, 'run', 'run_2', 1, 3, 'run', '2026-01-01 00:00:00'),
        (7, 'led_6', 'debit', -7, 0, 'consumed', 0, 'run', 'run_3', 1, 3, 'run', '2026-01-01 00:00:00'),
        (7, 'led_7', 'debit', -5, 0, 'consumed', 0, 'run', 'run_4', 1, 4, 'run', '2026-01-01 00:00:00'),
        (7, 'led_8', 'grant', 99, 0, 'funding', 0, 'grant', 'grt_1', 1, NULL, 'grant', '2026-01-01 00:00:00');";

/// What logs had before they were counted: of workspace 7 and of none.
const LOGGED: &str = "
    INSERT INTO workspaces (id, slug, name, subscription_status, cancel_at_period_end, created_at, updated_at)
        VALUES (7, 'seven', 'Seven', 'active', FALSE, '2026-01-01 00:00:00', '2026-01-01 00:00:00'),
        (8, 'eight', 'Eight', 'active', FALSE, '2026-01-01 00:00:00', '2026-01-01 00:00:00');
    INSERT INTO request_logs (id, created_at, workspace_id, method, path, status, latency_us, energy, replayed)
        VALUES ('req_2', '2026-01-01 00:00:00', 7, 'GET', '/me', 200, 1, 0, FALSE),
        ('req_1', '2026-01-01 00:00:00', NULL, 'GET', '/me', 401, 1, 0, FALSE);
    INSERT INTO events (id, workspace_id, kind, livemode, data, created_at, position)
        VALUES ('evt_1', 7, 'run.completed', TRUE, '{}', '2026-01-01 00:00:00', 42),
        ('evt_2', 7, 'run.completed', TRUE, '{}', '2026-01-01 00:00:00', 43),
        ('evt_3', 7, 'run.completed', TRUE, '{}', '2026-01-01 00:00:00', NULL);
    INSERT INTO webhook_deliveries (id, workspace_id, endpoint_id, event_id, form, event_type, livemode, origin, status,
        attempts, created_at)
        VALUES ('dlv_1', 7, 'whe_1', 'evt_2', 'full', 'run.completed', TRUE, 'automatic', 'pending', 1,
        '2026-01-01 00:00:00');
    INSERT INTO webhook_attempts (delivery_id, n, workspace_id, attempted_at, duration_ms, request_headers)
        VALUES ('dlv_1', 1, 7, '2026-01-01 00:00:00', 1, '{}');
    INSERT INTO webhook_bodies (event_id, form, workspace_id, body, created_at)
        VALUES ('evt_2', 'full', 7, '{}', '2026-01-01 00:00:00'),
        ('evt_0', 'full', 7, '{}', '2026-01-01 00:00:00');";

#[testkit::both]
async fn logs_are_counted_as_they_are(kind: Kind) {
    // With the migration after it, whose columns the program reads.
    let steps = match kind {
        Kind::Sqlite => [
            concat!(
                include_str!("../../../../../migrations/sqlite/0017_monitoring/down.sql"),
                include_str!("../../../../../migrations/sqlite/0015_log_sizes/down.sql"),
            ),
            LOGGED,
            concat!(
                include_str!("../../../../../migrations/sqlite/0015_log_sizes/up.sql"),
                include_str!("../../../../../migrations/sqlite/0017_monitoring/up.sql"),
                // The older migrations make this table anew.
                include_str!("../../../../../migrations/sqlite/0068_request_interface/up.sql"),
                include_str!("../../../../../migrations/sqlite/0069_request_reasons/up.sql"),
            ),
        ],
        Kind::Postgres => [
            concat!(
                include_str!("../../../../../migrations/postgres/0017_monitoring/down.sql"),
                include_str!("../../../../../migrations/postgres/0015_log_sizes/down.sql"),
            ),
            LOGGED,
            concat!(
                include_str!("../../../../../migrations/postgres/0015_log_sizes/up.sql"),
                include_str!("../../../../../migrations/postgres/0017_monitoring/up.sql"),
            ),
        ],
    };
    let test = TestDb::new(kind);
    upgrade(&test, steps).await;
    let columns = (log_sizes::log, log_sizes::workspace_id, log_sizes::row_count, log_sizes::purged_to);
    let sizes: Vec<(String, i64, i64, i64)> = test
        .db
        .read(move |read| {
            let sizes = log_sizes::table.order((log_sizes::log, log_sizes::workspace_id));
            Ok(sizes.select(columns).load(read.connection())?)
        })
        .await
        .unwrap();
    let rows = |log: &str, workspace, rows, purged_to| (log.to_owned(), workspace, rows, purged_to);
    assert_eq!(
        sizes,
        [
            rows("events", 7, 2, 41),
            rows("events", 8, 0, 41),
            rows("request_logs", 0, 1, 0),
            rows("request_logs", 7, 1, 0),
            rows("webhook_deliveries", 7, 1, 0),
        ]
    );
    // Deleting all of it by the rules of the program comes out even.
    let logs = Logs::new(&server::log_kinds().unwrap(), &Retentions::default()).unwrap();
    for (log, workspace, ..) in sizes.into_iter().filter(|(_, _, rows, _)| *rows > 0) {
        let log = logs.find(&log).unwrap();
        test.db.write(move |tx| log.evict(tx, WorkspaceId(workspace), i64::MAX)).await.unwrap();
    }
    let left: Vec<(String, i64, i64)> = test
        .db
        .read(|read| {
            let left = log_sizes::table.filter(log_sizes::bytes.ne(0)).order(log_sizes::log);
            Ok(left
                .select((log_sizes::log, log_sizes::row_count, log_sizes::workspace_id))
                .load(read.connection())?)
        })
        .await
        .unwrap();
    // The newest event and a pending delivery stay.
    assert_eq!(left, [("events".to_owned(), 1, 7), ("webhook_deliveries".to_owned(), 1, 7)]);
}

#[testkit::both]
async fn old_events_get_the_keys_that_the_request_log_knows(kind: Kind) {
    let steps = match kind {
        Kind::Sqlite => [
            include_str!("../../../../../migrations/sqlite/0008_event_causes/down.sql"),
            OLD,
            include_str!("../../../../../migrations/sqlite/0008_event_causes/up.sql"),
        ],
        Kind::Postgres => [
            include_str!("../../../../../migrations/postgres/0008_event_causes/down.sql"),
            OLD,
            include_str!("../../../../../migrations/postgres/0008_event_causes/up.sql"),
        ],
    };
    let test = TestDb::new(kind);
    upgrade(&test, steps).await;
    let columns = (events::key_id, events::actor, events::root_event_id, events::depth);
    let rows: Vec<Row> = test
        .db
        .read(move |read| Ok(events::table.order(events::id).select(columns).load(read.connection())?))
        .await
        .unwrap();
    let actor = r#"{"type":"api_key","id":"key_1"}"#.to_owned();
    assert_eq!(
        rows,
        [(Some("key_1".to_owned()), Some(actor), None, 0), (None, None, None, 0), (None, None, None, 0)]
    );
}

#[testkit::both]
async fn agents_have_spent_what_the_ledger_says(kind: Kind) {
    let steps = match kind {
        Kind::Sqlite => [
            include_str!("../../../../../migrations/sqlite/0009_agent_months/down.sql"),
            SPENT,
            include_str!("../../../../../migrations/sqlite/0009_agent_months/up.sql"),
        ],
        Kind::Postgres => [
            include_str!("../../../../../migrations/postgres/0009_agent_months/down.sql"),
            SPENT,
            include_str!("../../../../../migrations/postgres/0009_agent_months/up.sql"),
        ],
    };
    let test = TestDb::new(kind);
    upgrade(&test, steps).await;
    let months: Vec<(i64, i64, String, i64)> = test
        .db
        .read(|read| {
            Ok(agent_months::table
                .order((agent_months::agent_id, agent_months::month))
                .load(read.connection())?)
        })
        .await
        .unwrap();
    assert_eq!(
        months,
        [(7, 3, "2025-12".into(), 30), (7, 3, "2026-01".into(), 7), (7, 4, "2026-01".into(), 5)]
    );
    let holds: Vec<(String, i64)> = test
        .db
        .read(|read| {
            let columns = (energy_holds::run_id, energy_holds::agent_id);
            Ok(energy_holds::table.order(energy_holds::run_id).select(columns).load(read.connection())?)
        })
        .await
        .unwrap();
    assert_eq!(holds, [("run_1".into(), 3), ("run_2".into(), 0)]);
}
