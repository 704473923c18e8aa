//! The chat network of `svc serve --demo`: a customer writes, the agent answers, and both are remembered after a restart.

use serde_json::{Value, json};
use testkit::{Client, Kind, Program, completion, until};

/// A customer on the page's own API.
struct Customer {
    network: Client,
    user: String,
}

impl Customer {
    async fn first(page: &str) -> Self {
        let network = Client::new(page);
        let users = network.ask_beside("GET", "/control/users").send().await.expect(200);
        let named = users.as_array().unwrap().iter().find(|user| user["name"] == "Bruno Pereira");
        let user = named.unwrap()["user_id"].as_str().unwrap().to_owned();
        Self { network, user }
    }

    /// The conversation as the business has it.
    async fn inbox(&self) -> Value {
        let path = format!("/control/users/{}/inbox", self.user);
        let answer = self.network.ask_beside("GET", &path).send().await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        answer.body
    }

    /// A person of the business does something on the page.
    async fn business(&self, method: &str, what: &str, body: &Value) {
        let path = format!("/control/users/{}/{what}", self.user);
        let answer = self.network.ask_beside(method, &path).json(body).send().await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    }

    async fn does(&self, action: &Value) {
        let path = format!("/control/users/{}/actions", self.user);
        self.network.ask_beside("POST", &path).json(action).send().await.expect(200);
    }

    /// What the business said, once it said as much.
    async fn hears(&self, messages: usize) -> Vec<String> {
        until("the business answers", async || {
            let path = format!("/control/users/{}/chat", self.user);
            let chat = self.network.ask_beside("GET", &path).send().await.expect(200);
            let lines = chat.as_array().unwrap().iter();
            let ours = lines
                .filter(|line| line["is_ours"] == true)
                .map(|line| line["text"].as_str().unwrap().to_owned());
            let ours: Vec<String> = ours.collect();
            (ours.len() >= messages).then_some(ours)
        })
        .await
    }
}

#[testkit::both]
async fn a_customer_is_answered_and_remembered(kind: Kind) {
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    program.model.answer(|body| {
        let said =
            body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count();
        completion(&format!("You wrote {said} times."))
    });
    let client = program.client();

    let (first, demo) = program.serve_demo().await;
    let customer = Customer::first(&demo.chat).await;
    customer.does(&json!({ "do": "text", "body": "Hello" })).await;
    assert_eq!(customer.hears(1).await, ["You wrote 1 times."]);
    first.stop().await;

    // The network knows nothing any more, and its address may be another one. The service knows everything.
    let (_second, page) = program.serve_demo_again().await;
    let customer = Customer::first(&page).await;
    customer.does(&json!({ "do": "voice_note", "words": "Hello again" })).await;
    assert_eq!(customer.hears(1).await, ["You wrote 2 times."]);

    let ask = async |path: &str| {
        client
            .ask("GET", path)
            .header("authorization", &format!("Bearer {}", demo.live))
            .send()
            .await
            .expect(200)
    };
    let conversations = ask("/conversations").await;
    assert_eq!(conversations.as_array().unwrap().len(), 1, "{conversations}");
    let contact = &conversations[0]["contact_id"];
    let messages = ask(&format!("/contacts/{contact}/messages")).await;
    assert_eq!(messages.as_array().unwrap().len(), 4, "{messages}");
    let transcript = &messages[1]["attachments"][0]["transcript"];
    assert_eq!(transcript, "Hello again", "{messages}");
    assert_eq!(ask(&format!("/contacts/{contact}")).await["name"], "Bruno Pereira");
    assert_eq!(ask("/channels").await.as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn a_person_takes_over_on_the_page_and_hands_back(kind: Kind) {
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    program.model.answer(|_| completion("The agent answers."));
    let (first, demo) = program.serve_demo().await;
    let customer = Customer::first(&demo.chat).await;
    assert_eq!(customer.network.ask_beside("GET", "/control/inbox").send().await.body["connected"], true);
    let before = customer.inbox().await;
    assert_eq!((&before["autopilot"], &before["data"]), (&json!(true), &json!([])));
    customer.does(&json!({ "do": "text", "body": "Hello" })).await;
    assert_eq!(customer.hears(1).await, ["The agent answers."]);

    customer.business("PUT", "autopilot", &json!({ "enabled": false })).await;
    customer.business("POST", "inbox", &json!({ "text": "This is Eva." })).await;
    assert_eq!(customer.hears(2).await, ["The agent answers.", "This is Eva."]);
    customer.does(&json!({ "do": "text", "body": "Are you a person?" })).await;
    let inbox = until("the business has the message", async || {
        let inbox = customer.inbox().await;
        (inbox["data"].as_array().unwrap().len() == 4).then_some(inbox)
    });
    let inbox = inbox.await;
    assert_eq!(inbox["autopilot"], false);
    let line = |place: usize| {
        let line = &inbox["data"][place];
        (line["sender"].as_str().unwrap().to_owned(), line["text"].as_str().unwrap().to_owned())
    };
    let lines: Vec<(String, String)> = (0..4).map(line).collect();
    let expected = [
        ("contact", "Hello"),
        ("agent", "The agent answers."),
        ("user", "This is Eva."),
        ("contact", "Are you a person?"),
    ];
    assert_eq!(lines, expected.map(|(sender, text)| (sender.to_owned(), text.to_owned())));
    // What a person has answered is nothing for the agent when the conversation is handed back.
    customer.business("POST", "inbox", &json!({ "text": "Yes, I am." })).await;
    assert_eq!(customer.hears(3).await, ["The agent answers.", "This is Eva.", "Yes, I am."]);
    customer.business("PUT", "autopilot", &json!({ "enabled": true })).await;
    assert_eq!(customer.inbox().await["autopilot"], true);

    // Somebody whose number the network hides is a contact as soon as it writes.
    let new = json!({ "name": "Nia" });
    let nia = customer.network.ask_beside("POST", "/control/users").json(&new).send().await;
    let nia =
        Customer { network: Client::new(&demo.chat), user: nia.body["user_id"].as_str().unwrap().to_owned() };
    assert_eq!(nia.inbox().await, json!({ "contact_id": null, "autopilot": null, "data": [] }));
    nia.does(&json!({ "do": "text", "body": "Hi" })).await;
    nia.hears(1).await;
    assert_eq!(nia.inbox().await["data"][0]["text"], "Hi");

    // No page gets the key, and none of another origin the inbox.
    for path in ["/", "/page.js", "/control/inbox", "/control/connection"] {
        let shown = customer.network.ask_beside("GET", path).send().await;
        assert!(!shown.text.contains(&demo.live[..8]), "{path}");
    }
    let path = format!("/control/users/{}/inbox", customer.user);
    let elsewhere = customer.network.ask_beside("POST", &path).header("origin", "https://evil.example");
    assert_eq!(elsewhere.json(&json!({ "text": "x" })).send().await.status, 404);
    first.stop().await;

    // Each start has a key of its own, and ends the one before.
    let (_second, page) = program.serve_demo_again().await;
    assert_eq!(Customer::first(&page).await.inbox().await["data"].as_array().unwrap().len(), 5);
}
