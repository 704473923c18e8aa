//! Waits for events: what events wake, and what a new wait finds in the log.
//!
//! A wait must not miss an event that happens while it begins. The row of the wait is committed first, while its run is still
//! held. Then the log is read once, from the moment from which the wait counts ([`look_back`]); only then the run is given up.
//! An event that had its place in the log by then is found there. Any other event gets its place after the commit of the wait,
//! so the consumer, which takes events after they have got their places, finds the wait. An event that both find counts once,
//! because a wait takes the first that arrives. If the worker dies in between, the lease of the run ends and the next worker
//! executes the node again: waiting has no effect that could happen twice.

use super::{energy, replies};
use crate::draft::settings::Settings;
use crate::engine::FlowEngine;
use crate::runs::row::RunRow;
use crate::runs::waits::{FlowWaitType, WaitRow, arrive};
use crate::schema::flow_waits;
use diesel::dsl::exists;
use diesel::prelude::*;
use events::{EventConsumer, LoggedEvent};
use expressions::{Context, Template};
use flow_answers::{EventDetails, Filter, keys};
use flow_graphs::ROOTS;
use flow_machine::Values;
use model::{ContactId, JsonText, Result, WorkspaceId};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use store::{Read, Tx};

/// The most events of the log that a new wait looks at.
const MOST_LOOKED_AT: i64 = 500;
/// The most waits that one event wakes in a transaction.
const MOST_WOKEN: i64 = 1000;

/// Wakes runs by the events of the log.
pub(crate) struct FlowEvents(pub(crate) FlowEngine);

impl EventConsumer for FlowEvents {
    fn name(&self) -> &'static str {
        "flows"
    }

    fn wants(&self, _: &str) -> bool {
        true
    }

    fn take(&self, tx: &mut Tx, events: &[LoggedEvent]) -> Result<()> {
        self.end_agent_runs(tx, events)?;
        for event in events {
            match event.kind.as_str() {
                "conversation.handoff" => self.hand_over(tx, event)?,
                "billing.recharged" => energy::wake_paused(&self.0, tx, event.workspace_id, None)?,
                _ => {}
            }
        }
        let awaited = awaited(tx, events)?;
        for event in events {
            if awaited.contains(&(event.workspace_id, event.kind.as_str())) {
                self.wake(tx, event)?;
            }
        }
        Ok(())
    }
}

/// The types of events that a run of a workspace waits for, among those of a batch. A workspace without waits costs one look at
/// an index for each type.
fn awaited<'a>(read: &mut Read, events: &'a [LoggedEvent]) -> Result<HashSet<(WorkspaceId, &'a str)>> {
    let kinds: HashSet<(WorkspaceId, &str)> =
        events.iter().map(|event| (event.workspace_id, event.kind.as_str())).collect();
    let mut awaited = HashSet::new();
    for (workspace, kind) in kinds {
        let waits = flow_waits::table
            .filter(flow_waits::workspace_id.eq(workspace))
            .filter(flow_waits::topic.eq(kind))
            .select(flow_waits::run_id);
        if diesel::select(exists(waits)).get_result::<bool>(read.connection())? {
            awaited.insert((workspace, kind));
        }
    }
    Ok(awaited)
}

impl FlowEvents {
    /// Wakes the runs that wait for the end of an agent's run.
    fn end_agent_runs(&self, tx: &mut Tx, events: &[LoggedEvent]) -> Result<()> {
        let ended = events
            .iter()
            .filter(|event| event.kind.strip_prefix("run.").is_some_and(|how| how != "requires_action"));
        let mut runs = Vec::new();
        for event in ended {
            let data: Value = event.data.parse()?;
            runs.extend(data.get("run_id").and_then(Value::as_str).map(str::to_owned));
        }
        if runs.is_empty() {
            return Ok(());
        }
        let waits: Vec<WaitRow> = flow_waits::table
            .filter(flow_waits::kind.eq(FlowWaitType::AgentRun))
            .filter(flow_waits::key.eq_any(runs))
            .filter(flow_waits::arrived.is_null())
            .select(WaitRow::as_select())
            .load(tx.connection())?;
        for wait in waits {
            self.arrived(tx, &wait, &json!({ "run_id": wait.key }))?;
        }
        Ok(())
    }

    /// A person took a conversation over, or handed it back.
    fn hand_over(&self, tx: &mut Tx, event: &LoggedEvent) -> Result<()> {
        let data: Value = event.data.parse()?;
        let Some(contact) = data.get("contact_id").and_then(Value::as_i64).map(ContactId) else {
            return Ok(());
        };
        let to_person = data.get("to").and_then(Value::as_str) == Some("human");
        replies::handed_over(&self.0, tx, event.workspace_id, contact, to_person)?;
        if to_person {
            return Ok(());
        }
        let waits: Vec<WaitRow> = flow_waits::table
            .filter(flow_waits::workspace_id.eq(event.workspace_id))
            .filter(flow_waits::contact_id.eq(contact))
            .filter(flow_waits::kind.eq(FlowWaitType::Handback))
            .filter(flow_waits::arrived.is_null())
            .select(WaitRow::as_select())
            .load(tx.connection())?;
        for wait in waits {
            self.arrived(tx, &wait, &json!({}))?;
        }
        Ok(())
    }

    /// Wakes the runs that wait for an event, and cancels those that it cancels.
    fn wake(&self, tx: &mut Tx, event: &LoggedEvent) -> Result<()> {
        let shown = shown(event)?;
        let keys = keys(event.workspace_id, &event.kind, shown.get("data").unwrap_or(&Value::Null));
        if keys.is_empty() {
            return Ok(());
        }
        let waits: Vec<WaitRow> = flow_waits::table
            .filter(flow_waits::kind.eq(FlowWaitType::Event))
            .filter(flow_waits::key.eq_any(keys))
            .filter(flow_waits::arrived.is_null())
            .limit(MOST_WOKEN)
            .select(WaitRow::as_select())
            .load(tx.connection())?;
        for wait in waits {
            if is_for(&self.0, tx, &wait, event, &shown)? {
                if wait.token < 0 {
                    replies::cancel(&self.0, tx, &wait)?;
                } else {
                    self.arrived(tx, &wait, &shown)?;
                }
            }
        }
        Ok(())
    }

    fn arrived(&self, tx: &mut Tx, wait: &WaitRow, what: &Value) -> Result<()> {
        if arrive(tx, &wait.run_id, wait.token, what)? {
            self.0.wake_after(tx);
        }
        Ok(())
    }
}

/// An event as callers see it.
fn shown(event: &LoggedEvent) -> Result<Value> {
    let data: Value = event.data.parse()?;
    Ok(json!({
        "id": event.id, "type": event.kind, "created_at": event.created_at, "livemode": event.livemode,
        "data": data,
    }))
}

/// Returns whether a wait is for an event. A condition that cannot be evaluated for it does not hold.
fn is_for(
    engine: &FlowEngine,
    read: &mut Read,
    wait: &WaitRow,
    event: &LoggedEvent,
    shown: &Value,
) -> Result<bool> {
    let Ok(details) = wait.details.parse::<EventDetails>() else {
        tracing::error!(run_id = %wait.run_id, "a wait for an event cannot be read");
        return Ok(false);
    };
    let is_late = wait.due_at.is_some_and(|due| event.created_at > due);
    let since = details.since.unwrap_or(wait.since);
    // Runs cause events themselves: what the run did before it waited is not what it waits for.
    if is_late || event.created_at < since || event.livemode != wait.livemode {
        return Ok(false);
    }
    let zone = engine.0.business.time_zone(read, wait.workspace_id)?;
    let holds = details.is_for(shown, read.now(), zone);
    Ok(holds.unwrap_or_else(|failure| {
        tracing::info!(run_id = %wait.run_id, event_id = %event.id, %failure, "a condition was not evaluated");
        false
    }))
}

/// Looks for the event of a new wait among those that have a place in the log already.
pub(super) async fn look_back(engine: &FlowEngine, wait: WaitRow) -> Result<()> {
    let of = engine.clone();
    let look = move |tx: &mut Tx| {
        let (Some(kind), Ok(details)) = (&wait.topic, wait.details.parse::<EventDetails>()) else {
            return Ok(());
        };
        let since = details.since.unwrap_or(wait.since);
        for event in events::placed_of_kind(tx, wait.workspace_id, kind, since, MOST_LOOKED_AT)? {
            let shown = shown(&event)?;
            if is_for(&of, tx, &wait, &event, &shown)? {
                if wait.token < 0 {
                    return replies::cancel(&of, tx, &wait);
                }
                arrive(tx, &wait.run_id, wait.token, &shown)?;
                return Ok(());
            }
        }
        Ok(())
    };
    engine.db().write(look).await
}

/// The wait for an event with equalities: without any, for one of the contact. `None` if there is no value by which it could be
/// found.
pub(crate) fn details(
    equalities: Option<&Map<String, Value>>,
    filter: Option<Filter>,
    contact: Option<ContactId>,
) -> Option<EventDetails> {
    let own = contact.map(|contact| Map::from_iter([("contact_id".to_owned(), json!(contact))]));
    let details = EventDetails::of(equalities.or(own.as_ref())?)?;
    Some(EventDetails { filter, ..details })
}

/// The waits for the events that cancel a run. Their tokens are negative.
pub(crate) fn cancels(row: &RunRow, settings: &Settings, values: &Values) -> Result<Vec<WaitRow>> {
    let context = Context::new(&values.roots, values.now).zone(values.zone);
    let value = |value: &Value| -> Option<Value> {
        let Value::String(text) = value else { return Some(value.clone()) };
        Template::parse(text, &ROOTS).ok()?.evaluate(&context).ok()?.into_json().ok()
    };
    let mut waits = Vec::new();
    for (place, cancel) in (1_i64..).zip(&settings.cancel_on) {
        let equalities: Option<Map<String, Value>> = cancel.matches.as_ref().map(|matches| {
            matches.iter().map(|(path, wanted)| (path.clone(), value(wanted).unwrap_or_default())).collect()
        });
        let Some(details) = details(equalities.as_ref(), None, row.contact_id) else {
            // Nothing equals what has no value.
            continue;
        };
        waits.push(WaitRow {
            run_id: row.id.clone(),
            token: -place,
            workspace_id: row.workspace_id,
            livemode: row.livemode,
            position: 0,
            kind: FlowWaitType::Event,
            topic: Some(cancel.kind.clone()),
            key: details.key(row.workspace_id, &cancel.kind),
            contact_id: None,
            details: JsonText::of(&details),
            arrived: None,
            since: row.created_at,
            due_at: None,
        });
    }
    Ok(waits)
}

/// The keys under which a contact's waits for events are found, after it was merged into another.
pub(super) fn renamed(wait: &WaitRow, from: ContactId, to: ContactId) -> Option<(String, EventDetails)> {
    let mut details: EventDetails = wait.details.parse().ok()?;
    let contact = details.equals.get_mut("contact_id").filter(|value| **value == from.to_string())?;
    *contact = to.to_string();
    let key = details.key(wait.workspace_id, wait.topic.as_deref()?)?;
    Some((key, details))
}
