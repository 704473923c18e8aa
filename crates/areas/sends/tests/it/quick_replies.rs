//! Quick replies.

use crate::support::Desk;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

fn reply(body: &str) -> Value {
    json!({ "shortcode": "Hours", "title": "Opening hours", "body": body })
}

#[testkit::both]
async fn answers_are_saved_changed_and_deleted(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (app, key) = (&desk.app, &desk.key);
    desk.post("/variables", json!({ "key": "shop.phone", "type": "string", "value": "+34" }))
        .await
        .expect(201);
    let file = app.ask("POST", "/files").key(key).header("idempotency-key", "file");
    let file = file.form(&[], ("a.txt", b"a")).send().await.expect(201);
    let mut new = reply("Hi {{contact.$name|there}}, call {{vars.shop.phone}} on {{ask.day}}.");
    new["attachments"] = json!([file["id"]]);
    new["buttons"] = json!([{ "id": "y", "title": "Yes" }]);
    new["language"] = json!("pt-BR");
    let made = desk.post("/quick-replies", new.clone()).await.expect(201);
    assert_eq!((&made["shortcode"], &made["attachments"]), (&json!("hours"), &new["attachments"]));
    assert_eq!((&made["usage_count"], &made["version"]), (&json!(0), &json!(1)));
    assert_eq!(desk.get("/quick-replies").await.expect(200), json!([made]));
    let again = desk.post("/quick-replies", new).await;
    assert_eq!(again.expect_error(409, "duplicate_value").as_deref(), Some("shortcode"));
    let path = format!("/quick-replies/{}", made["id"]);
    let changed =
        app.patch(&path, key, json!({ "title": "Open", "language": null, "version": 1 })).await.expect(200);
    assert_eq!(
        (&changed["title"], &changed["language"], &changed["version"]),
        (&json!("Open"), &Value::Null, &json!(2))
    );
    app.patch(&path, key, json!({ "title": "Late", "version": 1 }))
        .await
        .expect_error(409, "version_conflict");
    app.delete(&format!("/files/{}", file["id"]), key).await.expect_error(409, "file_in_use");
    let variables = desk.get("/variables").await.expect(200);
    app.delete(&format!("/variables/{}", variables[0]["id"]), key).await.expect_error(409, "variable_in_use");
    app.delete(&path, key).await.expect(200);
    app.delete(&path, key).await.expect_error(404, "not_found");
    app.delete(&format!("/files/{}", file["id"]), key).await.expect(200);
    app.deliver().await;
    for name in ["quick_reply.created", "quick_reply.updated", "quick_reply.deleted"] {
        let events = desk.get(&format!("/events?type={name}")).await.expect(200);
        assert_eq!(events[0]["data"]["quick_reply"]["id"], made["id"], "{name}");
    }
}

#[testkit::both]
async fn what_cannot_be_sent_is_refused(kind: Kind) {
    let desk = Desk::open(kind).await;
    for body in ["{{contact.nope}}", "{{vars.nope}}", "{{name}}", "{{ask.}}"] {
        let refused = desk.post("/quick-replies", reply(body)).await;
        assert_eq!(refused.expect_error(400, "unknown_variable").as_deref(), Some("body"), "{body}");
    }
    let secret = json!({ "key": "token", "type": "secret", "value": "s3cret" });
    desk.post("/variables", secret).await.expect(201);
    for body in ["{{contact.$name", "{{vars.token}}"] {
        let refused = desk.post("/quick-replies", reply(body)).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("body"), "{body}");
    }
    let button = |id: &str| json!({ "id": id, "title": "x" });
    let with = |field: &str, value: Value| {
        let mut new = reply("Hi");
        new[field] = value;
        new
    };
    let four = with("buttons", json!([button("a"), button("b"), button("c"), button("d")]));
    let refused = desk.post("/quick-replies", four).await;
    assert_eq!(refused.expect_error(400, "too_many_buttons").as_deref(), Some("buttons"));
    let twice = with("buttons", json!([button("a"), button("a")]));
    let refused = desk.post("/quick-replies", twice).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("buttons[1].id"));
    let refused = desk.post("/quick-replies", with("attachments", json!([999_999]))).await;
    assert_eq!(refused.expect_error(404, "not_found").as_deref(), Some("attachments[0]"));
    for (field, value) in [("shortcode", "a b"), ("language", "english"), ("title", " ")] {
        let refused = desk.post("/quick-replies", with(field, json!(value))).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(field));
    }
}

#[testkit::both]
async fn personal_answers_belong_to_their_key(kind: Kind) {
    let desk = Desk::open(kind).await;
    let mut new = reply("Hi");
    new["scope"] = json!("personal");
    let made = desk.post("/quick-replies", new.clone()).await.expect(201);
    let other = desk.app.key(desk.workspace, Env::Live, &["*"]).await;
    let path = format!("/quick-replies/{}", made["id"]);
    assert_eq!(desk.app.get("/quick-replies", &other).await.expect(200), json!([]));
    desk.app.patch(&path, &other, json!({ "title": "x" })).await.expect_error(404, "not_found");
    new["shortcode"] = json!("taken");
    desk.app.post("/quick-replies", &other, new).await.expect(201);
    let refused = desk.app.patch(&path, &desk.key, json!({ "shortcode": "TAKEN" })).await;
    assert_eq!(refused.expect_error(409, "duplicate_value").as_deref(), Some("shortcode"));
    desk.app.patch(&path, &desk.key, json!({ "scope": "workspace" })).await.expect(200);
    assert_eq!(desk.app.get("/quick-replies", &other).await.expect(200).as_array().unwrap().len(), 2);
}
