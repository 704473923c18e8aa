//! The action `start_flow`: one run for each firing.

use super::events::ReminderFired;
use super::model::{
    ReminderAction, ReminderActionConfig, ReminderActionType, ReminderInput, ReminderRow, ReminderValues,
};
use super::start::{is_passing, name, note};
use crate::schema::reminders;
use auth::keys;
use diesel::prelude::*;
use fields::json_schema::Schema;
use jobs::{JobContext, JobError};
use model::{
    Caller, Code, ContactId, Error, FlowId, JsonText, KeyId, ReminderId, Result, Scope, Timestamp,
    WorkspaceId,
};
use ports::{FlowStart, FlowStarter, ObjectUse, ObjectUsers, StartFlow, UsedObject, WorkspaceFlows};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Read, Tx};

/// The name of the job that starts a run.
pub(super) const JOB: &str = "reminders.flow";

/// The most characters of an input, as JSON.
const LONGEST_INPUT: usize = 10_000;

/// The payload of the job.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StartFlowPayload {
    workspace: WorkspaceId,
    reminder: ReminderId,
    slot: Timestamp,
    livemode: bool,
    key: KeyId,
    contact: Option<ContactId>,
    flow: FlowId,
    input: Value,
    /// The data of the event `reminder.fired`.
    fired: Value,
}

/// Enqueues the run of a reminder that fired for `slot`.
pub(super) fn enqueue(
    tx: &mut Tx,
    row: &ReminderRow,
    slot: Timestamp,
    fired: &ReminderFired<'_>,
) -> Result<()> {
    let action = row.action()?;
    // A stored action has a flow, because it was validated.
    let Some(flow) = action.config.flow_id.filter(|_| action.kind == ReminderActionType::StartFlow) else {
        return Ok(());
    };
    let payload = StartFlowPayload {
        workspace: row.workspace_id,
        reminder: row.id,
        slot,
        livemode: row.livemode,
        key: row.key_id.clone(),
        contact: row.contact_id,
        flow,
        input: input(&action.config),
        fired: serde_json::to_value(fired).map_err(Error::internal)?,
    };
    let now = tx.now();
    tx.enqueue(row.workspace_id, JOB, Some(&name(row.id, slot)), &payload, now)
}

/// Starts a run exactly once, even if the job is retried.
pub(super) async fn start(flows: WorkspaceFlows, job: JobContext) -> Result<(), JobError> {
    let wanted: StartFlowPayload = job.payload.parse()?;
    let (workspace, reminder, key) = (wanted.workspace, wanted.reminder, wanted.key);
    let start = StartFlow {
        workspace,
        flow: wanted.flow,
        livemode: wanted.livemode,
        input: wanted.input,
        payload: wanted.fired,
        contact: wanted.contact,
        by: FlowStarter::Reminder(reminder),
        chain: job.chain.clone(),
        once: name(reminder, wanted.slot),
    };
    let started = job.db.write(move |tx| {
        expect_may_start(tx, workspace, &key)?;
        match flows.get()?.start(tx, &start)? {
            FlowStart::Run(_) => Ok(()),
            FlowStart::Active(run) => {
                let message = format!("The contact has an active run of the flow: {run}.");
                Err(Error::new(Code::InvalidState, message))
            }
        }
    });
    match started.await {
        Ok(()) => Ok(()),
        Err(error) if is_passing(&error) => Err(error.into()),
        Err(error) => Ok(note(&job.db, workspace, reminder, error).await?),
    }
}

fn expect_may_start(read: &mut Read, workspace: WorkspaceId, key: &KeyId) -> Result<()> {
    let stored = keys::by_id(read, key)?;
    let scope = Scope::AutomationsExecute;
    if keys::standing_scopes(read, &stored.key.lineage, workspace)?.contains(scope) {
        return Ok(());
    }
    let lacking = "The key that set the action was revoked or lacks the scope `automations:execute`.";
    Err(Error::new(Code::MissingScope, lacking).param(scope.as_str()))
}

fn input(config: &ReminderActionConfig) -> Value {
    match &config.input {
        Some(ReminderInput::Values(ReminderValues(values))) => Value::Object(values.clone()),
        Some(ReminderInput::Text(_)) | None => Value::Object(serde_json::Map::new()),
    }
}

/// Checks that the caller may start the flow, that it can be started, and that it takes the input.
///
/// # Errors
/// `validation_error`, `missing_scope`, `not_found`, `invalid_state`.
pub(super) fn check(
    read: &mut Read,
    caller: &Caller,
    flows: &WorkspaceFlows,
    config: &ReminderActionConfig,
) -> Result<()> {
    let flow = config.flow_id.ok_or_else(|| Error::invalid("action.config.flow_id", "is required"))?;
    caller.key.expect_scope(Scope::AutomationsExecute)?;
    let found = flows.get()?.startable(read, caller.workspace_id(), flow)?;
    let found = found.map_err(|why| why.error().param("action.config.flow_id"))?;
    let input = input(config);
    if JsonText::of(&input).as_str().chars().count() > LONGEST_INPUT {
        let rule = format!("must have at most {LONGEST_INPUT} characters of JSON");
        return Err(Error::invalid("action.config.input", rule));
    }
    match Schema::new(found.input_schema).mismatch(&input) {
        Some(problem) => {
            Err(Error::invalid("action.config.input", format!("is not what the flow takes: {problem}")))
        }
        None => Ok(()),
    }
}

/// Reminders as users of flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowReminders;

impl ObjectUsers for FlowReminders {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, used: UsedObject) -> Result<Vec<ObjectUse>> {
        let UsedObject::Flow(flow) = used else { return Ok(Vec::new()) };
        let rows: Vec<(ReminderId, String, JsonText)> = reminders::table
            .filter(reminders::workspace_id.eq(workspace))
            .filter(reminders::wake_at.is_not_null())
            .filter(reminders::action.like(format!("%\"flow_id\":{flow}%")))
            .order(reminders::id)
            .select((reminders::id, reminders::title, reminders::action))
            .load(read.connection())?;
        let starts = |action: &JsonText| {
            action.parse::<ReminderAction>().is_ok_and(|action| action.config.flow_id == Some(flow))
        };
        let using = rows.into_iter().filter(|(.., action)| starts(action));
        let using = using.map(|(id, name, _)| ObjectUse {
            r#type: "reminder",
            id: id.to_string(),
            name,
            version: None,
        });
        Ok(using.collect())
    }
}
