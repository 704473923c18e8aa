//! `svc events tail`: events as they happen, printed and, if asked, forwarded signed, as a webhook would be. A developer
//! needs no public URL so.

use super::client::{Client, Target, failure};
use super::output;
use crate::values::{http_url, whole};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use egress::{Connector, Limits, Method, Request, Response};
use model::{Clock, SystemClock, SystemRandom};
use serde_json::Value;
use std::time::Duration;
use webhooks::signing::{Signer, new_secret};

/// How long to wait before asking a service again that did not answer.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Subcommand)]
pub(super) enum EventsCommand {
    /// Print events as they happen, one JSON object a line, and forward them.
    Tail(Tail),
}

#[derive(Args)]
pub(super) struct Tail {
    /// Only events of these types, separated by commas, such as `run.completed,contact.*`.
    #[arg(long)]
    types: Option<String>,
    /// Post each event here, signed as a webhook.
    #[arg(long, value_name = "URL", value_parser = http_url)]
    forward: Option<String>,
    /// The secret to sign with (`whsec_…`). Made up and shown if not given.
    #[arg(long, requires = "forward", hide_env_values = true, env = "SVC_WEBHOOK_SECRET")]
    secret: Option<String>,
    /// Begin behind this place of the log instead of now; 0 is the oldest event that is kept.
    #[arg(long, value_parser = whole::<i64, 0, { i64::MAX }>, allow_negative_numbers = true)]
    after: Option<i64>,
    /// End after so many events.
    #[arg(long, value_parser = whole::<u64, 1, { i64::MAX }>, allow_negative_numbers = true)]
    count: Option<u64>,
    /// The key needs `events:read`.
    #[command(flatten)]
    target: Target,
}

/// Signs and posts events.
struct Forward {
    url: String,
    signer: Signer,
}

/// Runs until it is interrupted, or as many events have come as were asked for.
pub(super) async fn tail(arguments: Tail) -> anyhow::Result<()> {
    let client = arguments.target.client()?;
    let forward =
        arguments.forward.as_ref().map(|url| Forward::new(url, arguments.secret.as_deref())).transpose()?;
    let mut after = arguments.after;
    let mut seen = 0;
    loop {
        let (events, next) = match ask(&client, &arguments, after).await {
            Ok(answer) => answer,
            Err(error) if error.is::<Refused>() => return Err(error),
            Err(error) => {
                tracing::warn!("{error:#}; asking again");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // The first answer without a place shows what was before; only its end counts.
        for event in events.iter().filter(|_| after.is_some()) {
            output::text(&format!("{event}\n"))?;
            if let Some(forward) = &forward {
                forward.send(&client.connector, event).await;
            }
            seen += 1;
            if arguments.count.is_some_and(|count| seen >= count) {
                return Ok(());
            }
        }
        after = Some(next);
    }
}

/// The service answered that it will not.
#[derive(Debug)]
struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

async fn ask(client: &Client, tail: &Tail, after: Option<i64>) -> anyhow::Result<(Vec<Value>, i64)> {
    let mut query = Vec::new();
    if let Some(after) = after {
        query.push(("after".to_owned(), after.to_string()));
        query.push(("limit".to_owned(), "100".to_owned()));
    }
    if let Some(types) = &tail.types {
        query.push(("types".to_owned(), types.clone()));
    }
    let request = client.request(Method::GET, "/events/live", &query)?.limits(Limits {
        total: Duration::from_secs(60),
        max_response_bytes: 16 * 1024 * 1024,
        ..Limits::default()
    });
    let response = client.connector.send(request).await.context("the service does not answer")?;
    read(&response)
}

fn read(response: &Response) -> anyhow::Result<(Vec<Value>, i64)> {
    if response.status != 200 {
        let text = failure(response);
        // Of these, asking again makes nothing better.
        if (400..500).contains(&response.status) && response.status != 429 {
            return Err(Refused(text).into());
        }
        bail!(text);
    }
    let body: Value = serde_json::from_slice(&response.body).context("the answer is not JSON")?;
    let events = body.get("data").and_then(Value::as_array).cloned().unwrap_or_default();
    let next = body.get("next_after").and_then(Value::as_i64).context("the answer has no `next_after`")?;
    Ok((events, next))
}

impl Forward {
    fn new(url: &str, secret: Option<&str>) -> anyhow::Result<Self> {
        let secret = match secret {
            Some(secret) => secret.to_owned(),
            None => {
                let secret = new_secret(&SystemRandom::default());
                output::aside(&format!("signing with {secret}"));
                secret
            }
        };
        let signer =
            Signer::read(&secret).map_err(|_| anyhow::anyhow!("--secret must be `whsec_` and base64"))?;
        Ok(Self { url: url.to_owned(), signer })
    }

    /// Posts one event, and tells what the receiver answered. What fails is not tried again: the next event may tell more.
    async fn send(&self, connector: &Connector, event: &Value) {
        let (id, body) = wire(event);
        let now = SystemClock.now().seconds();
        let signature = self.signer.sign(&id, now, &body);
        let request = Request::post(self.url.clone(), body)
            .header("content-type", "application/json")
            .header("user-agent", "svc-webhooks/1")
            .header("webhook-id", &id)
            .header("webhook-timestamp", now.to_string())
            .header("webhook-signature", &signature)
            .header("x-svc-signature", &signature)
            .header("x-svc-event-id", &id)
            .header("x-svc-timestamp", now.to_string())
            .header("x-svc-attempt", "1");
        match connector.send(request).await {
            Ok(response) => output::aside(&format!("{id} → {}", response.status)),
            Err(error) => output::aside(&format!("{id} → {error}")),
        }
    }
}

/// An event's id, and the body in which a webhook would send it.
fn wire(event: &Value) -> (String, String) {
    let names = ["id", "object", "type", "created_at", "livemode", "workspace_id", "sequence", "data"];
    let body: serde_json::Map<String, Value> = names
        .into_iter()
        .map(|name| (name.to_owned(), event.get(name).cloned().unwrap_or(Value::Null)))
        .collect();
    let id = event.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    (id, Value::Object(body).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_forwarded_as_they_are_on_the_wire() {
        let event = json!({
            "id": "evt_1", "object": "event", "type": "a.b", "created_at": "2026-01-15T12:00:00.000Z", "livemode": true,
            "workspace_id": 7, "sequence": 3, "data": { "b": 1, "a": 2 }, "request": null,
        });
        let (id, body) = wire(&event);
        assert_eq!(id, "evt_1");
        assert_eq!(
            body,
            r#"{"id":"evt_1","object":"event","type":"a.b","created_at":"2026-01-15T12:00:00.000Z","livemode":true,"workspace_id":7,"sequence":3,"data":{"b":1,"a":2}}"#
        );
    }
}
