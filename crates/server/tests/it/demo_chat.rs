//! The chat network of `svc serve --demo`: a customer writes, the agent answers, and both are remembered after a restart.

use serde_json::{Value, json};
use testkit::{Client, Program, completion, until};

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

testkit::on_both! {
    async fn a_customer_is_answered_and_remembered(kind: Kind) {
        let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
        program.model.answer(|body| {
            let said = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count();
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
            client.ask("GET", path).header("authorization", &format!("Bearer {}", demo.live)).send().await.expect(200)
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
}
