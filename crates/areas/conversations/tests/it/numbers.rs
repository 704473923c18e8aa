//! Numbers from which people write, in the numbering plan or not.

use crate::support::Desk;
use serde_json::{Value, json};
use testkit::Kind;

impl Desk {
    /// A person writes from a number, as the network says it.
    async fn heard_from(&self, number: &str, user_id: Option<&str>, text: &str) -> Value {
        let from = match user_id {
            Some(id) => json!({ "profile": { "name": "Koffi" }, "wa_id": number, "user_id": id }),
            None => json!({ "profile": { "name": "Koffi" }, "wa_id": number }),
        };
        let message = json!({
            "from": number, "from_user_id": user_id, "id": format!("wamid.{text}"), "timestamp": "1790000000",
            "type": "text", "text": { "body": text },
        });
        let value = json!({
            "messaging_product": "whatsapp", "contacts": [from], "messages": [message],
            "metadata": { "display_phone_number": "15550783881", "phone_number_id": self.network.connection().number_id },
        });
        let change = json!({ "field": "messages", "value": value });
        let body =
            json!({ "object": "whatsapp_business_account", "entry": [{ "id": "1", "changes": [change] }] });
        self.post_callback(&format!("/callbacks/{}", self.channel), &body.to_string()).await;
        self.settle().await;
        let found = self.get(&format!("/conversations/search?q={text}")).await.expect(200);
        let contact = &found[0]["contact_id"];
        self.get(&format!("/contacts/{contact}")).await.expect(200)
    }

    /// Where an answer to a contact goes.
    async fn reached_at(&self, contact: &Value) -> Value {
        let path = format!("/contacts/{}/send-message", contact["id"]);
        self.post(&path, json!({ "text": "Hello" })).await.expect(200)["recipient"].clone()
    }
}

#[testkit::both]
async fn a_number_in_its_old_form_is_the_contact_with_the_new_one(kind: Kind) {
    let desk = Desk::open(kind).await;
    for (place, (old, new)) in [
        ("22997445566", "+2290197445566"),
        ("22507445566", "+2250707445566"),
        ("22505445566", "+2250505445566"),
        ("22501445566", "+2250101445566"),
        ("551187654321", "+5511987654321"),
    ]
    .into_iter()
    .enumerate()
    {
        let contact = desk.contact("Koffi", new).await;
        let heard = desk.heard_from(old, None, &format!("oldformword{place}")).await;
        assert_eq!(heard["id"], contact, "{old}");
        assert_eq!(desk.reached_at(&heard).await["phone"], new);
    }
    // Without a contact, the new form is what the first message makes.
    let heard = desk.heard_from("22996445566", None, "firstmessageword").await;
    assert_eq!(
        (&heard["data"]["$phone"], &heard["data"]["$country"]),
        (&json!("+2290196445566"), &json!("BJ"))
    );
    assert_eq!(heard["data"]["$chat_user_id"], Value::Null);
}

#[testkit::both]
async fn who_writes_from_a_number_that_the_plan_lacks_has_it(kind: Kind) {
    let desk = Desk::open(kind).await;
    for (place, (number, user_id)) in [
        ("15550123456", None),
        ("99912345678", None),
        ("346123456789", None),
        ("15550123457", Some("US.1349")),
    ]
    .into_iter()
    .enumerate()
    {
        let phone = format!("+{number}");
        let heard = desk.heard_from(number, user_id, &format!("unknownword{place}")).await;
        assert_eq!(heard["data"]["$phone"], phone, "{heard}");
        assert_eq!(heard["data"]["$chat_user_id"], json!(user_id));
        assert_eq!(desk.reached_at(&heard).await["phone"], phone);
        // The same person, once more and however the number is asked for.
        let again = desk.heard_from(number, user_id, &format!("unknownagainword{place}")).await;
        assert_eq!(again["id"], heard["id"]);
        for key in [format!("phone:{phone}"), format!("phone:{number}")] {
            assert_eq!(desk.get(&format!("/contacts/{key}")).await.expect(200)["id"], heard["id"], "{key}");
        }
        let filter = format!("/contacts?filter[$phone]=%2B{number}");
        assert_eq!(desk.get(&filter).await.expect(200)[0]["id"], heard["id"]);
        // What was read can be written back, by its id, by the number, and by an import.
        let (path, mut data) = (format!("/contacts/{}", heard["id"]), heard["data"].clone());
        data["$company"] = "Acme".into();
        let written = desk.app.patch(&path, &desk.key, json!({ "data": data })).await.expect(200);
        assert_eq!(
            (&written["data"]["$phone"], &written["data"]["$company"]),
            (&json!(phone), &json!("Acme"))
        );
        let upsert = json!({ "data": { "$phone": phone, "$company": "Casa" } });
        let upserted = desk.post("/contacts/upsert", upsert).await.expect(200);
        assert_eq!((&upserted["status"], &upserted["contact"]["id"]), (&json!("updated"), &heard["id"]));
        let content = format!("phone,$company\n{phone},Verde\n");
        desk.post("/contacts/import", json!({ "content": content })).await.expect(201);
        while desk.app.service.jobs.run_due().await.unwrap() > 0 {}
        assert_eq!(desk.get(&path).await.expect(200)["data"]["$company"], "Verde");
        // A merge keeps it.
        let into = desk.post("/contacts", json!({ "data": { "$name": "K" } })).await.expect(201);
        let merge = format!("/contacts/{}/merge", into["id"]);
        let merged = desk.post(&merge, json!({ "source_id": heard["id"] })).await.expect(200);
        assert_eq!(merged["data"]["$phone"], phone);
        let sent = desk.post(&desk.path("/chatnet/send-message"), json!({ "to": phone, "text": "Hi" })).await;
        assert_ne!(sent.status, 400, "{}", sent.body);
    }
}

#[testkit::both]
async fn a_number_that_was_kept_as_a_user_id_is_a_number(kind: Kind) {
    let desk = Desk::open(kind).await;
    let old =
        desk.post("/contacts", json!({ "data": { "$chat_user_id": "+22997445566" } })).await.expect(201);
    let heard = desk.heard_from("22997445566", None, "keptasidword").await;
    assert_eq!((&heard["id"], &heard["data"]["$phone"]), (&old["id"], &json!("+2290197445566")));
    let heard = desk.heard_from("22997445566", Some("BJ.77"), "withuseridword").await;
    assert_eq!((&heard["id"], &heard["data"]["$chat_user_id"]), (&old["id"], &json!("BJ.77")));
}
