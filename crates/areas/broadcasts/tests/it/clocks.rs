//! The times at which messages of broadcasts are sent.

use crate::support::{all, open};
use serde_json::{Value, json};
use testkit::Kind;
#[testkit::both]
async fn clocks_decide_when_messages_are_sent(kind: Kind) {
    let desk = open(kind).await;
    let at = async |name: &str, phone: &str, zone: Value| {
        let data = json!({ "$name": name, "$phone": phone, "$timezone": zone });
        desk.post("/contacts", json!({ "data": data })).await.expect(201)["id"].as_i64().unwrap()
    };
    let madrid = at("Ana", "+34612345678", Value::Null).await;
    let tokyo = at("Ben", "+34612345679", json!("Asia/Tokyo")).await;
    // It is 12:00 UTC and 13:00 in Madrid.
    let quiet = json!({ "time_zone": "Europe/Madrid", "quiet_hours": { "from": "12:30", "to": "13:10" } });
    let id = desk.draft(all(), json!({ "schedule": quiet })).await;
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 0);
    desk.app.data.clock.advance(chrono::Duration::minutes(9));
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 0);
    desk.app.data.clock.advance(chrono::Duration::minutes(1));
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 2);
    // At 09:00 local time, which is midnight UTC in Tokyo.
    let local = json!({
        "send_at": "2026-01-16T08:00:00Z", "time_zone": "Europe/Madrid", "contact_local_time": true,
        "quiet_hours": { "from": "09:00", "to": "09:30" },
    });
    let id = desk.draft(all(), json!({ "schedule": local })).await;
    assert_eq!(desk.act(id, "send").await["status"], "scheduled");
    let hours = async |hours: i64| {
        desk.app.data.clock.advance(chrono::Duration::minutes(60 * hours));
        desk.run().await;
        desk.messages().await.split_off(2).into_iter().map(|(contact, ..)| contact).collect::<Vec<_>>()
    };
    assert_eq!(hours(11).await, [0; 0]);
    let rows = desk.recipients(id, "").await;
    assert_eq!(rows[0]["not_before"], "2026-01-16T08:00:00.000Z");
    assert_eq!(rows[1]["not_before"], "2026-01-16T00:00:00.000Z");
    // 00:10 UTC is in the quiet hours of Tokyo.
    assert_eq!(hours(1).await, [0; 0]);
    assert_eq!(desk.recipients(id, "").await[1]["not_before"], "2026-01-16T00:30:00.000Z");
    assert_eq!(hours(1).await, [tokyo]);
    assert_eq!(hours(6).await, [tokyo]);
    assert_eq!(hours(2).await, [tokyo, madrid]);
}
