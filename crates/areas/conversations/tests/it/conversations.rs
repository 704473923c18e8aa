//! Conversations: lists, messages and search.

use crate::support::Desk;
use chrono::Duration;
use conversations::sample::{self, Sample};
use conversations::{StateChange, set_state};
use model::{ChannelId, Code, ContactId, ConversationId, Env, FileId, MemberRole};
use serde_json::{Value, json};
use testkit::Kind;

impl Desk {
    async fn talk(&self, channel: ChannelId, contact: i64, voice: Option<FileId>) -> Sample {
        let workspace = self.workspace;
        let made = self
            .app
            .data
            .db
            .write(move |tx| sample::create(tx, workspace, channel, ContactId(contact), voice));
        made.await.unwrap()
    }

    async fn ids(&self, path: &str) -> Vec<i64> {
        let rows = self.get(path).await.expect(200);
        rows.as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
    }
}

fn ids(sample: &Sample) -> Vec<i64> {
    // The last is a reaction, which is listed under its target.
    sample.messages.iter().rev().skip(1).map(|id| id.0).collect()
}

#[testkit::both]
async fn messages_have_files_transcripts_histories_and_reactions(kind: Kind) {
    let desk = Desk::open(kind).await;
    let contact = desk.contact("Ana", "+5511987654321").await;
    let file = desk.app.ask("POST", "/files").key(&desk.key).header("idempotency-key", "voice");
    let file = file.form(&[], ("voice.ogg", b"OggS")).send().await.expect(201);
    let voice = FileId(file["id"].as_i64().unwrap());
    let talk = desk.talk(desk.channel, contact, Some(voice)).await;
    let all = desk.get("/contacts/phone:+5511987654321/messages").await.expect(200);
    let listed: Vec<i64> = all.as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
    assert_eq!(listed, ids(&talk));
    let spoken = &all[3];
    assert_eq!((&spoken["content"], &spoken["direction"]), (&json!("[Audio]"), &json!("inbound")));
    let attachment = &spoken["attachments"][0];
    assert_eq!(attachment["transcript"], json!("Do you deliver on Saturdays?"));
    assert_eq!((&attachment["transcript_status"], &attachment["size"]), (&json!("ready"), &json!(4)));
    assert_eq!(attachment["permanent_url"], file["url"]);
    assert!(attachment["signed_url"].as_str().unwrap().contains("/d/"));
    let shipped = &all[1];
    assert_eq!(shipped["template"]["name"], json!("order_shipped"));
    assert_eq!(shipped["status"], json!("delivered"));
    assert_eq!(shipped["status_history"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&shipped["reactions"][0]["emoji"], &shipped["reactions"][0]["sender"]),
        (&json!("👍"), &json!("contact"))
    );
    let other = desk.contact("Ben", "+5511987650000").await;
    assert_eq!(desk.get(&format!("/contacts/{other}/messages")).await.expect(200), json!([]));
    desk.get("/contacts/999999/messages").await.expect_error(404, "not_found");
}

#[testkit::both]
async fn inserts_do_not_shift_pages(kind: Kind) {
    let desk = Desk::open(kind).await;
    let contact = desk.contact("Ana", "+5511987654321").await;
    let talk = desk.talk(desk.channel, contact, None).await;
    for path in
        [format!("/contacts/{contact}/messages"), format!("/conversations/{}/messages", talk.conversation)]
    {
        let before = desk.ids(&path).await;
        let first = desk.get(&format!("{path}?paginate=true&limit=2")).await;
        let cursor = first.body["next_cursor"].as_str().unwrap().to_owned();
        desk.talk(desk.channel, contact, None).await;
        let second = desk.get(&format!("{path}?limit=2&starting_after={cursor}")).await;
        let second: Vec<i64> =
            second.body["data"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
        assert_eq!(second, before[2..4]);
        desk.get(&format!("{path}?starting_after=x")).await.expect_error(400, "validation_error");
    }
    let oldest = desk.ids(&format!("/conversations/{}/messages?order=asc", talk.conversation)).await;
    assert_eq!(oldest[0], talk.messages[0].0);
}

#[testkit::both]
async fn the_memory_of_a_run_is_no_conversation_with_a_contact(kind: Kind) {
    let desk = Desk::open(kind).await;
    for named in [json!({ "input": "Hi" }), json!({ "input": "Hi", "conversation_id": "shop-7" })] {
        let run = desk.post("/runs", named.clone()).await.expect(200);
        assert_eq!(run["ephemeral"], named["conversation_id"].is_null());
        let path = format!("/conversations/{}", run["conversation_id"].as_str().unwrap());
        desk.get(&path).await.expect_error(404, "not_found");
    }
    assert_eq!(desk.get("/conversations").await.expect(200), json!([]));
}

#[testkit::both]
async fn conversations_are_listed_by_activity_and_filtered(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, ben) =
        (desk.contact("Ana", "+5511987654321").await, desk.contact("Ben", "+5511987650000").await);
    let second = desk.second_channel().await;
    let first = desk.talk(desk.channel, ana, None).await.conversation.0;
    let newest = desk.talk(second, ben, None).await.conversation.0;
    assert_eq!(desk.ids("/conversations").await, [newest, first]);
    desk.talk(desk.channel, ana, None).await;
    assert_eq!(
        desk.ids("/conversations").await,
        [first, newest],
        "new messages move a conversation to the top"
    );
    for (filter, expected) in [
        (format!("channel_id={second}"), vec![newest]),
        (format!("contact_id={ana}"), vec![first]),
        ("status=open".to_owned(), vec![first, newest]),
        ("status=closed".to_owned(), vec![]),
        ("unread=true".to_owned(), vec![first, newest]),
        ("unread=false".to_owned(), vec![]),
    ] {
        assert_eq!(desk.ids(&format!("/conversations?{filter}")).await, expected, "{filter}");
    }
    let page = desk.get("/conversations?paginate=true&limit=1").await;
    let cursor = page.body["next_cursor"].as_str().unwrap().to_owned();
    let page = desk.get(&format!("/conversations?starting_after={cursor}")).await;
    assert_eq!((&page.body["data"][0]["id"], &page.body["has_more"]), (&json!(newest), &json!(false)));
    let one = desk.get(&format!("/conversations/{first}")).await.expect(200);
    assert_eq!(
        (&one["handler"], &one["status"], &one["contact_id"]),
        (&json!("agent"), &json!("open"), &json!(ana))
    );
    assert_eq!((&one["window"]["open"], &one["last_message"]["type"]), (&json!(true), &json!("reaction")));
    assert_eq!(one.get("app_url"), Some(&Value::Null), "there is no such page");
    desk.app
        .put(&format!("/contacts/{ana}/autopilot"), &desk.key, json!({ "enabled": false }))
        .await
        .expect(200);
    let one = desk.get(&format!("/conversations/{first}")).await.expect(200);
    assert_eq!(one["handler"], json!("human"));
    let member = desk.app.member(desk.key.workspace, MemberRole::Agent).await;
    let assigned = json!({ "assignee_id": member.session.member });
    desk.app.put(&format!("/contacts/{ben}/assignment"), &desk.key, assigned).await.expect(200);
    let member = member.id();
    for (filter, expected) in [
        ("handler=human".to_owned(), vec![first]),
        ("handler=agent".to_owned(), vec![newest]),
        ("assignee=none".to_owned(), vec![first]),
        (format!("assignee={member}"), vec![newest]),
        (format!("assignee={member}&handler=human"), vec![]),
        (format!("assignee={member}&status=closed"), vec![]),
        ("assignee=none&handler=human&unread=true".to_owned(), vec![first]),
    ] {
        assert_eq!(desk.ids(&format!("/conversations?{filter}")).await, expected, "{filter}");
    }
    for wrong in ["x", "0", "99999999999999999999", "-1"] {
        let refused = desk.get(&format!("/conversations?assignee={wrong}")).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("assignee"), "{wrong}");
    }
    let elsewhere = desk.app.bare_workspace("scale", 0).await;
    let key = desk.app.key(elsewhere, Env::Live, &["*"]).await;
    desk.app.get(&format!("/conversations/{first}"), &key).await.expect_error(404, "not_found");
    desk.app.get(&format!("/conversations/{first}/messages"), &key).await.expect_error(404, "not_found");
    assert_eq!(desk.app.get("/conversations", &key).await.expect(200), json!([]));
    for filter in [format!("channel_id={second}"), format!("contact_id={ana}")] {
        let found = desk.app.get(&format!("/conversations?{filter}"), &key).await.expect(200);
        assert_eq!(found, json!([]), "{filter}");
    }
}

#[testkit::both]
async fn messages_are_found_by_their_words(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, ben) =
        (desk.contact("Ana", "+5511987654321").await, desk.contact("Ben", "+5511987650000").await);
    let second = desk.second_channel().await;
    let of_ana = ids(&desk.talk(desk.channel, ana, None).await);
    let of_ben = ids(&desk.talk(second, ben, None).await);
    for (q, place) in [
        ("espresso", 5),
        ("ESPRÉSSO%20mach", 5),
        ("machine%20the%20is", 5),
        ("saturd", 3),
        ("order%204711", 1),
        ("do%20you%20deliver", 3),
    ] {
        let found = desk.ids(&format!("/conversations/search?q={q}")).await;
        assert_eq!(found, [of_ben[place], of_ana[place]], "{q}");
        for narrowed in [format!("contact_id={ana}"), format!("channel_id={}", desk.channel)] {
            let found = desk.ids(&format!("/conversations/search?q={q}&{narrowed}")).await;
            assert_eq!(found, [of_ana[place]], "{q} {narrowed}");
        }
    }
    for q in ["machin%20espresso", "espresso%20saturdays", "sunday", "audios"] {
        assert_eq!(desk.get(&format!("/conversations/search?q={q}")).await.expect(200), json!([]), "{q}");
    }
    let page = desk.get("/conversations/search?q=is&paginate=true&limit=1").await;
    let cursor = page.body["next_cursor"].as_str().unwrap().to_owned();
    let next = desk.get(&format!("/conversations/search?q=is&limit=1&starting_after={cursor}")).await;
    assert!(next.body["data"][0]["id"].as_i64() < page.body["data"][0]["id"].as_i64());
    for q in ["%21%3F", "a%20b%20c%20d%20e%20f%20g%20h%20i"] {
        let refused = desk.get(&format!("/conversations/search?q={q}")).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("q"));
    }
    let elsewhere = desk.app.bare_workspace("scale", 0).await;
    let key = desk.app.key(elsewhere, Env::Live, &["*"]).await;
    let found: Value = desk.app.get("/conversations/search?q=espresso", &key).await.expect(200);
    assert_eq!(found, json!([]));
}

#[testkit::both]
async fn a_search_pages_to_everything_with_bounded_work(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.contact("Ana", "+5511987654321").await;
    let of_ana = ids(&desk.talk(desk.channel, ana, None).await);
    // Thousands of newer messages have the word too, but not the other one; there are many words that begin alike.
    let first = of_ana[of_ana.len() - 1] + 1_000;
    let numbers = match kind {
        testkit::Kind::Sqlite => {
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) SELECT i FROM n"
        }
        testkit::Kind::Postgres => "SELECT i FROM generate_series(1, 6000) AS n (i)",
    };
    desk.app.sql(format!(
        "INSERT INTO messages (id, workspace_id, conversation_id, channel_id, contact_id, direction, sender_type, \
         message_type, content, status_rank, attempt, created_at, updated_at) \
         SELECT {first} + i, workspace_id, conversation_id, channel_id, contact_id, direction, sender_type, \
         message_type, 'espresso', 0, 1, created_at, updated_at FROM messages, ({numbers}) AS numbers WHERE id = {}",
        of_ana[0]
    )).await;
    for term in ["'espresso'", "'pre' || message_id"] {
        desk.app.sql(format!(
            "INSERT INTO message_terms (message_id, term, workspace_id) SELECT m.message_id, {term}, workspace_id \
             FROM (SELECT id AS message_id, workspace_id FROM messages WHERE id > {first}) AS m"
        )).await;
    }
    let all = async |q: &str| {
        let (mut found, mut pages, mut after) = (Vec::new(), 0, String::new());
        loop {
            let page = desk.get(&format!("/conversations/search?q={q}&paginate=true&limit=100{after}")).await;
            found.extend(page.body["data"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()));
            pages += 1;
            let Some(cursor) = page.body["next_cursor"].as_str() else { return (found, pages) };
            after = format!("&starting_after={cursor}");
        }
    };
    assert_eq!(all("espresso%20machin").await, (vec![of_ana[5]], 2));
    let (found, pages) = all("pre").await;
    assert_eq!((found.len(), pages), (6_000, 60));
    assert!(found.is_sorted_by(|a, b| a > b));
}

#[testkit::both]
async fn words_are_found_in_writing_without_spaces(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+34611000001");
    let texts =
        ["我的订单什么时候到货", "สวัสดีครับผม", "nº2026-0042", "Νικος", "ΝΙΚΟΣ", "red 订单 Straße", "👍 ok"];
    for text in texts {
        desk.hear(&ana, text).await;
    }
    let found = async |q: &str| {
        let q: String = url::form_urlencoded::byte_serialize(q.as_bytes()).collect();
        let rows = desk.get(&format!("/conversations/search?q={q}")).await.expect(200);
        let mut found: Vec<usize> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| texts.iter().position(|text| row["content"] == *text).unwrap())
            .collect();
        found.sort_unstable();
        found
    };
    let expected: [(&str, &[usize]); 16] = [
        ("订单", &[0, 5]),
        ("我的订单什么时候到货", &[0]),
        ("单", &[0, 5]),
        ("订 red", &[5]),
        ("单 订 货", &[0]),
        ("货订", &[]),
        ("ครับ", &[1]),
        ("2026-0042", &[2]),
        ("νικος", &[3, 4]),
        ("ΝΙΚΟΣ", &[3, 4]),
        ("νικ", &[3, 4]),
        ("strasse", &[5]),
        ("STRAẞ", &[5]),
        ("👍", &[]),
        ("¡!", &[]),
        ("订单 straße", &[5]),
    ];
    for (q, places) in expected {
        assert_eq!(found(q).await, places, "{q}");
    }
    // Messages of earlier versions are made findable by a job.
    desk.app.sql("DELETE FROM message_terms").await;
    assert!(found("订单").await.is_empty());
    let migration = match kind {
        testkit::Kind::Sqlite => include_str!("../../../../../migrations/sqlite/0042_text_keys/up.sql"),
        testkit::Kind::Postgres => include_str!("../../../../../migrations/postgres/0042_text_keys/up.sql"),
    };
    let statement = migration.split(";\n").find(|statement| statement.contains("'channels.words'")).unwrap();
    desk.app.sql(statement).await;
    while desk.app.service.jobs.run_due().await.unwrap() > 0 {}
    assert_eq!(found("订单").await, [0, 5]);
    assert_eq!(found("νικος").await, [3, 4]);
}

#[testkit::both]
async fn conversations_are_closed_snoozed_and_opened_again(kind: Kind) {
    let desk = Desk::open(kind).await;
    let contact = desk.contact("Ana", "+5511987654321").await;
    let talk = desk.talk(desk.channel, contact, None).await;
    let path = format!("/conversations/{}", talk.conversation);
    let state = async |change: StateChange| {
        let id = talk.conversation;
        desk.app.data.db.write(move |tx| set_state(tx, id, &change)).await
    };
    let version = async || desk.get(&path).await.expect(200)["version"].as_i64().unwrap();

    let first = version().await;
    state(StateChange::Close { reason: Some(" Sold ".to_owned()) }).await.unwrap();
    let closed = desk.get(&path).await.expect(200);
    assert_eq!((&closed["status"], &closed["close_reason"]), (&json!("closed"), &json!("Sold")));
    assert_eq!(closed["closed_at"], json!(desk.app.data.db.now()));
    assert_eq!(desk.ids("/conversations?status=closed").await, [talk.conversation.0]);
    assert!(desk.ids("/conversations?status=open").await.is_empty());
    // A second close changes nothing, not even the time.
    desk.app.data.clock.advance(Duration::minutes(1));
    let again = state(StateChange::Close { reason: Some("Sold".to_owned()) }).await.unwrap();
    assert_eq!((json!(again.closed_at), version().await), (closed["closed_at"].clone(), first + 1));

    let until = desk.app.data.db.now().plus_seconds(3_600);
    state(StateChange::Snooze { until }).await.unwrap();
    let snoozed = desk.get(&path).await.expect(200);
    assert_eq!((&snoozed["status"], &snoozed["snoozed_until"]), (&json!("snoozed"), &json!(until)));
    assert_eq!((&snoozed["closed_at"], &snoozed["close_reason"]), (&Value::Null, &Value::Null));
    desk.app.data.clock.advance(Duration::hours(1));
    desk.app.service.jobs.run_due().await.unwrap();
    let open = desk.get(&path).await.expect(200);
    assert_eq!((&open["status"], &open["snoozed_until"]), (&json!("open"), &Value::Null));

    state(StateChange::Close { reason: None }).await.unwrap();
    desk.talk(desk.channel, contact, None).await;
    let open = desk.get(&path).await.expect(200);
    assert_eq!((&open["status"], &open["closed_at"]), (&json!("open"), &Value::Null));
    let before = version().await;
    state(StateChange::Reopen).await.unwrap();
    assert_eq!(version().await, before);

    let now = desk.app.data.db.now();
    for until in [now, now.plus_seconds(367 * 86_400)] {
        assert_eq!(state(StateChange::Snooze { until }).await.unwrap_err().param_name(), Some("until"));
    }
    let long = StateChange::Close { reason: Some("x".repeat(201)) };
    assert_eq!(state(long).await.unwrap_err().param_name(), Some("reason"));
    let missing =
        desk.app.data.db.write(|tx| set_state(tx, ConversationId(999_999), &StateChange::Reopen)).await;
    assert_eq!(missing.unwrap_err().code(), Code::NotFound);
}
