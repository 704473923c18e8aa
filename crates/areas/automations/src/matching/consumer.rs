//! The reader of the event log: events fire automations.

use super::consider::{Matching, consider_locked, lock};
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::triggers::fits::{Fit, fit};
use crate::triggers::{Source, TriggerType};
use events::{EventConsumer, LoggedEvent};
use model::{Result, Timestamp, WorkspaceId};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};
use store::Tx;

/// Makes events firings.
pub(crate) struct FiringEvents(pub(crate) Matching);

/// The types of events from which triggers come.
fn wanted() -> &'static HashSet<&'static str> {
    static WANTED: OnceLock<HashSet<&'static str>> = OnceLock::new();
    WANTED.get_or_init(|| {
        let kinds = TriggerType::ALL.into_iter().filter_map(|kind| match kind.entry().source {
            Source::Events(kinds) => Some(kinds),
            _ => None,
        });
        kinds.flatten().copied().collect()
    })
}

impl EventConsumer for FiringEvents {
    fn name(&self) -> &'static str {
        "automations"
    }

    fn wants(&self, kind: &str) -> bool {
        wanted().contains(kind) || kind.starts_with("custom")
    }

    fn take(&self, tx: &mut Tx, events: &[LoggedEvent]) -> Result<()> {
        let workspaces: BTreeSet<WorkspaceId> = events.iter().map(|event| event.workspace_id).collect();
        let workspaces: Vec<WorkspaceId> = workspaces.into_iter().collect();
        let sets = self.0.rules.of(tx, &workspaces)?;
        let (now, mut fitting) = (tx.now(), Vec::new());
        for event in events {
            let Some(set) = sets.get(&event.workspace_id) else { continue };
            fitting.extend(fitting_rules(event, set.of_event(&event.kind), now));
        }
        lock(tx, fitting.iter().map(|one| one.rule))?;
        for Fitting { event, rule, fit } in fitting {
            let occurrence = Occurrence {
                key: event.id.to_string(),
                event: Some(event.id.clone()),
                kind: event.kind.clone(),
                payload: with_event(fit.payload, event),
                contact: fit.contact,
                livemode: event.livemode,
                chain: Some(event.leads_to()),
                missed: None,
            };
            consider_locked(tx, &self.0, rule, &occurrence)?;
        }
        Ok(())
    }
}

/// An automation whose trigger an event fits.
struct Fitting<'a> {
    event: &'a LoggedEvent,
    rule: &'a Rule,
    fit: Fit,
}

/// Returns the automations whose triggers an event fits, in their order.
fn fitting_rules<'a>(event: &'a LoggedEvent, rules: &'a [Arc<Rule>], now: Timestamp) -> Vec<Fitting<'a>> {
    if rules.is_empty() {
        return Vec::new();
    }
    let Ok(data) = event.data.parse::<Value>() else {
        tracing::error!(event = %event.id, "the data of an event cannot be read");
        return Vec::new();
    };
    let active = rules.iter().filter(|rule| rule.row.is_active(now));
    active
        .filter_map(|rule| {
            let fit = fit(rule.row.trigger_type, &rule.settings, &event.kind, &data)?;
            Some(Fitting { event, rule, fit })
        })
        .collect()
}

/// `$trigger`: the data of the event, and the event itself in `event`.
fn with_event(payload: Value, event: &LoggedEvent) -> Value {
    let mut members = match payload {
        Value::Object(members) => members,
        other => Map::from_iter([("data".to_owned(), other)]),
    };
    let shown = json!({ "id": event.id, "type": event.kind, "created_at": event.created_at });
    members.insert("event".to_owned(), shown);
    Value::Object(members)
}
