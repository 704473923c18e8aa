//! `kill -9` while requests come in at an inbound webhook, with the real program: every answer of 2xx is in the log
//! exactly once.
//!
//! `SVC_TEST_INBOUND_REQUESTS` says how many requests, 1,000 if not set.

use futures::StreamExt;
use futures::stream;
use ring::hmac;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{Answer, Client, Key, Kind, Program, until};

const SECRET: &str = "It's a Secret to Everybody";

/// What request `number` is: every seventh repeats an earlier delivery, every eleventh is signed wrongly, every
/// hundredth is too large.
struct Request {
    delivery: String,
    body: String,
    signature: String,
    expected: [u16; 2],
}

fn request(number: usize) -> Request {
    let original = if number % 7 == 6 { number / 2 } else { number };
    let (is_wrong, is_large) = (number % 11 == 3, number % 100 == 50);
    let filler = "x".repeat(if is_large { 1 << 20 } else { number % 400 });
    let body = json!({ "number": original, "filler": filler }).to_string();
    let key = hmac::Key::new(hmac::HMAC_SHA256, if is_wrong { b"wrong" } else { SECRET.as_bytes() });
    let tag = hmac::sign(&key, body.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = match (is_large, is_wrong) {
        (true, _) => [413, 413],
        (false, true) => [400, 400],
        (false, false) => [202, 200],
    };
    Request { delivery: format!("delivery-{original}"), body, signature: format!("sha256={hex}"), expected }
}

async fn send(client: &Client, path: &str, number: usize) -> Option<Answer> {
    let request = request(number);
    let asking = client.ask_beside("POST", path).header("x-github-delivery", &request.delivery);
    let asking = asking.header("x-hub-signature-256", &request.signature);
    let answer = asking.bytes("application/json", request.body.as_bytes()).try_send().await.ok()?;
    assert!(request.expected.contains(&answer.status), "{number}: {} {}", answer.status, answer.text);
    Some(answer)
}

/// All rows of the log by id.
async fn log(client: &Client, key: &Key, webhook: &str) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    loop {
        let path = format!("/inbound-webhooks/{webhook}/requests?limit=100&offset={}", rows.len());
        let page = client.ask("GET", &path).key(key).send().await.expect(200);
        let page = page.as_array().unwrap().clone();
        if page.is_empty() {
            return rows;
        }
        for row in page {
            let id = row["id"].as_str().unwrap().to_owned();
            assert!(rows.insert(id, row).is_none(), "a row comes twice");
        }
    }
}

#[testkit::both]
async fn what_was_answered_is_in_the_log_once(kind: Kind) {
    let number: usize = std::env::var("SVC_TEST_INBOUND_REQUESTS").map_or(1000, |text| text.parse().unwrap());
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let client = program.client();
    let key = program.key("webhooks:manage");

    let first = program.serve().await;
    let new = json!({
        "name": "Killed", "rate_limit": { "per_minute": 1_000_000 },
        "verification": { "type": "github", "secrets": [SECRET] },
    });
    let webhook = client.ask("POST", "/inbound-webhooks").key(&key).json(&new).send().await.expect(201);
    let (id, url) = (webhook["id"].as_str().unwrap(), webhook["url"].as_str().unwrap());
    let path = url.strip_prefix(&format!("http://{}", program.listen)).unwrap();

    // Sixteen at a time; a request that is not answered is sent again to the next process, as senders do.
    let answered = AtomicUsize::new(0);
    let sending = stream::iter(0..number)
        .map(async |number| {
            let answer = until("a request is answered", async || send(&client, path, number).await).await;
            answered.fetch_add(1, Ordering::Relaxed);
            (number, answer)
        })
        .buffer_unordered(16)
        .collect::<Vec<_>>();
    let killing = async {
        until("half are answered", async || (answered.load(Ordering::Relaxed) > number / 2).then_some(()))
            .await;
        first.kill();
        program.serve().await
    };
    let (answers, second) = tokio::join!(sending, killing);
    assert_eq!(answers.len(), number);

    let rows = log(&client, &key, id).await;
    let mut taken: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut new, mut again) = (0, 0);
    for (number, answer) in &answers {
        if answer.status >= 400 {
            continue;
        }
        let id = answer.body["data"]["id"].as_str().unwrap();
        let row = &rows[id];
        assert_eq!(row["status"], "accepted", "{row}");
        assert!(row["event_id"].is_string(), "{row}");
        let delivery = request(*number).delivery;
        assert_eq!(row["headers"]["x-github-delivery"], delivery);
        taken.entry(delivery).or_default().insert(id.to_owned());
        if answer.status == 202 { new += 1 } else { again += 1 }
    }
    assert!(taken.values().all(|ids| ids.len() == 1), "a delivery was taken twice: {taken:?}");
    let of = |status: &str| rows.values().filter(|row| row["status"] == status).count();
    // What was committed and not answered before the kill was sent again: at most what was under way.
    assert!((new..=new + 16).contains(&of("accepted")), "{new} answers, {} rows", of("accepted"));
    assert!((again..=again + 32).contains(&of("duplicate")), "{again} answers, {} rows", of("duplicate"));
    assert_eq!(of("accepted"), taken.len(), "every delivery that was kept was answered in the end");
    let emitted = program.data.db.read(|read| {
        use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
        use store::schema::events;
        Ok(events::table
            .filter(events::kind.eq("webhook.received"))
            .count()
            .get_result::<i64>(read.connection())?)
    });
    assert_eq!(emitted.await.unwrap(), i64::try_from(of("accepted")).unwrap());
    drop(second);
}
