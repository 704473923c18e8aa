//! Fairness between workspaces: whoever has much to deliver does not keep others waiting. By the order in which deliveries
//! arrive, not by time.

use crate::{contact, key};
use ::webhooks::schema::webhook_queues;
use chrono::Duration;
use diesel::prelude::*;
use model::{Cause, Timestamp};
use serde_json::json;
use testkit::{Answering, Key, Kind, Receiver, TestApp, until};

/// A workspace with so many endpoints.
async fn workspace(app: &TestApp, receiver: &Receiver, path: &str, endpoints: usize) -> Key {
    let key = key(app).await;
    for _ in 0..endpoints {
        app.subscribe(&key, &receiver.url(path), json!({})).await;
    }
    key
}

async fn emit(app: &TestApp, key: &Key, count: i64) {
    let workspace = key.workspace;
    let reported = app.db().write(move |tx| {
        for number in 0..count {
            tx.emit(workspace, &Cause::system("test"), true, &contact(number, "a"))?;
        }
        Ok(())
    });
    reported.await.unwrap();
}

/// When each queue of a workspace is due.
async fn due(app: &TestApp, key: &Key) -> Vec<Option<Timestamp>> {
    let workspace = key.workspace;
    let due = app.db().read(move |read| {
        let own = webhook_queues::table.filter(webhook_queues::workspace_id.eq(workspace));
        Ok(own.select(webhook_queues::due_at).load(read.connection())?)
    });
    due.await.unwrap()
}

#[testkit::both]
async fn one_delivery_does_not_wait_for_the_many_of_other_workspaces(kind: Kind) {
    let app = TestApp::new(kind).await;
    let receiver = Receiver::start().await;
    receiver.answer(|_| Answering::Slow(std::time::Duration::from_millis(20)));
    let many = [workspace(&app, &receiver, "/many", 20).await, workspace(&app, &receiver, "/many", 20).await];
    let one = workspace(&app, &receiver, "/one", 1).await;
    for key in &many {
        emit(&app, key, 20).await;
    }
    // It comes when the others are under way, and all their endpoints have waited for longer.
    let comes = async {
        until("the others are under way", async || (receiver.count() > 0).then_some(())).await;
        app.data.clock.advance(Duration::seconds(1));
        emit(&app, &one, 1).await;
        receiver.count()
    };
    let (_, came) = tokio::join!(app.deliver(), comes);
    app.deliver().await;
    let delivered = receiver.delivered();
    assert_eq!(delivered.len(), 2 * 20 * 20 + 1);
    let before = delivered.iter().position(|one| one.path == "/one").unwrap();
    // What was loaded when it came, a share for each of the others, and what goes out beside it.
    assert!(before < came + 2 * 192 + 64, "it came behind {came} others and went behind {before}");
}

#[testkit::both]
async fn an_endpoint_that_makes_room_goes_to_the_end_of_the_line(kind: Kind) {
    let app = TestApp::new(kind).await;
    let receiver = Receiver::start().await;
    let clock = app.data.clock.clone();
    receiver.answer(move |_| {
        clock.advance(Duration::milliseconds(1));
        Answering::status(200)
    });
    // More than are held at once.
    let key = workspace(&app, &receiver, "/", 20).await;
    emit(&app, &key, 100).await;
    let began = app.db().now();
    let behind = async || due(&app, &key).await.into_iter().flatten().any(|due| due > began);
    let (_, ()) = tokio::join!(
        app.deliver(),
        until("a queue stands behind those that waited since the beginning", async || {
            behind().await.then_some(())
        })
    );
    assert_eq!(receiver.count(), 20 * 100);
    assert_eq!(due(&app, &key).await, [None; 20], "nothing waits any more");
}
