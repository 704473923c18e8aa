//! Fan-out of events to deliveries: which endpoints get an event, in which form, and in which order.
//!
//! Runs in the transaction that gives events their positions, so an event in the log has its deliveries.

use super::closing;
use super::envelope;
use super::queues::enqueue;
use super::rows::{NewDelivery, Origin, Status};
use super::size;
use crate::endpoint::filter::Filter;
use crate::endpoint::model::{Ordering, Payload, StoredStatus};
use crate::schema::webhook_endpoints;
use diesel::prelude::*;
use diesel::sql_types::Text;
use events::{Catalogue, LoggedEvent, NewPosition, matches, placed_between};
use model::{DeliveryId, JsonText, KeyId, Result, ScopeSet, Timestamp, WebhookEndpointId, WorkspaceId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use store::{OnConflict, Read, Rows, Tx};

/// The lane of everything that goes to a strictly ordered endpoint.
const STRICT_LANE: &str = "*";

/// An endpoint, as far as it decides what it gets.
#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_endpoints)]
pub(crate) struct Subscription {
    pub(crate) id: WebhookEndpointId,
    pub(crate) workspace_id: WorkspaceId,
    enabled_events: JsonText,
    filter: Option<JsonText>,
    payload: Payload,
    ordering: Ordering,
    key_id: KeyId,
}

/// A subscription that was read, with what its key may see.
pub(crate) struct Subscriber {
    pub(crate) id: WebhookEndpointId,
    pub(crate) workspace_id: WorkspaceId,
    patterns: Vec<String>,
    filter: Option<Filter>,
    pub(crate) payload: Payload,
    pub(crate) ordering: Ordering,
    scopes: ScopeSet,
    /// Its key may have it.
    stands: bool,
}

impl Subscriber {
    /// Reads a subscription. `scopes` are those of its key at present.
    fn read(catalogue: &Catalogue, row: Subscription, scopes: ScopeSet) -> Result<Self> {
        let patterns: Vec<String> = row.enabled_events.parse()?;
        Ok(Self {
            id: row.id,
            workspace_id: row.workspace_id,
            stands: closing::stands(catalogue, &patterns, scopes),
            patterns,
            filter: row.filter.map(|filter| filter.parse()).transpose()?,
            payload: row.payload,
            ordering: row.ordering,
            scopes,
        })
    }

    /// The one with this id, whatever its state.
    pub(crate) fn load(
        read: &mut Read,
        catalogue: &Catalogue,
        workspace: WorkspaceId,
        id: &WebhookEndpointId,
    ) -> Result<Self> {
        let row: Subscription = webhook_endpoints::table
            .filter(webhook_endpoints::id.eq(id))
            .filter(webhook_endpoints::workspace_id.eq(workspace))
            .select(Subscription::as_select())
            .get_result(read.connection())?;
        let scopes = auth::keys::standing_scopes(read, &row.key_id, workspace)?;
        Self::read(catalogue, row, scopes)
    }

    /// Whether it wants this event, and may have it.
    pub(crate) fn wants(&self, catalogue: &Catalogue, event: &LoggedEvent, data: &Value) -> bool {
        self.stands
            && self.patterns.iter().any(|pattern| matches(pattern, &event.kind))
            && catalogue.may_see(self.scopes, &event.kind)
            // Events about an endpoint go to the other endpoints.
            && !(event.kind.starts_with("webhook_endpoint.") && data["endpoint_id"] == self.id.as_str())
            && self.filter.as_ref().is_none_or(|filter| {
                filter.passes(&json!({ "type": event.kind, "livemode": event.livemode, "data": data }))
            })
    }

    /// A delivery of this event to it, to be queued.
    pub(crate) fn delivery(
        &self,
        tx: &Tx,
        catalogue: &Catalogue,
        event: &LoggedEvent,
        data: &Value,
        origin: Origin,
        due: Timestamp,
    ) -> NewDelivery {
        let now = tx.now();
        NewDelivery {
            id: DeliveryId::new(now, &*tx.random()),
            workspace_id: self.workspace_id,
            endpoint_id: self.id.clone(),
            event_id: event.id.clone(),
            form: self.payload.as_str().to_owned(),
            event_type: event.kind.clone(),
            livemode: event.livemode,
            origin,
            status: Status::Pending,
            lane: self.lane(catalogue, event, data),
            due_at: Some(due),
            attempts: 0,
            created_at: now,
        }
    }

    /// What its deliveries of this event wait for: the earlier ones of the same lane.
    fn lane(&self, catalogue: &Catalogue, event: &LoggedEvent, data: &Value) -> Option<String> {
        match self.ordering {
            Ordering::None => None,
            Ordering::PerEntity => catalogue.entity(&event.kind, data),
            Ordering::Strict => Some(STRICT_LANE.to_owned()),
        }
    }
}

/// Makes the deliveries of the events at these places, which are in their order and have no others between them; gives
/// how many those are.
pub(crate) fn fan_out(tx: &mut Tx, catalogue: &Catalogue, places: &[NewPosition]) -> Result<usize> {
    let workspaces: BTreeSet<i64> = places.iter().map(|place| place.workspace_id.0).collect();
    let subscribers = subscribers(tx, catalogue, &workspaces)?;
    let (Some(first), Some(last), false) = (places.first(), places.last(), subscribers.is_empty()) else {
        return Ok(0);
    };
    let listening: BTreeSet<WorkspaceId> = subscribers.iter().map(|sub| sub.workspace_id).collect();
    let events = placed_between(tx, &listening, first.position, last.position)?;
    let (mut rows, mut bodies, now) = (Vec::new(), BTreeMap::new(), tx.now());
    for event in &events {
        let own = subscribers.iter().filter(|sub| sub.workspace_id == event.workspace_id);
        let data: Value = event.data.parse()?;
        for subscriber in own {
            if subscriber.wants(catalogue, event, &data) {
                bodies
                    .entry((event.position, subscriber.payload.as_str()))
                    .or_insert((event, subscriber.payload));
                rows.push(subscriber.delivery(tx, catalogue, event, &data, Origin::Automatic, now));
            }
        }
    }
    let deliveries = rows.len();
    if deliveries > 0 {
        store_bodies(tx, bodies.into_values())?;
        enqueue(tx, rows)?;
    }
    Ok(deliveries)
}

fn subscribers(tx: &mut Tx, catalogue: &Catalogue, workspaces: &BTreeSet<i64>) -> Result<Vec<Subscriber>> {
    let rows: Vec<Subscription> = webhook_endpoints::table
        .filter(webhook_endpoints::workspace_id.eq_any(workspaces.iter().copied().collect::<Vec<_>>()))
        .filter(webhook_endpoints::status.eq(StoredStatus::Enabled))
        .select(Subscription::as_select())
        .load(tx.connection())?;
    let standing = auth::keys::standing(tx, rows.iter().map(|row| (&row.key_id, row.workspace_id)))?;
    rows.into_iter()
        .map(|row| {
            let scopes = standing.get(&(row.key_id.clone(), row.workspace_id)).copied();
            Subscriber::read(catalogue, row, scopes.unwrap_or_default())
        })
        .collect()
}

struct NewBody {
    event_id: String,
    form: &'static str,
    workspace_id: WorkspaceId,
    body: String,
    created_at: Timestamp,
    traceparent: Option<String>,
}

/// The key of a body that was not there before.
#[derive(QueryableByName)]
struct StoredBody {
    #[diesel(sql_type = Text)]
    event_id: String,
    #[diesel(sql_type = Text)]
    form: String,
}

/// Stores the bodies of events in the forms that they are sent in. One that is there stays as it is.
pub(crate) fn store_bodies<'a>(
    tx: &mut Tx,
    wanted: impl IntoIterator<Item = (&'a LoggedEvent, Payload)>,
) -> Result<()> {
    let now = tx.now();
    let rows: Vec<NewBody> = wanted
        .into_iter()
        .map(|(event, payload)| NewBody {
            event_id: event.id.to_string(),
            form: payload.as_str(),
            workspace_id: event.workspace_id,
            body: envelope::body(event, payload),
            created_at: now,
            traceparent: event.trace().map(|trace| trace.parent()),
        })
        .collect();
    let stored: Vec<StoredBody> = Rows::of(&rows)
        .text("event_id", |row| &row.event_id)
        .text("form", |row| row.form)
        .big_int("workspace_id", |row| row.workspace_id)
        .text("body", |row| &row.body)
        .time("created_at", |row| row.created_at)
        .text("traceparent", |row| row.traceparent.as_deref())
        .insert_returning(tx, "webhook_bodies", OnConflict::Ignore, "event_id, form")?;
    let mut stored: HashSet<(String, String)> =
        stored.into_iter().map(|body| (body.event_id, body.form)).collect();
    let new = rows.iter().filter(|row| stored.remove(&(row.event_id.clone(), row.form.to_owned())));
    let bodies = new.map(|row| (row.workspace_id, row.body.as_str(), row.traceparent.as_deref()));
    size::count_bodies(tx, bodies);
    Ok(())
}
