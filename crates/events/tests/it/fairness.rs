//! Fairness between workspaces: whoever has much to deliver does not keep others waiting. By the order in which deliveries
//! arrive, not by time.

use crate::{contact, key, subscribe};
use chrono::Duration;
use serde_json::json;
use testkit::{Answering, Key, Receiver, TestApp, until};

/// A workspace with so many endpoints.
async fn workspace(app: &TestApp, receiver: &Receiver, path: &str, endpoints: usize) -> Key {
    let key = key(app).await;
    for _ in 0..endpoints {
        subscribe(app, &key, &receiver.url(path), json!({})).await;
    }
    key
}

async fn emit(app: &TestApp, key: &Key, count: i64) {
    let workspace = key.workspace;
    let told = app.db().write(move |tx| {
        for number in 0..count {
            tx.emit(workspace, None, &contact(number, "a"))?;
        }
        Ok(())
    });
    told.await.unwrap();
}

/// How many deliveries of others arrived before the first one on this path.
fn before(receiver: &Receiver, path: &str) -> usize {
    receiver.delivered().iter().position(|one| one.path == path).unwrap()
}

testkit::on_both! {
    async fn a_workspace_with_one_delivery_does_not_wait_for_one_with_many(kind: Kind) {
        let app = TestApp::new(kind).await;
        let receiver = Receiver::start().await;
        // Each delivery takes its time, and all of this workspace wait longer than the other's one.
        let clock = app.data.clock.clone();
        receiver.answer(move |_| {
            clock.advance(Duration::milliseconds(10));
            Answering::Slow(std::time::Duration::from_millis(1))
        });
        let many = workspace(&app, &receiver, "/many", 20).await;
        let one = workspace(&app, &receiver, "/one", 1).await;
        emit(&app, &many, 30).await;
        emit(&app, &one, 1).await;
        app.deliver().await;
        assert_eq!(receiver.count(), 20 * 30 + 1);
        let before = before(&receiver, "/one");
        assert!(before <= 192, "{before} of the other workspace's deliveries went first: more than its share");
    }

    async fn endpoints_with_a_backlog_take_turns_with_those_that_come_later(kind: Kind) {
        let app = TestApp::new(kind).await;
        let receiver = Receiver::start().await;
        let clock = app.data.clock.clone();
        receiver.answer(move |_| {
            clock.advance(Duration::milliseconds(10));
            Answering::status(200)
        });
        // As many as fill what one process holds, in workspaces that each keep to their share.
        let mut busy = Vec::new();
        for _ in 0..4 {
            busy.push(workspace(&app, &receiver, "/many", 4).await);
        }
        let late = workspace(&app, &receiver, "/late", 1).await;
        for key in &busy {
            emit(&app, key, 150).await;
        }
        let came_late = async {
            until("the others are under way", async || (receiver.count() > 600).then_some(())).await;
            emit(&app, &late, 1).await;
            receiver.count()
        };
        let (_, came) = tokio::join!(app.deliver(), came_late);
        app.deliver().await;
        assert_eq!(receiver.count(), 4 * 4 * 150 + 1);
        let before = before(&receiver, "/late");
        // What was loaded when it came, and what the endpoints that made room for it had loaded once more.
        assert!(before < came + 1000, "it came behind {came} and was sent behind {before} of {}", receiver.count());
    }
}
