//! Automations that a clock fires.

mod dates;
mod schedules;
mod silences;

use crate::Shop;
use chrono::Duration;
use model::Timestamp;
use serde_json::Value;

/// Parses a moment such as `2026-03-29T01:30Z`.
fn moment(text: &str) -> Timestamp {
    Timestamp::parse(&text.replace('Z', ":00Z")).unwrap()
}

impl Shop {
    fn now(&self) -> Timestamp {
        self.app.db().now()
    }

    /// Sets the clock, and lets what is due fire.
    async fn at(&self, at: Timestamp) {
        let ahead = at.millis() - self.now().millis();
        self.app.data.clock.advance(Duration::milliseconds(ahead));
        self.work().await;
    }

    async fn wait(&self, minutes: i64) {
        self.at(self.now().plus_seconds(minutes * 60)).await;
    }

    /// When the timer of an automation is due next.
    async fn next(&self, path: &str) -> Option<Timestamp> {
        let automation = self.app.get(path, &self.key).await.expect(200);
        automation["next_fire_at"].as_str().and_then(Timestamp::parse)
    }

    /// A field of the data of each firing, the oldest first, with its status or the reason why it did not fire.
    async fn fired(&self, path: &str, field: &str) -> Vec<(Value, Value)> {
        let of = |firing: &Value| {
            let outcome = if firing["reason"].is_null() { &firing["status"] } else { &firing["reason"] };
            (firing["data"][field].clone(), outcome.clone())
        };
        self.executions(path).await.iter().map(of).collect()
    }
}
