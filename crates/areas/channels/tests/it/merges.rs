//! Contacts that are merged while something is under way for them.

use crate::support::Desk;
use futures::future::join_all;
use serde_json::{Value, json};
use simulator::User;
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::{Kind, Script, until};

/// Two customers who are one person: both have written and were answered.
struct Person {
    desk: Desk,
    ana: User,
    old: User,
    into: i64,
    from: i64,
}

impl Person {
    async fn new(kind: Kind) -> Self {
        let desk = Desk::open(kind).await;
        let (ana, old) = (desk.customer("Ana", "+5511987654321"), desk.customer("Ana", "+5511912345678"));
        desk.hear(&ana, "Hi").await;
        desk.hear(&old, "Hi").await;
        let contacts = desk.get("/contacts").await.expect(200);
        let id = |phone: &str| {
            let all = contacts.as_array().unwrap();
            all.iter().find(|one| one["data"]["$phone"] == phone).unwrap()["id"].as_i64().unwrap()
        };
        let (into, from) = (id("+5511987654321"), id("+5511912345678"));
        Self { desk, ana, old, into, from }
    }

    async fn merge(&self) {
        self.desk.merge(self.into, self.from, json!({})).await;
    }

    /// What the agent has answered, to either.
    fn answers(&self) -> Vec<String> {
        [self.desk.sent(&self.ana), self.desk.sent(&self.old)].concat()
    }

    async fn asked(&self, times: usize) {
        let prompts = || self.desk.app.model.prompts().len();
        until("the model is asked", async || (prompts() >= times).then_some(())).await;
    }
}

impl Desk {
    /// A broadcast to so many contacts, which is sent slowly and has begun, and their ids.
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
    // The survivor takes the number to which the message went.
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
    // Both are recipients, then the survivor alone, as a merge leaves it that did not see the recipient it had.
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

#[testkit::both]
async fn a_question_whose_answer_is_being_made_is_answered_after_a_merge(kind: Kind) {
    for asks in ["the one who is merged", "the one who remains", "both"] {
        let person = Person::new(kind).await;
        let desk = &person.desk;
        let working = desk.app.service.channels.start();
        let mut questions = 0;
        for (who, user) in [("the one who is merged", &person.old), ("the one who remains", &person.ana)] {
            if asks == who || asks == "both" {
                questions += 1;
                desk.app.model.then(Script::Wait("An answer".to_owned()));
                desk.network.write(&user.user_id, &format!("Question of {who}")).unwrap();
                person.asked(2 + questions).await;
            }
        }
        let given = "SELECT count(*) AS n FROM conversations WHERE reply_run_id IS NOT NULL";
        until("the answers are waited for", async || {
            (desk.count(given).await == i64::try_from(questions).unwrap()).then_some(())
        })
        .await;
        person.merge().await;
        for _ in 0..questions {
            desk.app.model.release();
        }
        let open = "SELECT count(*) AS n FROM conversations WHERE reply_run_id IS NOT NULL OR reply_due_at IS NOT NULL";
        until("all is answered", async || (desk.count(open).await == 0).then_some(())).await;
        assert!(desk.network.wait_until(|_| person.answers().len() >= 3).await, "{asks}: the answer is sent");
        working.stop(Duration::from_secs(5)).await;
        desk.settle().await;
        assert_eq!(person.answers().len(), 3, "{asks}: one answer to all: {:?}", person.answers());
        assert_eq!(desk.count("SELECT count(*) AS n FROM conversations").await, 1, "{asks}");
        // What was asked of the model last knows every question that is answered last.
        if asks == "both" {
            let texts = desk.app.model.last_texts();
            let last = texts.last().unwrap();
            assert!(last.contains("merged") && last.contains("remains"), "{texts:?}");
        }
    }
}
