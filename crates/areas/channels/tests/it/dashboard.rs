//! Connecting channels in the dashboard.

use model::{Env, MemberRole};
use serde_json::{Value, json};
use testkit::{ChannelApp, Key, Kind};

async fn admin(desk: &ChannelApp) -> Key {
    let member = desk.app.member(desk.key.workspace, MemberRole::Admin).await;
    desk.app.fresh_token(&member, Env::Live).await
}

/// The number of the simulated network, which the desk has connected.
fn number(desk: &ChannelApp) -> Value {
    let connection = desk.network.connection();
    json!({
        "network_url": connection.base_url, "number_id": connection.number_id, "business_id": connection.business_id,
        "access_token": connection.access_token,
    })
}

fn with(mut base: Value, more: &Value) -> Value {
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

#[testkit::both]
async fn a_number_is_checked_before_it_is_connected(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let token = admin(&desk).await;
    let checked = desk.app.post("/dashboard/channels/check", &token, number(&desk)).await.expect(200);
    assert_eq!((&checked["is_accepted"], &checked["message"]), (&json!(true), &Value::Null), "{checked}");
    let wrong = with(number(&desk), &json!({ "access_token": "another" }));
    let checked = desk.app.post("/dashboard/channels/check", &token, wrong.clone()).await.expect(200);
    assert_eq!((&checked["is_accepted"], checked["message"].is_string()), (&json!(false), true), "{checked}");
    let secrets = json!({
        "provider": "simulator", "name": "Second", "app_secret": "8f2d", "verify_token": "copper lantern",
    });
    let refused = desk.app.post("/dashboard/channels", &token, with(wrong, &secrets)).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("access_token"));
    let no_address = with(with(number(&desk), &secrets), &json!({ "network_url": "ftp://example.com" }));
    let refused = desk.app.post("/dashboard/channels", &token, no_address).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("network_url"));
}

#[testkit::both]
async fn a_channel_is_connected_changed_and_disconnected(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let token = admin(&desk).await;
    let key = desk.app.key(token.workspace, Env::Live, &["runs:execute"]).await;
    let secret = desk.network.connection().app_secret;
    let new = json!({
        "provider": "simulator", "name": "Shop", "app_secret": secret, "verify_token": "copper lantern", "key_id": key.id,
    });
    let connected = desk.app.post("/dashboard/channels", &token, with(number(&desk), &new)).await;
    testkit::assert_absent(&connected.text, &secret);
    testkit::assert_absent(&connected.text, &desk.network.connection().access_token);
    let connected = connected.expect(201);
    assert_eq!((&connected["channel"]["name"], &connected["key_id"]), (&json!("Shop"), &json!(key.id)));
    let id = connected["channel"]["id"].as_i64().unwrap();
    assert!(connected["callback_url"].as_str().unwrap().ends_with(&format!("/callbacks/{id}")));
    let path = format!("/dashboard/channels/{id}");
    let settings = with(connected["channel"]["settings"].clone(), &json!({ "welcome": "Hello!" }));
    let change = json!({ "name": "Front desk", "messages_per_second": 5, "settings": settings });
    let changed = desk.app.patch(&path, &token, change).await.expect(200);
    assert_eq!(changed["channel"]["settings"]["welcome"], "Hello!");
    assert_eq!(desk.app.get(&path, &token).await.expect(200), changed);
    assert_eq!(changed["key_id"], json!(key.id), "what is not given stays");
    let without = json!({ "key_id": null, "agent_id": null });
    let without = desk.app.patch(&path, &token, without).await.expect(200);
    assert_eq!((&without["key_id"], &without["channel"]["default_agent_id"]), (&Value::Null, &Value::Null));
    let ended = desk.app.post(&format!("{path}/disconnect"), &token, json!({})).await.expect(200);
    assert_eq!(ended["channel"]["status"], "disabled");
    let audit = desk.app.get("/dashboard/audit?action=channel.disconnected", &token).await.expect(200);
    assert_eq!(audit[0]["target"], id.to_string());
}

#[testkit::both]
async fn agents_and_keys_of_others_are_refused(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let token = admin(&desk).await;
    let elsewhere = desk.app.bare_workspace("scale", 0).await;
    let foreign = desk.app.key(elsewhere, Env::Live, &["runs:execute"]).await;
    let weak = desk.app.key(token.workspace, Env::Live, &["runs:read"]).await;
    let path = format!("/dashboard/channels/{}", desk.channel);
    for (change, param) in [
        (json!({ "key_id": foreign.id }), "key_id"),
        (json!({ "key_id": weak.id }), "key_id"),
        (json!({ "agent_id": 999_999 }), "agent_id"),
        (json!({ "messages_per_second": -1 }), "messages_per_second"),
    ] {
        let refused = desk.app.patch(&path, &token, change).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    let stranger = desk.app.member(elsewhere, MemberRole::Owner).await;
    let stranger = desk.app.fresh_token(&stranger, Env::Live).await;
    desk.app.get(&path, &stranger).await.expect_error(404, "not_found");
    desk.app.patch(&path, &stranger, json!({ "name": "Mine" })).await.expect_error(404, "not_found");
    desk.app.post(&format!("{path}/disconnect"), &stranger, json!({})).await.expect_error(404, "not_found");
    let manager = desk.app.member(token.workspace, MemberRole::Manager).await;
    let manager = desk.app.token(&manager, Env::Live);
    desk.app.get(&path, &manager).await.expect_error(403, "missing_scope");
}

#[testkit::both]
async fn two_who_connect_a_number_at_once_share_a_channel(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let token = admin(&desk).await;
    // The number of the network is free.
    desk.app.sql("UPDATE channels SET number_id = 'another'").await;
    let secrets = json!({ "provider": "simulator", "name": "Shop", "app_secret": "8f2d", "verify_token": "copper lantern" });
    let connect = || desk.app.post("/dashboard/channels", &token, with(number(&desk), &secrets));
    let (one, other) = tokio::join!(connect(), connect());
    assert_eq!(one.expect(201)["channel"]["id"], other.expect(201)["channel"]["id"]);
}
