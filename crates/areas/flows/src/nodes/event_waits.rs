//! The node `wait_for_event`.

use super::calls::{done, done_at};
use super::{Arrival, NodeCall, NodeFailure, Wait, Work};
use crate::runs::waits::FlowWaitType;
use crate::waits::events::details;
use flow_answers::EventDetails;
use flow_graphs::config::WaitForEvent;
use input::read_json;
use serde_json::{Value, json};

impl NodeCall {
    /// Waits for an event.
    pub(super) async fn wait_for_event(&self) -> Result<Work, NodeFailure> {
        let wanted: WaitForEvent = self.config()?;
        let filter = wanted.filter.map(|filter| read_json(filter, "filter", "node")).transpose()?;
        let Some(found) = details(wanted.matches.as_ref(), filter, self.run.contact_id) else {
            let message =
                "The event is not named by a value: `match` has an empty value, or the run has no contact.";
            return Err(NodeFailure::new("unindexed_wait", message));
        };
        let found = EventDetails { since: Some(self.before().await?), ..found };
        Ok(Work::Waits(Wait {
            key: found.key(self.run.workspace_id, &wanted.kind),
            topic: Some(wanted.kind),
            details: json!(found),
            due_at: Some(self.engine.now().plus_seconds(wanted.timeout_seconds)),
            ..Wait::new(FlowWaitType::Event)
        }))
    }
}

/// The event has happened, or has not.
pub(super) fn happened(arrival: Arrival) -> Work {
    match arrival {
        Arrival::Came(event) => done(event),
        Arrival::TimedOut => done_at("timeout", Value::Null),
    }
}
