//! Contacts that are merged while something is under way for them.

use crate::support::Desk;
use serde_json::json;
use simulator::User;
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
        let body = json!({ "source_id": self.from });
        self.desk.post(&format!("/contacts/{}/merge", self.into), body).await.expect(200);
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
