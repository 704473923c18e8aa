//! What many contacts write at the same time, which is stored together where that is possible.

use crate::support::Desk;
use serde_json::{Value, json};
use simulator::User;
use testkit::Kind;

/// A text message as the network calls back with it.
fn callback(desk: &Desk, customer: &User, id: &str, text: &str) -> String {
    let connection = desk.network.connection();
    let phone = customer.phone.as_deref().unwrap_or_default();
    json!({ "object": "whatsapp_business_account", "entry": [{ "id": "1", "changes": [{ "field": "messages", "value": {
        "messaging_product": "whatsapp",
        "metadata": { "display_phone_number": "551130000000", "phone_number_id": connection.number_id },
        "contacts": [{ "profile": { "name": customer.name }, "wa_id": phone, "user_id": customer.user_id }],
        "messages": [{
            "from": phone, "from_user_id": customer.user_id, "id": id,
            "timestamp": model::Clock::now(&*desk.app.data.clock).seconds().to_string(), "type": "text", "text": { "body": text },
        }],
    } }] }] })
    .to_string()
}

/// What a contact wrote, in its order, and how often each agent's answer came.
async fn heard(desk: &Desk, phone: &str) -> Vec<String> {
    let events = desk.events("contact.message.received").await;
    let contacts = desk.get("/contacts?limit=100").await.expect(200);
    let contacts = contacts.as_array().unwrap();
    let contact = contacts.iter().find(|contact| contact["data"]["$phone"] == phone).unwrap();
    let of_contact = events.iter().filter(|event| event["contact_id"] == contact["id"]);
    of_contact.map(|event: &Value| event["content"].as_str().unwrap().to_owned()).collect()
}

#[testkit::both]
async fn what_many_contacts_write_at_once_is_there_in_their_order(kind: Kind) {
    let desk = Desk::open(kind).await;
    let phone = |number: usize| format!("+551198765432{number}");
    let customers: Vec<User> =
        (0..8).map(|number| desk.customer(&format!("Customer {number}"), &phone(number))).collect();
    // The last two are new.
    for known in &customers[..6] {
        desk.hear(known, "Hello").await;
        assert_eq!(desk.sent(known), ["ok"]);
    }
    let path = format!("/callbacks/{}", desk.channel);
    for round in ["one", "two", "three"] {
        for (number, customer) in customers.iter().enumerate().rev() {
            let body = callback(&desk, customer, &format!("wamid.{number}.{round}"), round);
            desk.post_callback(&path, &body).await;
            if number % 3 == 0 {
                // The network calls back once more.
                desk.post_callback(&path, &body).await;
            }
        }
    }
    desk.post_callback(&path, &callback(&desk, &customers[2], "wamid.2.stop", "STOP")).await;
    desk.settle().await;
    for number in 0..8 {
        let mut expected = vec!["one", "two", "three"];
        if number < 6 {
            expected.insert(0, "Hello");
        }
        if number == 2 {
            expected.push("STOP");
        }
        assert_eq!(heard(&desk, &phone(number)).await, expected, "customer {number}");
    }
    // As many questions as there were transactions: on PostgreSQL one. The network sends nothing to those who wrote to it
    // in our words only.
    for known in &customers[..6] {
        let answers = desk.sent(known).len() - 1;
        assert!((1..=3).contains(&answers), "{answers} answers");
    }
    if matches!(kind, Kind::Postgres) {
        let prompts = desk.app.model.prompts();
        let last = prompts.iter().filter_map(|prompt| prompt.messages.last());
        assert_eq!(last.filter(|message| message.content.starts_with("one\ntwo\nthree")).count(), 8);
    }
    assert_eq!(
        desk.count("SELECT count(*) AS n FROM messages WHERE direction = 'inbound'").await,
        6 + 8 * 3 + 1
    );
    assert_eq!(desk.count("SELECT count(*) AS n FROM conversations WHERE reply_due_at IS NOT NULL OR reply_run_id IS NOT NULL").await, 0);
    assert_eq!(desk.count("SELECT count(*) AS n FROM conversations WHERE last_message_id <> (SELECT max(messages.id) FROM messages WHERE conversation_id = conversations.id)").await, 0);
    let opted_out = desk.get("/contacts?limit=100").await.expect(200);
    let opted_out = opted_out.as_array().unwrap().iter().filter(|contact| contact["opted_out"] == true);
    assert_eq!(opted_out.count(), 1);
}

#[testkit::both]
async fn a_text_with_a_nul_keeps_no_other_message(kind: Kind) {
    let desk = Desk::open(kind).await;
    let customers = [1, 2, 3]
        .map(|number| desk.customer(&format!("Customer {number}"), &format!("+551198765432{number}")));
    for customer in &customers {
        desk.hear(customer, "Hello").await;
    }
    let path = format!("/callbacks/{}", desk.channel);
    for (number, customer) in customers.iter().enumerate() {
        let text = if number == 1 { "One\u{0} two" } else { "One two" };
        desk.post_callback(&path, &callback(&desk, customer, &format!("wamid.{number}"), text)).await;
    }
    desk.settle().await;
    for (customer, text) in customers.iter().zip(["One two", "One\u{fffd} two", "One two"]) {
        assert_eq!(desk.sent(customer), ["ok", "ok"]);
        let phone = format!("+{}", customer.phone.as_deref().unwrap());
        assert_eq!(heard(&desk, &phone).await, ["Hello", text]);
    }
}
