//! The reader of the event log: events fire automations.

use super::consider::{Matching, consider_rule};
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::triggers::fits::fit;
use crate::triggers::{Source, TriggerType};
use events::{EventConsumer, LoggedEvent};
use model::{Result, WorkspaceId};
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
        for event in events {
            let Some(set) = sets.get(&event.workspace_id) else { continue };
            let rules = set.of_event(&event.kind);
            if !rules.is_empty() {
                self.offer(tx, event, rules)?;
            }
        }
        Ok(())
    }
}

impl FiringEvents {
    fn offer(&self, tx: &mut Tx, event: &LoggedEvent, rules: &[Arc<Rule>]) -> Result<()> {
        let Ok(data) = event.data.parse::<Value>() else {
            tracing::error!(event = %event.id, "the data of an event cannot be read");
            return Ok(());
        };
        let now = tx.now();
        for rule in rules.iter().filter(|rule| rule.row.is_active(now)) {
            let Some(fit) = fit(rule.row.trigger_type, &rule.settings, &event.kind, &data) else { continue };
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
            consider_rule(tx, &self.0, rule, &occurrence)?;
        }
        Ok(())
    }
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
