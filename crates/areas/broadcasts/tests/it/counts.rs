//! The counts of broadcasts always equal those of their recipients.

use crate::support::{Desk, all, open};
use model::{ContactId, Timestamp};
use serde_json::{Value, json};
use testkit::Kind;

const STATES: [&str; 9] =
    ["pending", "claimed", "sent", "delivered", "read", "failed", "skipped", "unknown", "cancelled"];

/// A generator of pseudo-random numbers that repeats in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

impl Desk {
    async fn counted(&self, id: i64) -> Value {
        let of = format!("SELECT COUNT(*) AS n FROM broadcast_recipients WHERE broadcast_id = {id}");
        // All recipients are contacts of the workspace, so no line of a list is unmatched.
        let mut counts = json!({ "total": self.count(&of).await, "unmatched": 0, "contradictory": 0 });
        for state in STATES {
            let name = if state == "claimed" { "sending" } else { state };
            counts[name] = json!(self.count(&format!("{of} AND state = '{state}'")).await);
        }
        counts["replied"] = json!(self.count(&format!("{of} AND replied_at IS NOT NULL")).await);
        counts
    }

    /// Makes a random change to a broadcast and returns its description.
    async fn happen(&self, id: i64, contacts: &[i64], chance: &mut Chance) -> String {
        let rows = self.recipients(id, "limit=100").await;
        let row = rows[chance.below(rows.len())].clone();
        match chance.below(9) {
            0..=3 if row["message_id"].is_i64() => {
                let status = ["sent", "delivered", "read", "failed", "unknown"][chance.below(5)];
                self.report(&row, status, (status == "failed").then_some("undeliverable")).await;
                status.to_owned()
            }
            4 => {
                let at = Timestamp::from_millis(model::Clock::now(&*self.app.data.clock).millis());
                self.reply(ContactId(row["contact_id"].as_i64().unwrap()), at).await;
                "reply".to_owned()
            }
            5 => {
                let contact = contacts[chance.below(contacts.len())];
                self.post(&format!("/contacts/{contact}/opt-out"), json!({})).await;
                "opt-out".to_owned()
            }
            6 => {
                let (into, from) =
                    (contacts[chance.below(contacts.len())], contacts[chance.below(contacts.len())]);
                self.post(&format!("/contacts/{into}/merge"), json!({ "source_id": from })).await;
                "merge".to_owned()
            }
            7 => {
                let what = ["pause", "send"][chance.below(2)];
                self.post(&format!("/broadcasts/{id}/{what}"), json!({})).await;
                what.to_owned()
            }
            _ => {
                let seconds = [1, 2, 61][chance.below(3)];
                self.app.data.clock.advance(chrono::Duration::seconds(seconds));
                self.run().await;
                format!("{seconds} s")
            }
        }
    }
}

#[testkit::both]
async fn counts_are_those_of_the_rows(kind: Kind) {
    let desk = open(kind).await;
    let contacts = desk.crowd(40).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 600 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    let mut chance = Chance(7);
    let mut happened = Vec::new();
    for _ in 0..120 {
        happened.push(desk.happen(id, &contacts, &mut chance).await);
        assert_eq!(desk.broadcast(id).await["counts"], desk.counted(id).await, "{happened:?}");
    }
    desk.app.sql(format!("DELETE FROM broadcast_recipients WHERE contact_id = {}", contacts[0])).await;
    desk.post(&format!("/broadcasts/{id}/send"), json!({ "retry": "failed" })).await;
    assert_eq!(desk.broadcast(id).await["counts"], desk.counted(id).await);
    desk.post(&format!("/broadcasts/{id}/cancel"), json!({})).await;
    desk.seconds(3).await;
    assert_eq!(desk.broadcast(id).await["counts"], desk.counted(id).await);
    // The job compacts the counts.
    desk.app.data.clock.advance(chrono::Duration::seconds(61));
    desk.run().await;
    let rows = desk.count("SELECT COUNT(*) AS n FROM broadcast_counts").await;
    assert!(rows <= 64, "{rows}");
    assert_eq!(desk.broadcast(id).await["counts"], desk.counted(id).await);
}
