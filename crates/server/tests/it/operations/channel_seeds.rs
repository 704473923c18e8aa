//! A channel with everything that can be on it, for the tests of all operations.

use crate::operations::sweep::Sweep;
use channels::{ChannelProvider, ChannelSettings, ConnectChannel, connect};
use model::{ChannelId, ContactId, FileId, WorkspaceId};
use serde_json::{Value, json};
use simulator::{NewUser, Settings, Simulator};
use std::collections::BTreeMap;

/// A channel on a simulated network, with templates, a contact who has written, a conversation with messages of several
/// types, saved answers, and broadcasts.
pub async fn seed_channel(
    sweep: &Sweep,
    contact: &str,
    segment: &str,
    file: &Value,
) -> BTreeMap<&'static str, String> {
    let channel = connect_network(sweep).await;
    let mut ids = seed_conversation(sweep, channel, contact, file).await;
    ids.extend(seed_broadcast(sweep, channel, contact, segment).await);
    let key = &sweep.keys[&(false, true)];
    let templates = sweep.app.get(&format!("/channels/{channel}/chatnet/templates"), key).await.expect(200);
    ids.extend([("channelId", channel.to_string()), ("templateId", templates[0]["id"].to_string())]);
    ids
}

/// A number of a simulated network, over which the contact of the seeds has written.
async fn connect_network(sweep: &Sweep) -> ChannelId {
    let app = &sweep.app;
    let clock = app.data.clock.clone();
    let settings =
        Settings { clock, rates: false, business_id: "business-1".to_owned(), ..Settings::default() };
    let network = Simulator::start(settings).unwrap();
    let connection = network.connection();
    let new = ConnectChannel {
        workspace: WorkspaceId(sweep.workspace.parse().unwrap()),
        provider: ChannelProvider::Simulator,
        name: "Full".to_owned(),
        address: Some("+551130000000".to_owned()),
        base_url: connection.base_url,
        number_id: connection.number_id.clone(),
        business_id: connection.business_id,
        access_token: connection.access_token,
        app_secret: connection.app_secret,
        verify_token: connection.verify_token,
        agent: None,
        key: None,
        settings: ChannelSettings::default(),
        messages_per_second: 0,
    };
    let seal = app.service.pipeline.seal.clone();
    let channel = app.db().write(move |tx| connect(tx, &seal, &new)).await.unwrap().id();
    let callbacks = format!("{}/callbacks/{channel}", app.origin);
    network.set_callback(&connection.number_id, Some(&callbacks)).unwrap();
    let new = NewUser {
        name: Some("Full".to_owned()),
        phone: Some("+34612345678".to_owned()),
        ..NewUser::default()
    };
    let customer = network.add_user(new).unwrap();
    network.write(&customer.user_id, "Is the espresso machine still available?").unwrap();
    assert!(network.wait_until(Simulator::is_quiet).await);
    app.service.channels.run_due().await.unwrap();
    for (name, body, buttons) in [
        ("order_shipped", "Hello {{1}}, your order {{2}} was shipped today.", json!([])),
        ("full", "Hi {{1}}!", json!([{ "type": "URL", "text": "a", "url": "https://example.com/{{1}}" }])),
    ] {
        insert_template(sweep, channel, name, body, &buttons).await;
    }
    // It is needed for as long as the test runs.
    std::mem::forget(network);
    channel
}

/// An approved template, as the network would report it.
async fn insert_template(sweep: &Sweep, channel: ChannelId, name: &'static str, body: &str, buttons: &Value) {
    use channels::schema::message_templates as t;
    use diesel::{ExpressionMethods, RunQueryDsl};
    let workspace = WorkspaceId(sweep.workspace.parse().unwrap());
    let mut components = vec![json!({ "type": "BODY", "text": body })];
    if buttons != &json!([]) {
        components.insert(0, json!({ "type": "HEADER", "format": "TEXT", "text": "For {{1}}" }));
        components.push(json!({ "type": "BUTTONS", "buttons": buttons }));
    }
    let components = json!(components).to_string();
    let made = sweep.app.db().write(move |tx| {
        let now = tx.now();
        let row = (
            (
                t::workspace_id.eq(workspace),
                t::channel_id.eq(channel),
                t::namespace.eq("business-1"),
                t::name.eq(name),
            ),
            (
                t::language.eq("en"),
                t::category.eq("utility"),
                t::status.eq("approved"),
                t::quality.eq("high"),
            ),
            (t::components.eq(&components), t::version.eq(1), t::created_at.eq(now), t::updated_at.eq(now)),
        );
        diesel::insert_into(t::table).values(row).execute(tx.connection())?;
        Ok(())
    });
    made.await.unwrap();
}

/// A conversation with messages of several types, and a saved answer.
async fn seed_conversation(
    sweep: &Sweep,
    channel: ChannelId,
    contact: &str,
    file: &Value,
) -> BTreeMap<&'static str, String> {
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    let workspace = WorkspaceId(sweep.workspace.parse().unwrap());
    let contact = ContactId(contact.parse().unwrap());
    let voice = FileId(file.as_i64().unwrap());
    let made =
        app.db().write(move |tx| conversations::sample::create(tx, workspace, channel, contact, Some(voice)));
    let conversation = made.await.unwrap().conversation;
    let reply = json!({
        "shortcode": "full", "title": "Full", "body": "Hi {{contact.$name|there}}", "attachments": [file],
        "buttons": [{ "id": "a", "title": "A" }], "language": "pt-BR", "scope": "workspace",
    });
    let reply = app.post("/quick-replies", key, reply).await.expect(201);
    BTreeMap::from([("conversationId", conversation.to_string()), ("quickReplyId", reply["id"].to_string())])
}

/// A broadcast with everything that a broadcast can have, which was sent to a contact that read it.
async fn seed_broadcast(
    sweep: &Sweep,
    channel: ChannelId,
    contact: &str,
    segment: &str,
) -> BTreeMap<&'static str, String> {
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    let param = |value: &str| json!({ "value": value, "fallback": "x" });
    let broadcast = json!({
        "name": "Full", "channel_id": channel,
        "template": {
            "name": "full", "language": "en", "namespace": "business-1", "params": { "1": param("{{contact.$name}}") },
            "header_params": { "1": param("a") }, "button_params": { "0": param("b") },
        },
        "audience": {
            "segment_id": segment.parse::<i64>().unwrap(), "contact_ids": [contact.parse::<i64>().unwrap()],
            "filter_tree": { "field": "$name", "op": "eq", "value": "Full" },
            "exclude": {
                "segment_id": segment.parse::<i64>().unwrap(), "contact_ids": [contact.parse::<i64>().unwrap()],
                "filter_tree": { "field": "$name", "op": "eq", "value": "Other" },
            },
        },
        "schedule": {
            "send_at": app.db().now().plus_seconds(1), "time_zone": "UTC", "contact_local_time": true,
            "quiet_hours": { "from": "02:00", "to": "03:00" },
        },
        "throttle": { "rate_per_minute": 60 }, "frequency_cap": { "messages": 5, "days": 7 },
    });
    let full = app.post("/broadcasts", key, broadcast).await.expect(201);
    let patch = json!({ "audience": { "contact_ids": [contact.parse::<i64>().unwrap()] } });
    let sent = app.post("/broadcasts", key, json!({
        "name": "Sent", "channel_id": channel, "template": full["template"].clone(), "audience": patch["audience"],
    }));
    let sent = sent.await.expect(201);
    let path = format!("/broadcasts/{}", sent["id"]);
    app.post(&format!("{path}/send"), key, json!({})).await.expect(200);
    app.service.jobs.run_due().await.unwrap();
    app.post(&format!("{path}/pause"), key, json!({})).await.expect(200);
    BTreeMap::from([("broadcastId", sent["id"].to_string())])
}
