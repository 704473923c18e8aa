//! Broadcasts that are paused and cancelled by people and by the service.

use crate::support::{all, open};
use futures::future::join_all;
use serde_json::{Value, json};
use testkit::Kind;
#[testkit::both]
async fn a_pause_stops_it_and_nobody_is_written_to_twice(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(30).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 240 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 4);
    desk.seconds(1).await;
    let before = desk.messages().await.len();
    assert!((7..=9).contains(&before), "{before}");
    for _ in 0..2 {
        let paused = desk.act(id, "pause").await;
        assert_eq!((&paused["status"], &paused["pause_reason"]), (&json!("paused"), &json!("requested")));
    }
    desk.seconds(3).await;
    assert_eq!(desk.messages().await.len(), before);
    assert_eq!(desk.act(id, "send").await["status"], "sending");
    // Several concurrent runners, each of which tries to do all the work.
    desk.app
        .sql(
            "INSERT INTO jobs (workspace_id, kind, payload, run_at, attempts, epoch, created_at) \
             SELECT workspace_id, kind, payload, run_at, 0, 0, created_at FROM jobs WHERE kind = 'broadcasts.run'",
        )
        .await;
    for _ in 0..12 {
        desk.app.data.clock.advance(chrono::Duration::seconds(1));
        join_all((0..4).map(|_| desk.run())).await;
        for row in desk.recipients(id, "state=claimed").await {
            desk.report(&row, "sent", None).await;
        }
    }
    let mut keys: Vec<_> = desk.messages().await.into_iter().map(|(contact, _, _)| contact).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), desk.messages().await.len()), (30, 30));
    assert_eq!(desk.broadcast(id).await["status"], "completed");
}

#[testkit::both]
async fn a_cancelled_broadcast_keeps_what_was_sent(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(6).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 120 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    let rows = desk.recipients(id, "state=claimed").await;
    desk.report(&rows[0], "sent", None).await;
    assert_eq!(desk.act(id, "cancel").await["status"], "cancelling");
    desk.run().await;
    assert_eq!(desk.act(id, "cancel").await["status"], "cancelled");
    desk.seconds(3).await;
    let counts = desk.broadcast(id).await["counts"].clone();
    assert_eq!(
        (&counts["sent"], &counts["cancelled"], desk.messages().await.len()),
        (&json!(1), &json!(5), 2)
    );
    for what in ["send", "pause"] {
        desk.post(&format!("/broadcasts/{id}/{what}"), json!({})).await.expect_error(409, "invalid_state");
    }
    assert_eq!(desk.broadcast_events().await, ["broadcast.started", "broadcast.cancelled"]);
}

#[testkit::both]
async fn trouble_pauses_it_by_itself(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(60).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 60 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    for (table, column, broken, fixed, reason) in [
        ("message_templates", "status", "paused", "approved", "template_not_approved"),
        ("channels", "status", "disconnected", "connected", "channel_disconnected"),
        ("channels", "quality", "low", "high", "quality_low"),
    ] {
        desk.app.sql(format!("UPDATE {table} SET {column} = '{broken}'")).await;
        desk.seconds(1).await;
        let paused = desk.broadcast(id).await;
        assert_eq!((&paused["status"], &paused["pause_reason"]), (&json!("paused"), &json!(reason)));
        if column == "status" {
            desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect_error(409, reason);
        }
        desk.app.sql(format!("UPDATE {table} SET {column} = '{fixed}'")).await;
        let resumed = desk.act(id, "send").await;
        assert_eq!((&resumed["status"], &resumed["pause_reason"]), (&json!("sending"), &Value::Null));
    }
    let fail = async |count: usize, code: &'static str| {
        while desk.recipients(id, "state=claimed").await.len() < count {
            desk.seconds(1).await;
        }
        for row in desk.recipients(id, "state=claimed").await.iter().take(count) {
            desk.report(row, "failed", Some(code)).await;
        }
        desk.seconds(1).await;
        desk.broadcast(id).await["pause_reason"].clone()
    };
    assert_eq!(fail(1, "messaging_limit").await, "messaging_limit");
    desk.app.data.clock.advance(chrono::Duration::seconds(1));
    desk.act(id, "send").await;
    assert_eq!(fail(10, "undeliverable").await, Value::Null);
    assert_eq!(fail(11, "undeliverable").await, "failure_rate");
    desk.app.data.clock.advance(chrono::Duration::seconds(1));
    desk.act(id, "send").await;
    let workspace = desk.workspace;
    desk.app.db().write(move |tx| auth::workspaces::block(tx, workspace, "unpaid")).await.unwrap();
    desk.seconds(1).await;
    desk.app.db().write(move |tx| auth::workspaces::unblock(tx, workspace)).await.unwrap();
    desk.app.service.pipeline.directory.forget();
    assert_eq!(desk.broadcast(id).await["pause_reason"], "workspace_blocked");
    assert_eq!(desk.broadcast_events().await.iter().filter(|kind| *kind == "broadcast.paused").count(), 6);
}
