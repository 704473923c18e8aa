//! Test deliveries: `POST /webhook-endpoints/{endpointId}/test`.

use super::deliveries::{self, WebhookDeliveryDetail};
use super::engine::keep_attempt;
use super::queues::{insert_deliveries, lock_queues};
use super::rows::{NewDelivery, Origin, Status};
use super::{endpoints, envelope, size};
use crate::Deliveries;
use crate::endpoint::model::EndpointRow;
use crate::schema::{webhook_bodies, webhook_deliveries, webhook_queues};
use crate::sending::send::{Attempt, Message, Target, send};
use diesel::prelude::*;
use events::{LoggedEvent, placed_event};
use model::{Code, DeliveryId, Error, EventId, JsonText, Result, Timestamp, WebhookEndpointId};
use operation::{Body, Created, Cx, Path, State, operation};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Tx;
use utoipa::ToSchema;

/// The most tests of an endpoint in a minute.
const MOST_TESTS: i64 = 10;

/// What to send as a test.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "type": "run.completed" }))]
pub struct EndpointTest {
    /// The type of a generated event; the endpoint's first type if not given.
    #[serde(default, rename = "type")]
    #[schema(nullable = false, max_length = 100)]
    kind: Option<String>,
    /// The data of a generated event; an example if not given.
    #[serde(default)]
    #[schema(nullable = false, value_type = Option<Object>)]
    sample: Option<serde_json::Map<String, serde_json::Value>>,
    /// An event of the log to send instead of a generated one.
    #[serde(default)]
    #[schema(nullable = false)]
    event_id: Option<EventId>,
}

/// Send a sample event
///
/// Sends one signed event with `livemode: false` and returns the result. There is a single attempt. It also works for a
/// disabled endpoint. Limited to 10 tests per minute.
#[operation(post "/webhook-endpoints/{endpointId}/test", scope = "webhooks:manage")]
pub async fn test_webhook_endpoint(
    cx: &Cx,
    Path(endpoint_id): Path<WebhookEndpointId>,
    Body(test): Body<EndpointTest>,
    engine: State<Deliveries>,
) -> Result<Created<WebhookDeliveryDetail>> {
    let parts = engine.0.parts.clone();
    let (workspace, catalogue, scopes) =
        (cx.caller.workspace_id(), parts.catalogue.clone(), cx.caller.key.scopes);
    let prepared = cx.db.write(move |tx| {
        let row = endpoints::locked(tx, workspace, &endpoint_id)?;
        let event = match &test.event_id {
            Some(id) => {
                if test.kind.is_some() || test.sample.is_some() {
                    return Err(Error::invalid("event_id", "cannot be combined with `type` and `sample`"));
                }
                let found =
                    placed_event(tx, workspace, id)?.filter(|event| catalogue.may_see(scopes, &event.kind));
                found.ok_or_else(|| Error::not_found("event"))?
            }
            None => made_up(tx, &catalogue, &row, &test)?,
        };
        take_one(tx, &row)?;
        Ok((row, LoggedEvent { livemode: false, ..event }))
    });
    let (row, event) = prepared.await?;
    let target = Target::open(&row, &parts.seal, cx.db.now())?;
    let delivery = DeliveryId::new(cx.db.now(), &*cx.db.random());
    let body = envelope::body(&event, target.payload);
    let message = Message {
        delivery: delivery.clone(),
        event: event.id.clone(),
        attempt: 1,
        body: body.clone(),
        trace: Some(cx.caller.trace()),
        cause: parts.causes.of(target.url(), &event.leads_to(), cx.db.now()),
    };
    let attempt = send(&parts.connector, &parts.tracer, &target, message, cx.db.now()).await;
    let kept = Arc::new((row, event, delivery, body, attempt));
    let shown = cx.db.write(move |tx| {
        let (row, event, delivery, body, attempt) = &*kept;
        keep(tx, row, event, delivery, body, attempt)
    });
    Ok(Created(shown.await?))
}

fn made_up(
    tx: &mut Tx,
    catalogue: &events::Catalogue,
    row: &EndpointRow,
    test: &EndpointTest,
) -> Result<LoggedEvent> {
    let patterns = row.enabled_events()?;
    let (name, kind) = match &test.kind {
        Some(name) => {
            let kind = catalogue.find(name).filter(|_| !name.ends_with('*'));
            (name.clone(), kind.ok_or_else(|| Error::invalid("type", "is not a type of event"))?)
        }
        None => {
            let mut types = catalogue.types().iter();
            let meant = types.find_map(|kind| {
                let pattern = patterns.iter().find(|pattern| events::may_match(pattern, kind.name))?;
                Some((example_name(pattern, kind.name), kind))
            });
            meant.ok_or_else(|| {
                Error::invalid("type", "is required, because the endpoint's types of events no longer exist")
            })?
        }
    };
    let sample = || {
        let schema = kind.schema();
        operation::sample(&schema, &schema)
    };
    let data = test.sample.clone().map_or_else(sample, serde_json::Value::Object);
    let now = tx.now();
    Ok(LoggedEvent {
        position: 0,
        id: EventId::new(now, &*tx.random()),
        workspace_id: row.workspace_id,
        kind: name,
        livemode: false,
        data: JsonText::of(&data),
        created_at: now,
        request_id: None,
        traceparent: None,
        root_event_id: None,
        depth: 0,
        automations: None,
    })
}

/// The name of an event that a pattern means of a type: of a family, one that the family may have.
fn example_name(pattern: &str, kind: &str) -> String {
    match kind.strip_suffix('*') {
        None => kind.to_owned(),
        Some(_) if !pattern.ends_with('*') => pattern.to_owned(),
        Some(start) => {
            let start =
                pattern.strip_suffix('*').filter(|pattern| pattern.starts_with(start)).unwrap_or(start);
            format!("{start}example")
        }
    }
}

/// Counts a test.
///
/// # Errors
/// `rate_limited` for the eleventh in a minute.
fn take_one(tx: &mut Tx, row: &EndpointRow) -> Result<()> {
    lock_queues(tx, &BTreeSet::from([&row.id]))?;
    let now = tx.now();
    let (tests, since): (i64, Option<Timestamp>) = webhook_queues::table
        .find(&row.id)
        .select((webhook_queues::tests, webhook_queues::tests_since))
        .get_result(tx.connection())?;
    let window = since.filter(|since| now < since.plus_seconds(60));
    if let Some(since) = window
        && tests >= MOST_TESTS
    {
        let wait = since.plus_seconds(60).seconds() - now.seconds();
        let message = format!("An endpoint can be tested {MOST_TESTS} times per minute.");
        return Err(Error::new(Code::RateLimited, message).retry_after(wait));
    }
    let (tests, since) = window.map_or((1, now), |since| (tests + 1, since));
    diesel::update(webhook_queues::table.find(&row.id))
        .set((webhook_queues::tests.eq(tests), webhook_queues::tests_since.eq(since)))
        .execute(tx.connection())?;
    Ok(())
}

fn keep(
    tx: &mut Tx,
    row: &EndpointRow,
    event: &LoggedEvent,
    delivery: &DeliveryId,
    body: &str,
    attempt: &Attempt,
) -> Result<WebhookDeliveryDetail> {
    let now = tx.now();
    // A body of its own: the event may go out under the same id with `livemode: true`.
    let form = delivery.to_string();
    diesel::insert_into(webhook_bodies::table)
        .values((
            webhook_bodies::event_id.eq(event.id.as_str()),
            webhook_bodies::form.eq(&form),
            webhook_bodies::workspace_id.eq(row.workspace_id),
            webhook_bodies::body.eq(body),
            webhook_bodies::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    size::count_bodies(tx, std::iter::once((row.workspace_id, body, None)));
    let status = if attempt.succeeded() { Status::Succeeded } else { Status::Failed };
    let new = NewDelivery {
        id: delivery.clone(),
        workspace_id: row.workspace_id,
        endpoint_id: row.id.clone(),
        event_id: event.id.clone(),
        form,
        event_type: event.kind.clone(),
        livemode: false,
        origin: Origin::Test,
        status,
        lane: None,
        due_at: None,
        attempts: 1,
        created_at: attempt.at,
    };
    insert_deliveries(tx, &[new])?;
    diesel::update(webhook_deliveries::table.filter(webhook_deliveries::id.eq(delivery)))
        .set(webhook_deliveries::ended_at.eq(now))
        .execute(tx.connection())?;
    keep_attempt(tx, delivery, 1, row.workspace_id, attempt)?;
    let made = deliveries::find(tx, row.workspace_id, &row.id, delivery)?;
    deliveries::detail(tx, made)
}
