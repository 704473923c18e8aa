//! The one way in which an occurrence becomes a firing.

use crate::firings::row::{FiringReason, FiringRow, FiringStatus};
use crate::rules::row::AutomationRow;
use model::{Chain, ContactId, EventId, FiringId, JsonText, Result};
use ports::{BusinessCalendar, People, WorkspaceVariables};
use serde_json::Value;
use std::sync::Arc;
use store::Tx;

/// Services of matching. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Matching {
    pub(crate) people: People,
    pub(crate) variables: WorkspaceVariables,
    pub(crate) business: Arc<dyn BusinessCalendar>,
}

/// Something that fits the trigger of an automation.
#[derive(Debug, Clone)]
pub(crate) struct Occurrence {
    /// What it is called among all occurrences of the automation: the id of the event, or the slot of a timer.
    pub(crate) key: String,
    pub(crate) event: Option<EventId>,
    /// The type of the event, or that of the trigger.
    pub(crate) kind: String,
    /// `$trigger`.
    pub(crate) payload: Value,
    pub(crate) contact: Option<ContactId>,
    pub(crate) livemode: bool,
    /// The place in the chain of causes of what the occurrence leads to. `None` for what starts a chain.
    pub(crate) chain: Option<Chain>,
    /// Why it cannot fire, as its trigger sees it: it is noted, and nothing is started.
    pub(crate) missed: Option<FiringReason>,
}

/// Makes an occurrence a firing: pending, held, or skipped with the reason. The automation must be active. An occurrence that
/// was considered before returns the firing that it has.
///
/// # Errors
/// When the database fails.
pub(crate) fn consider(
    tx: &mut Tx,
    matching: &Matching,
    automation: &AutomationRow,
    occurrence: &Occurrence,
) -> Result<FiringRow> {
    let _ = matching;
    if let Some(known) = FiringRow::of_occurrence(tx, automation.id, &occurrence.key)? {
        return Ok(known);
    }
    let now = tx.now();
    let row = FiringRow {
        number: 0,
        id: FiringId::new(now, &*tx.random()),
        workspace_id: automation.workspace_id,
        automation_id: automation.id,
        occurrence: occurrence.key.clone(),
        event_id: occurrence.event.clone(),
        kind: occurrence.kind.clone(),
        contact_id: occurrence.contact,
        livemode: occurrence.livemode,
        status: FiringStatus::Pending,
        reason: None,
        details: None,
        evaluation: None,
        payload: JsonText::of(&occurrence.payload),
        chain: occurrence.chain.as_ref().map(JsonText::of),
        debounce_key: None,
        waiting_since: None,
        due_at: Some(now),
        flow_run_id: None,
        run_id: None,
        invocation_id: None,
        outcome: None,
        error: None,
        created_at: now,
        ended_at: None,
    };
    row.insert(tx)?;
    Ok(row)
}
