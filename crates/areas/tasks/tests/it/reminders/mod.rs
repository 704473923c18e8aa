//! Reminders: dates, firing exactly once, snoozing and actions.

mod actions;
mod firing;
mod flows;
mod of_tasks;
mod operations;
mod recurrence;

use chrono::Duration;
use model::Timestamp;
use serde_json::Value;
use testkit::{Key, Kind, TestApp};

/// A service, and a key of a workspace with an active agent.
struct Fixture {
    app: TestApp,
    key: Key,
}

impl Fixture {
    async fn open(kind: Kind) -> Self {
        Self::of(TestApp::new(kind).await).await
    }

    async fn of(app: TestApp) -> Self {
        let key = app.full_key().await;
        Self { app, key }
    }

    fn now(&self) -> Timestamp {
        self.app.db().now()
    }

    /// Returns the moment in this many minutes.
    fn after(&self, minutes: i64) -> String {
        self.now().plus_seconds(minutes * 60).rfc3339()
    }

    async fn create(&self, body: Value) -> Value {
        self.app.post("/reminders", &self.key, body).await.expect(201)
    }

    async fn change(&self, reminder: &Value, patch: Value) -> Value {
        self.app.patch(&path(reminder), &self.key, patch).await.expect(200)
    }

    /// Reads a reminder.
    async fn get(&self, reminder: &Value) -> Value {
        let all = self.app.get("/reminders", &self.key).await.expect(200);
        all.as_array().unwrap().iter().find(|other| other["id"] == reminder["id"]).unwrap().clone()
    }

    /// Advances the clock and runs due jobs.
    async fn wait(&self, minutes: i64) {
        self.app.data.clock.advance(Duration::minutes(minutes));
        self.run().await;
    }

    async fn run(&self) {
        self.app.service.jobs.run_due().await.unwrap();
    }

    /// Returns the dates for which reminders fired, oldest first.
    async fn fired(&self) -> Vec<Value> {
        let events = self.events().await;
        events.iter().map(|event| event["data"]["scheduled_for"].clone()).collect()
    }

    async fn events(&self) -> Vec<Value> {
        self.app.deliver().await;
        let events = self.app.get("/events?type=reminder.fired&limit=100", &self.key).await.expect(200);
        events.as_array().unwrap().iter().rev().cloned().collect()
    }

    async fn runs(&self) -> Vec<Value> {
        self.app.service.engine.idle().await;
        let runs = self.app.get("/runs", &self.key).await.expect(200);
        runs.as_array().unwrap().clone()
    }
}

fn path(reminder: &Value) -> String {
    format!("/reminders/{}", reminder["id"])
}
