//! What an agent that answers over a channel knows of the conversation.

use crate::support::Desk;
use crm::team::{self, NewMember};
use serde_json::json;

testkit::on_both! {
    async fn an_agent_knows_what_people_said(kind: Kind) {
        let desk = Desk::open(kind).await;
        let ana = desk.customer("Ana", "+5511987654321");
        desk.hear(&ana, "Hi").await;
        let (workspace, name) = (desk.workspace, "Bruno".to_owned());
        let new = NewMember { name, email: "bruno@example.com".to_owned(), ..NewMember::default() };
        let member = desk.app.db().write(move |tx| team::add(tx, workspace, new.clone())).await.unwrap().id.0;
        let contact = desk.only_contact().await["id"].clone();
        let autopilot = format!("/contacts/{contact}/autopilot");
        desk.app.put(&autopilot, &desk.key, json!({ "enabled": false })).await.expect(200);
        desk.hear(&ana, "Is there a discount?").await;
        let said = json!({ "text": "10 % off, code ABC", "member_id": member });
        desk.post(&format!("/contacts/{contact}/operator-messages"), said).await.expect(200);
        desk.settle().await;
        desk.app.put(&autopilot, &desk.key, json!({ "enabled": true })).await.expect(200);
        desk.hear(&ana, "Which code was it?").await;
        let prompts = desk.app.model.prompts();
        let heard: Vec<&str> = prompts.last().unwrap().messages.iter().map(|message| message.content.as_str()).collect();
        let all = heard.join("\n");
        for part in [
            "Is there a discount?",
            "[Bruno, a person of the team] (took over from the agent) 10 % off, code ABC",
            "[Note] The conversation was handed back to the agent.",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert_eq!(heard.last(), Some(&"Which code was it?"));
    }
}
