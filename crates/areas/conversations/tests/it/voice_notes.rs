//! Voice notes: for half a minute a message waits for what is said in it.

use crate::support::Desk;
use bytes::Bytes;
use chrono::Duration;
use conversations::Transcriber;
use model::Result;
use operation::BoxFuture;
use serde_json::{Value, json};
use simulator::Action;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{Kind, TestApp, until};
use tokio::sync::Semaphore;

/// Hears what it is told to hear, when it is let.
struct Listener {
    asked: AtomicUsize,
    answers: Arc<Semaphore>,
}

impl Transcriber for Listener {
    fn transcribe(&self, _: Bytes, _: String) -> BoxFuture<Result<String>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answers = self.answers.clone();
        Box::pin(async move {
            answers.acquire().await.unwrap().forget();
            Ok("Where is my order?".to_owned())
        })
    }
}

struct Office {
    desk: Desk,
    listener: Arc<Listener>,
    ana: simulator::User,
}

impl Office {
    /// A customer has spoken, and the transcriber is at it; then time passes.
    async fn wait_for(kind: Kind, seconds: i64) -> (Self, conversations::Working) {
        let listener =
            Arc::new(Listener { asked: AtomicUsize::new(0), answers: Arc::new(Semaphore::new(0)) });
        let app = TestApp::with_transcriber(kind, listener.clone()).await;
        let desk = Desk::around(app, |_| {}).await;
        let ana = desk.customer("Ana", "+5511987654321");
        let working = desk.app.service.channels.start();
        desk.network.act(&ana.user_id, &Action::VoiceNote { words: "?".to_owned() }).unwrap();
        until("the voice note is transcribed", async || {
            (listener.asked.load(Ordering::SeqCst) == 1).then_some(())
        })
        .await;
        // Its event keeps those of later messages waiting.
        desk.network.write(&ana.user_id, "Hello?").unwrap();
        let heard = "SELECT count(*) AS n FROM messages WHERE direction = 'inbound'";
        until("the text is there", async || (desk.count(heard).await == 2).then_some(())).await;
        assert_eq!(desk.received().await, Vec::<Value>::new());
        let patient = "SELECT count(*) AS n FROM conversations WHERE reply_due_at > updated_at";
        assert_eq!(desk.count(patient).await, 1, "the agent waits for the transcript, too");
        desk.app.data.clock.advance(Duration::seconds(seconds));
        (Self { desk, listener, ana }, working)
    }

    async fn transcript(&self) -> Value {
        let contact = self.desk.only_contact().await["id"].clone();
        let messages = self.desk.get(&format!("/contacts/{contact}/messages")).await.expect(200);
        let voice = messages.as_array().unwrap().iter().find(|message| message["type"] == "audio").unwrap();
        voice["attachments"][0]["transcript"].clone()
    }

    /// Waits for both events.
    async fn events(&self) -> Vec<Value> {
        until("both events are there", async || {
            let received = self.desk.received().await;
            (received.len() == 2).then_some(received)
        })
        .await
    }
}

impl Desk {
    async fn received(&self) -> Vec<Value> {
        self.events("contact.message.received").await
    }
}

#[testkit::both]
async fn a_transcript_after_29_seconds_is_in_the_event(kind: Kind) {
    let (office, working) = Office::wait_for(kind, 29).await;
    assert_eq!(office.desk.received().await, Vec::<Value>::new());
    assert_eq!(office.desk.app.model.prompts().len(), 0);
    office.listener.answers.add_permits(1);
    let events = office.events().await;
    assert_eq!((&events[0]["type"], &events[0]["content"]), (&json!("audio"), &json!("[Audio]")));
    assert_eq!(events[0]["attachments"][0]["transcript"], "Where is my order?");
    assert_eq!(events[1]["content"], "Hello?");
    assert_eq!(office.transcript().await, "Where is my order?");
    // The agent has waited, too.
    until("the agent answers", async || (office.desk.sent(&office.ana) == ["ok"]).then_some(())).await;
    assert_eq!(office.desk.app.model.last_texts().last().unwrap(), "Where is my order?\nHello?");
    working.stop(std::time::Duration::from_secs(5)).await;
}

#[testkit::both]
async fn a_transcript_after_31_seconds_is_in_the_list_alone(kind: Kind) {
    let (office, working) = Office::wait_for(kind, 31).await;
    let events = office.events().await;
    assert_eq!((&events[0]["type"], &events[0]["content"]), (&json!("audio"), &json!("[Audio]")));
    assert_eq!(events[0]["attachments"][0]["transcript"], Value::Null);
    assert_eq!(office.transcript().await, Value::Null);
    until("the agent answers", async || (office.desk.sent(&office.ana) == ["ok"]).then_some(())).await;
    assert_eq!(office.desk.app.model.last_texts().last().unwrap(), "[Audio]\nHello?");
    office.listener.answers.add_permits(1);
    until("the transcript is there", async || (!office.transcript().await.is_null()).then_some(())).await;
    working.stop(std::time::Duration::from_secs(5)).await;
    assert_eq!(office.desk.received().await, events);
}
