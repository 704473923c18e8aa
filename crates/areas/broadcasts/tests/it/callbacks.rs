//! A broadcast that is sent while its recipients write and statuses of its messages arrive.

use crate::support::Desk;
use futures::future::join_all;
use serde_json::json;
use simulator::{Faults, User};
use std::time::Duration;
use testkit::{Kind, until};

const CUSTOMERS: usize = 40;
const BROADCASTS: usize = 5;

#[testkit::both]
async fn sending_and_hearing_wait_for_each_other_in_one_order(kind: Kind) {
    // Keep agents from answering; the clock hardly advances.
    let desk = Desk::with_settings(kind, |settings| settings.reply_debounce_ms = 60_000).await;
    let customers: Vec<User> =
        (0..CUSTOMERS).map(|number| desk.customer("Ana", &format!("+55119876{number:05}"))).collect();
    // The contacts are created in one order and write in another.
    for customer in &customers {
        desk.network.write(&customer.user_id, "Hi").unwrap();
    }
    desk.settle().await;
    let contacts = desk.get("/contacts?limit=100").await.expect(200);
    let contacts: Vec<i64> =
        contacts.as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect();
    desk.network.set_faults(Faults { reorder: 0.3, batch: 0.7, early_status: 0.3, ..Faults::default() });
    desk.template("notice", "utility", "We are open again.", &[]).await;
    let mut ids = Vec::new();
    for _ in 0..BROADCASTS {
        ids.push(desk.broadcast_to_all(json!({})).await);
    }
    let before = (desk.app.db().stats().retries, desk.app.data.deadlocks().await);
    let working = desk.app.service.channels.start();
    let sending = async {
        for _ in 0..BROADCASTS {
            desk.app.service.jobs.run_due().await.unwrap();
            desk.app.data.clock.advance(chrono::Duration::milliseconds(250));
        }
    };
    let writing = async {
        for round in 0..4 {
            for customer in customers.iter().rev() {
                desk.network.write(&customer.user_id, &format!("Round {round}")).unwrap();
            }
            assert!(desk.network.wait_until(simulator::Simulator::is_quiet).await);
        }
    };
    let operating = async {
        for contact in &contacts {
            let message = json!({ "text": "From a person" });
            let path = format!("/contacts/{contact}/operator-messages");
            let sends = (0..2).map(|_| desk.post(&path, message.clone()));
            for sent in join_all(sends).await {
                sent.expect(200);
            }
        }
    };
    tokio::join!(sending, writing, operating);
    let left = "SELECT (SELECT count(*) FROM channel_callbacks WHERE status <> 'done') + (SELECT count(*) FROM message_outbox) AS n";
    until("all is taken apart and sent", async || {
        (desk.network.is_quiet() && desk.count(left).await == 0).then_some(())
    })
    .await;
    working.stop(Duration::from_secs(5)).await;
    desk.let_pass(4).await;
    let after = (desk.app.db().stats().retries, desk.app.data.deadlocks().await);
    assert_eq!(after, before, "transactions waited for each other");
    assert_eq!(
        desk.count("SELECT count(*) AS n FROM messages WHERE direction = 'inbound'").await,
        i64::try_from(CUSTOMERS * 5).unwrap()
    );
    for id in ids {
        assert_eq!(desk.get(&format!("/broadcasts/{id}")).await.expect(200)["status"], "completed");
        let states = desk.recipients_of(id).await;
        assert!(states.iter().all(|(_, state)| state == "delivered"), "{states:?}");
    }
    let templates = desk.network.transcript().iter().filter(|sent| sent.kind == "template").count();
    assert_eq!(templates, BROADCASTS * CUSTOMERS);
    assert_eq!(desk.count("SELECT count(*) AS n FROM early_statuses").await, 0);
    assert_eq!(
        desk.count("SELECT count(*) AS n FROM channel_callbacks WHERE attempts > 0").await,
        0,
        "none had to be tried again"
    );
}
