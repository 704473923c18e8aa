//! Contacts that are merged while a broadcast is sent to them.

use crate::support::Desk;
use futures::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::Kind;

impl Desk {
    /// Starts a slow broadcast to this many contacts. Returns its id and theirs.
    async fn begun_broadcast(&self, contacts: usize) -> (i64, Vec<i64>) {
        let mut ids = Vec::new();
        for number in 0..contacts {
            ids.push(self.contact("Ana", &format!("+551198765430{number}")).await);
        }
        self.template("notice", "utility", "We are open again.", &[]).await;
        let id = self.broadcast_to_all(json!({ "throttle": { "rate_per_minute": 60 } })).await;
        self.let_pass(1).await;
        (id, ids)
    }

    async fn merge(&self, into: i64, from: i64, more: Value) {
        let mut body = json!({ "source_id": from });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post(&format!("/contacts/{into}/merge"), body).await.expect(200);
    }
}

#[testkit::both]
async fn who_was_written_to_gets_nothing_more_by_a_merge(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (id, ids) = desk.begun_broadcast(4).await;
    let pending = desk.recipients_of(id).await.iter().filter(|(_, state)| state == "pending").count();
    assert!((1..=3).contains(&pending), "{pending}");
    // The survivor takes over the number to which the message was sent.
    desk.merge(ids[3], ids[0], json!({ "prefer": "source" })).await;
    desk.let_pass(6).await;
    let states: Vec<String> = desk.recipients_of(id).await.into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["delivered", "delivered", "delivered", "merged"]);
    let addresses: Vec<String> = desk.network.transcript().into_iter().map(|sent| sent.to).collect();
    assert_eq!(addresses.iter().collect::<BTreeSet<_>>().len(), 3, "{addresses:?}");
    assert_eq!(addresses.len(), 3, "{addresses:?}");
}

#[testkit::both]
async fn who_is_merged_while_both_messages_wait_gets_one(kind: Kind) {
    let desk = Desk::open(kind).await;
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(desk.contact("Ana", &format!("+55119876500{number:02}")).await);
    }
    desk.template("notice", "utility", "We are open again.", &[]).await;
    let id = desk.broadcast_to_all(json!({})).await;
    let all_claimed =
        async || desk.recipients_of(id).await.iter().filter(|(_, state)| state == "claimed").count() == 3;
    for _ in 0..10 {
        if !all_claimed().await {
            desk.app.service.jobs.run_due().await.unwrap();
            desk.app.data.clock.advance(chrono::Duration::milliseconds(200));
        }
    }
    assert!(all_claimed().await, "{:?}", desk.recipients_of(id).await);
    desk.merge(ids[1], ids[0], json!({})).await;
    desk.let_pass(6).await;
    let mut recipients = desk.recipients_of(id).await;
    recipients.sort();
    let expected = [(ids[0], "merged"), (ids[1], "delivered"), (ids[2], "delivered")];
    assert_eq!(recipients, expected.map(|(contact, state)| (contact, state.to_owned())));
    assert_eq!(desk.network.transcript().len(), 2);
    assert_eq!(desk.get(&format!("/broadcasts/{id}")).await.expect(200)["status"], "completed");
}

#[testkit::both]
async fn who_was_merged_before_becoming_a_recipient_gets_it_as_the_one_who_remains(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (id, ids) = desk.begun_broadcast(5).await;
    let pending: Vec<i64> = desk
        .recipients_of(id)
        .await
        .into_iter()
        .filter_map(|(contact, state)| (state == "pending").then_some(contact))
        .collect();
    assert!(pending.len() >= 3, "{pending:?}");
    let (first, second, third) = (pending[0], pending[1], pending[2]);
    // The state that a merge leaves behind if it misses a recipient: once with both contacts as recipients, once with
    // the merged one alone.
    desk.merge(first, second, json!({})).await;
    desk.app.sql(format!("UPDATE broadcast_recipients SET state = 'pending', skip_reason = NULL WHERE contact_id = {second}")).await;
    let other = desk.contact("Ana", "+5511987654399").await;
    desk.merge(other, third, json!({})).await;
    desk.app
        .sql(format!("UPDATE broadcast_recipients SET contact_id = {third} WHERE contact_id = {other}"))
        .await;
    desk.let_pass(8).await;
    let mut expected: Vec<(i64, String)> = ids
        .iter()
        .filter(|one| ![second, third].contains(one))
        .map(|one| (*one, "delivered".to_owned()))
        .collect();
    expected.extend([(other, "delivered".to_owned()), (second, "merged".to_owned())]);
    expected.sort();
    let mut recipients = desk.recipients_of(id).await;
    recipients.sort();
    assert_eq!(recipients, expected);
    assert_eq!(desk.network.transcript().len(), 4);
}

#[testkit::both]
async fn merges_while_a_broadcast_is_sent_lose_and_double_nothing(kind: Kind) {
    let desk = Desk::open(kind).await;
    let mut pairs = Vec::new();
    for number in 0..20 {
        let one = desk.contact("Ana", &format!("+55119876500{number:02}")).await;
        pairs.push((one, desk.contact("Ana", &format!("+55119876600{number:02}")).await));
    }
    desk.template("notice", "utility", "We are open again.", &[]).await;
    let id = desk.broadcast_to_all(json!({})).await;
    let before = desk.app.db().stats().retries;
    let sending = async {
        for _ in 0..10 {
            desk.app.service.jobs.run_due().await.unwrap();
            desk.app.data.clock.advance(chrono::Duration::milliseconds(200));
        }
    };
    let merging = async {
        for some in pairs.chunks(4) {
            join_all(some.iter().map(|(into, from)| desk.merge(*into, *from, json!({})))).await;
        }
    };
    tokio::join!(sending, merging);
    desk.let_pass(8).await;
    assert_eq!(desk.get(&format!("/broadcasts/{id}")).await.expect(200)["status"], "completed");
    let recipients = desk.recipients_of(id).await;
    for (contact, state) in &recipients {
        assert!(["delivered", "merged"].contains(&state.as_str()), "{contact} is {state} of {recipients:?}");
    }
    let states: Vec<String> = recipients.into_iter().map(|(_, state)| state).collect();
    let sent = desk.network.transcript();
    let addresses: BTreeSet<&String> = sent.iter().map(|sent| &sent.to).collect();
    assert_eq!(addresses.len(), sent.len(), "an address got it twice");
    assert_eq!(sent.len(), states.iter().filter(|state| *state == "delivered").count());
    assert!(sent.len() >= pairs.len(), "everyone got it: {}", sent.len());
    let lost = "SELECT count(*) AS n FROM messages WHERE contact_id NOT IN (SELECT id FROM items WHERE trashed_at IS NULL)";
    assert_eq!(desk.count(lost).await, 0, "messages belong to whom the merge left");
    assert_eq!(desk.app.db().stats().retries, before, "nobody waited for each other");
}
