//! Firings as responses have them.

use super::row::{FiringReason, FiringRow, FiringStatus};
use model::{
    AutomationId, Chain, ContactId, EventId, FiringId, FlowRunId, InvocationId, JsonText, Result, RunId,
    Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Why the target of a firing could not be started, or failed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = AutomationExecutionError, example = json!({ "code": "agent_inactive", "message": "The agent is inactive.", "param": null }))]
pub struct FiringError {
    /// The reason as a word.
    pub(crate) code: String,
    /// A sentence for people.
    pub(crate) message: String,
    /// What of the input is wrong.
    #[serde(default)]
    pub(crate) param: Option<String>,
}

/// A firing of an automation, or an occurrence that did not fire it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AutomationExecutionSummary, example = json!({
    "kind": "contact.updated", "occurrence": "evt_01m7w4n5e0k3p8r2v6x9b1d4f7", "status": "skipped", "reason": "condition_false",
    "livemode": true, "contact_id": 1, "depth": 1,
}))]
pub struct Firing {
    /// The id.
    pub id: FiringId,
    /// Always `automation_execution`.
    pub object: &'static str,
    /// The automation.
    pub automation_id: AutomationId,
    /// The event that fired it, if it was one.
    pub event_id: Option<EventId>,
    /// The type of the event, or that of the trigger.
    pub kind: String,
    /// What fired it: the id of the event, the time of a schedule, or a name of a request. One occurrence fires an automation once.
    pub occurrence: String,
    /// The contact whom it is about.
    pub contact_id: Option<ContactId>,
    /// Whether what it starts is real.
    pub livemode: bool,
    /// What became of it.
    pub status: FiringStatus,
    /// Why it did not fire.
    pub reason: Option<FiringReason>,
    /// When it starts the target, if it waits.
    pub due_at: Option<Timestamp>,
    /// The run of a flow that it started.
    pub flow_run_id: Option<FlowRunId>,
    /// The run of an agent that it started.
    pub run_id: Option<RunId>,
    /// The call of a function that it made.
    pub invocation_id: Option<InvocationId>,
    /// How what it started has ended, as far as it is known.
    pub outcome: Option<String>,
    /// Why the target could not be started, or failed.
    pub error: Option<FiringError>,
    /// The first event of the chain of causes.
    pub root_event_id: Option<EventId>,
    /// The number of steps from that event.
    pub depth: Option<u32>,
    /// When the occurrence was seen.
    pub created_at: Timestamp,
    /// When it ended: when the target was started, or it was decided that it is not.
    pub ended_at: Option<Timestamp>,
}

/// A firing with its data and the evaluated conditions.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AutomationExecution, example = json!({
    "kind": "contact.updated", "occurrence": "evt_01m7w4n5e0k3p8r2v6x9b1d4f7", "status": "skipped", "reason": "condition_false",
    "livemode": true, "contact_id": 1, "data": { "contact_id": 1, "changed": { "$stage": { "old": "new", "new": "won" } } },
    "evaluation": { "left": "$contact.country", "op": "eq", "right": "BR", "left_value": "ES", "holds": false },
}))]
pub struct FiringDetail {
    #[serde(flatten)]
    #[schema(inline)]
    pub firing: Firing,
    /// The data: `$trigger`. Of data above 256 KB only small fields, with `truncated`.
    #[schema(value_type = Object)]
    pub data: JsonText,
    /// The conditions with the values of their parts. `holds` is `null` and `error` says why where a part cannot be evaluated.
    #[schema(value_type = Option<Object>)]
    pub evaluation: Option<JsonText>,
    /// What a guard or a template saw.
    #[schema(value_type = Option<Object>)]
    pub details: Option<JsonText>,
    /// The automations that the chain of causes went through, in order, this one included.
    pub automations: Vec<AutomationId>,
}

/// Which firings to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct FiringQuery {
    /// Only firings in this state.
    #[serde(default)]
    pub(crate) status: Option<FiringStatus>,
    /// Only firings with this reason.
    #[serde(default)]
    pub(crate) reason: Option<FiringReason>,
    /// Only firings about this contact.
    #[param(value_type = Option<i64>, minimum = 1)]
    #[serde(default)]
    pub(crate) contact_id: Option<ContactId>,
    /// Only the firing of this event.
    #[serde(default)]
    pub(crate) event_id: Option<EventId>,
}

impl FiringRow {
    /// The entry of the list.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(crate) fn summary(&self) -> Result<Firing> {
        let chain = Chain::stored(self.chain.as_ref());
        Ok(Firing {
            id: self.id.clone(),
            object: "automation_execution",
            automation_id: self.automation_id,
            event_id: self.event_id.clone(),
            kind: self.kind.clone(),
            occurrence: self.occurrence.clone(),
            contact_id: self.contact_id,
            livemode: self.livemode,
            status: self.status,
            reason: self.reason,
            due_at: self.due_at,
            flow_run_id: self.flow_run_id.clone(),
            run_id: self.run_id.clone(),
            invocation_id: self.invocation_id.clone(),
            outcome: self.outcome.clone(),
            error: self.error.as_ref().map(JsonText::parse).transpose()?,
            root_event_id: chain.as_ref().map(|chain| chain.root.clone()),
            depth: chain.map(|chain| chain.depth),
            created_at: self.created_at,
            ended_at: self.ended_at,
        })
    }

    /// The response.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(crate) fn detail(self) -> Result<FiringDetail> {
        let chain = Chain::stored(self.chain.as_ref());
        Ok(FiringDetail {
            firing: self.summary()?,
            data: self.payload,
            evaluation: self.evaluation,
            details: self.details,
            automations: chain.map(|chain| chain.automations).unwrap_or_default(),
        })
    }
}
