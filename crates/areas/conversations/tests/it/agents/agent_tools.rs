//! Agents that write to contacts, and hand conversations over to people.

use crate::support::Desk;
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, Script};

fn call(function: &str, arguments: Value) -> Script {
    Script::Call(vec![(function.to_owned(), arguments)])
}

/// A service whose agent has the tool `messages`.
pub async fn desk(kind: Kind) -> Desk {
    let desk = Desk::open(kind).await;
    let agents = desk.get("/agents").await.expect(200);
    let tool = json!({ "type": "messages", "access": "read_write", "scope": "all" });
    let path = format!("/agents/{}/tools/messages", agents[0]["id"]);
    desk.app.put(&path, &desk.key, tool).await.expect(200);
    desk
}

/// What the calls of tools in a run brought.
pub async fn results(desk: &Desk, key: &testkit::Key, run: &Value) -> Vec<Value> {
    let path = format!("/runs/{}?include=steps", run["id"].as_str().unwrap());
    let run = desk.app.get(&path, key).await.expect(200);
    let steps = run["steps"].as_array().unwrap().iter().filter(|step| step["type"] == "tool");
    steps.map(|step| step["output"]["result"].clone()).collect()
}

#[testkit::both]
async fn an_agent_hands_the_conversation_over(kind: Kind) {
    let desk = desk(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let summary = "Wants a refund for order 4711.";
    desk.app
        .model
        .then(call("messages_send", json!({ "contact_id": id, "text": "A colleague will answer you." })))
        .then(call("messages_handoff", json!({ "contact_id": id, "summary": summary })))
        .then(Script::Say("Goodbye!".to_owned()));
    desk.hear(&ana, "I want my money back").await;
    assert_eq!(desk.sent(&ana), ["ok", "A colleague will answer you."]);
    // The model knows of whom it speaks.
    let prompts = desk.app.model.prompts();
    let told = format!("The messages are from the contact with the id {id}.");
    assert!(prompts[1].messages[0].content.contains(&told), "{}", prompts[1].messages[0].content);
    let handoffs = desk.events("conversation.handoff").await;
    assert_eq!(handoffs.len(), 1, "{handoffs:?}");
    let found =
        (&handoffs[0]["reason"], &handoffs[0]["summary"], &handoffs[0]["to"], &handoffs[0]["contact_id"]);
    assert_eq!(found, (&json!("agent_tool"), &json!(summary), &json!("human"), &id));
    assert_eq!(handoffs[0]["actor"]["type"], "agent");
    let sent = desk.events("contact.message.sent").await;
    assert_eq!((sent.len(), &sent[1]["run_id"]), (2, &handoffs[0]["actor"]["run_id"]));
    // Nothing went wrong, and the agent keeps silent from now on.
    assert_eq!(desk.get(&desk.path("/health")).await.expect(200)["last_errors"], json!([]));
    desk.hear(&ana, "Hello?").await;
    assert_eq!((desk.sent(&ana).len(), desk.app.model.prompts().len()), (2, 4));
}

#[testkit::both]
async fn what_may_not_be_sent_is_told_to_the_model(kind: Kind) {
    let desk = desk(kind).await;
    let utility =
        desk.template("order_shipped", "utility", "Hello {{1}}, your order was shipped.", &["Ana"]).await;
    desk.template("offer", "marketing", "An offer for you today.", &[]).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "STOP").await;
    desk.app.data.clock.advance(chrono::Duration::hours(25));
    let of = |name: &str, params: Value| {
        call(
            "messages_template",
            json!({
                "contact_id": "phone:+5511987654321", "name": name, "language": "en",
                "namespace": utility["namespace"], "params": params,
            }),
        )
    };
    desk.app
        .model
        .then(call("messages_send", json!({ "contact_id": "phone:+5511987654321", "text": "Hello?" })))
        .then(of("offer", json!({})))
        .then(of("order_shipped", json!({})))
        .then(of("order_shipped", json!({ "1": "Ana" })))
        .then(call("messages_handoff", json!({ "contact_id": 999_999, "summary": "x" })))
        .then(Script::Say("done".to_owned()));
    let before = desk.sent(&ana).len();
    let run =
        desk.post("/runs", json!({ "input": "Tell Ana that her order was shipped." })).await.expect(200);
    assert_eq!(run["status"], "completed", "{run}");
    let results = results(&desk, &desk.key, &run).await;
    let codes: Vec<&Value> = results.iter().map(|result| &result["code"]).collect();
    assert_eq!(
        codes[..3],
        [&json!("window_closed"), &json!("recipient_opted_out"), &json!("template_params_mismatch")],
        "{results:?}"
    );
    assert_eq!(results[0]["details"]["approved_templates"].as_array().unwrap().len(), 2);
    assert_eq!((&results[3]["data"]["status"], codes[4]), (&json!("queued"), &json!("not_found")));
    desk.settle().await;
    assert_eq!(desk.sent(&ana)[before..], ["template"]);
    let message = results[3]["data"]["message_id"].clone();
    assert_eq!(desk.status(&message).await.0, "delivered");
}

#[testkit::both]
async fn under_a_test_key_nothing_is_sent_or_handed_over(kind: Kind) {
    let desk = desk(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await;
    let id = contact["id"].clone();
    let test = desk.app.key(desk.workspace, Env::Test, &["*"]).await;
    let template = json!({ "contact_id": id, "name": "offer", "language": "en", "namespace": "x" });
    desk.app
        .model
        .then(call("messages_send", json!({ "contact_id": id, "text": "Hello?" })))
        .then(call("messages_template", template))
        .then(call("messages_handoff", json!({ "contact_id": id, "summary": "x" })))
        .then(Script::Say("done".to_owned()));
    let run = desk.app.post("/runs", &test, json!({ "input": "Hi" })).await.expect(200);
    desk.settle().await;
    let results = results(&desk, &test, &run).await;
    assert_eq!(results.len(), 3);
    for (result, operation) in
        results.iter().zip(["sendContactMessage", "sendContactTemplate", "setContactAutopilot"])
    {
        assert_eq!((&result["simulated"], &result["operation"]), (&json!(true), &json!(operation)));
    }
    assert_eq!(desk.sent(&ana), ["ok"]);
    assert_eq!(desk.events("conversation.handoff").await, Vec::<Value>::new());
    assert_eq!(desk.only_contact().await["data"]["$autopilot"], contact["data"]["$autopilot"]);
}

#[testkit::both]
async fn a_tool_that_sends_needs_the_scopes_of_what_it_calls(kind: Kind) {
    let desk = Desk::open(kind).await;
    let agents = desk.get("/agents").await.expect(200);
    let path = format!("/agents/{}/tools/messages", agents[0]["id"]);
    let reading = desk.app.put(&path, &desk.key, json!({ "type": "messages" })).await;
    assert_eq!(reading.expect_error(400, "validation_error").as_deref(), Some("access"));
    let tool = json!({ "type": "messages", "access": "read_write" });
    for (scopes, lacking) in [
        (["agents:write", "handoff:manage"], "channels:send"),
        (["agents:write", "channels:send"], "handoff:manage"),
    ] {
        let weak = desk.app.key(desk.workspace, Env::Live, &scopes).await;
        let refused = desk.app.put(&path, &weak, tool.clone()).await;
        assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some(lacking));
    }
    let enough =
        desk.app.key(desk.workspace, Env::Live, &["agents:write", "channels:send", "handoff:manage"]).await;
    let made = desk.app.put(&path, &enough, tool).await.expect(200);
    let names: Vec<&Value> =
        made["functions"].as_array().unwrap().iter().map(|function| &function["name"]).collect();
    assert_eq!(names, ["messages_send", "messages_template", "messages_handoff"]);
}
