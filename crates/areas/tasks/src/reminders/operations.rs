//! Operations on reminders.

use super::actions::Actions;
use super::add::{Owner, add, first, not_past, whole_second, zone};
use super::flow;
use super::message;
use super::model::{
    NewReminder, NewReminderStatus, Reminder, ReminderAction, ReminderActionConfig, ReminderActionType,
    ReminderAssignee, ReminderInput, ReminderPatch, ReminderRow, ReminderStatus,
};
use super::queries::{self, Filter};
use crate::schema::reminders;
use business::team::TeamDirectory;
use contacts::{CONTACTS, FindContact};
use diesel::prelude::*;
use model::{Caller, Code, ContactId, Error, JsonText, Patch, ReminderId, Result, Scope, Timestamp};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, State, With,
    operation,
};
use ports::{ContactRef, Members, People};
use records::sets;
use records::shape::Shapes;
use serde::Deserialize;
use store::{Read, Tx};
use utoipa::IntoParams;

/// Which reminders to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ReminderQuery {
    /// Only reminders with this status.
    #[serde(default)]
    status: Option<ReminderStatus>,
    /// Only reminders about this contact.
    #[serde(default)]
    #[param(value_type = Option<i64>)]
    contact_id: Option<ContactId>,
}

/// List reminders
///
/// Lists the reminders of the workspace, newest first.
#[operation(get "/reminders", scope = "reminders:read", ceiling = 200)]
pub fn list_reminders(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<ReminderQuery>,
    page: OptIn,
    people: State<People>,
) -> Result<OptInList<Reminder>> {
    let workspace = caller.workspace_id();
    // A merge moved the reminders of the merged contact to its survivor.
    let ids = query.contact_id.map(|id| people.0.ids_of(read, workspace, id)).transpose()?;
    let contact = ids.and_then(|ids| ids.first().copied());
    let rows = queries::list(read, workspace, Filter { status: query.status, contact }, page.page())?;
    let reminders = rows.iter().map(ReminderRow::reminder).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(reminders, |reminder| reminder.id.to_string()))
}

/// Create a reminder
///
/// It fires at `due_at`, or at each date of its `recurrence`, exactly once: it publishes `reminder.fired` and does its
/// `action`. If dates pass while the service is down, it fires once for the last of them.
#[operation(post "/reminders", scope = "reminders:write")]
pub fn create_reminder(
    tx: &mut Tx,
    caller: &Caller,
    Body(mut new): Body<NewReminder>,
    shapes: State<Shapes>,
    actions: State<Actions>,
) -> Result<With<Created<Reminder>>> {
    if let Some(action) = &new.action {
        check_action(tx, caller, &actions.0, action)?;
    }
    if let Some(contact) = new.contact_id {
        new.contact_id = Some(live_contact(tx, caller, &shapes.0, contact)?);
    }
    if let Some(action) = &new.action {
        message::check(tx, caller, &actions.0.messenger, action, new.contact_id)?;
    }
    check_assignee(tx, caller, new.assignee)?;
    let owner = Owner {
        workspace: caller.workspace_id(),
        key: &caller.key.id,
        livemode: caller.livemode(),
        actor: &caller.cause().actor,
    };
    let reminder = add(tx, &owner, new)?;
    Ok(With::etag(reminder.version, Created(reminder)))
}

/// Change, snooze or complete a reminder
///
/// `snoozed_until` silences the reminder until then, whatever its dates; it then fires once, and its recurrence
/// continues as before. Another `due_at`, `recurrence` or `timezone` schedules it anew. `status` completes or cancels it.
#[operation(patch "/reminders/{reminderId}", scope = "reminders:write")]
pub fn update_reminder(
    tx: &mut Tx,
    caller: &Caller,
    Path(reminder_id): Path<ReminderId>,
    Body(mut patch): Body<ReminderPatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
    actions: State<Actions>,
) -> Result<With<Json<Reminder>>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    // The lock order requires contacts to be locked before the reminder.
    if let Some(action) = &patch.action {
        check_action(tx, caller, &actions.0, action)?;
    }
    if let Patch::Set(contact) = patch.contact_id {
        patch.contact_id = Patch::Set(live_contact(tx, caller, &shapes.0, contact)?);
    }
    if let Patch::Set(assignee) = patch.assignee {
        check_assignee(tx, caller, Some(assignee))?;
    }
    let old = queries::locked(tx, caller.workspace_id(), reminder_id)?;
    expected.check(old.version)?;
    let mut row = old.clone();
    apply(&mut row, caller, patch, tx.now())?;
    if row.action != old.action || row.contact_id != old.contact_id {
        message::check(tx, caller, &actions.0.messenger, &row.action()?, row.contact_id)?;
    }
    if row != old {
        row.chain = tx.chain().map(JsonText::of);
        queries::store(tx, &mut row)?;
    }
    Ok(With::etag(row.version, Json(row.reminder()?)))
}

/// Delete a reminder
///
/// Deletes the reminder permanently. It does not fire any more.
#[operation(delete "/reminders/{reminderId}", scope = "reminders:write")]
pub fn delete_reminder(
    tx: &mut Tx,
    caller: &Caller,
    Path(reminder_id): Path<ReminderId>,
    if_match: IfMatch,
) -> Result<Deleted<Reminder>> {
    let row = queries::locked(tx, caller.workspace_id(), reminder_id)?;
    ExpectedVersion::from(if_match).check(row.version)?;
    diesel::delete(reminders::table.find(row.id)).execute(tx.connection())?;
    Ok(Deleted::of("reminder", reminder_id))
}

fn apply(row: &mut ReminderRow, caller: &Caller, patch: ReminderPatch, now: Timestamp) -> Result<()> {
    if let Some(title) = &patch.title {
        title.trim().clone_into(&mut row.title);
    }
    patch.note.clone().apply(&mut row.note);
    patch.contact_id.clone().apply(&mut row.contact_id);
    match patch.assignee {
        Patch::Keep => {}
        Patch::Clear => row.assignee_id = None,
        Patch::Set(assignee) => row.assignee_id = Some(assignee.id),
    }
    if let Some(action) = &patch.action {
        row.action = JsonText::of(action);
        row.key_id = caller.key.id.clone();
        row.livemode = caller.livemode();
    }
    row.cancel_on_reply = patch.cancel_on_reply.unwrap_or(row.cancel_on_reply);
    if let Some(metadata) = &patch.metadata {
        row.metadata = JsonText::of(metadata);
    }
    reschedule(row, &patch, now)?;
    snooze(row, &patch.snoozed_until, now)?;
    if let Some(status) = patch.status {
        row.status = match status {
            NewReminderStatus::Completed => ReminderStatus::Completed,
            NewReminderStatus::Cancelled => ReminderStatus::Cancelled,
        };
        row.next_slot_at = None;
        row.snoozed_until = None;
        row.wake_at = None;
    }
    Ok(())
}

/// Reschedules a reminder if a change affects its dates.
fn reschedule(row: &mut ReminderRow, patch: &ReminderPatch, now: Timestamp) -> Result<()> {
    let mut recurrence = row.recurrence()?;
    patch.recurrence.clone().apply(&mut recurrence);
    if let Some(name) = &patch.timezone {
        zone(name)?.name().clone_into(&mut row.timezone);
    }
    let is_new = !matches!(patch.recurrence, Patch::Keep)
        || patch.due_at.is_some()
        || (patch.timezone.is_some() && recurrence.is_some() && row.wake_at.is_some());
    if !is_new {
        return Ok(());
    }
    row.due_at = match patch.due_at {
        Some(due_at) => not_past(due_at, now)?,
        None if row.due_at > now => row.due_at,
        None if recurrence.is_some() => now,
        None => return Err(Error::invalid("due_at", "is required, because the last one has passed")),
    };
    let from = if row.due_at == now { now } else { whole_second(row.due_at) };
    row.next_slot_at = Some(first(recurrence.as_ref(), row.zone()?, row.due_at, from)?);
    row.recurrence = recurrence.as_ref().map(JsonText::of);
    row.slots_done = 0;
    row.snoozed_until = None;
    row.wake_at = row.next_slot_at;
    row.status = ReminderStatus::Scheduled;
    Ok(())
}

fn snooze(row: &mut ReminderRow, until: &Patch<Timestamp>, now: Timestamp) -> Result<()> {
    match until {
        Patch::Keep => {}
        Patch::Clear if row.snoozed_until.is_none() => {}
        Patch::Clear => {
            row.snoozed_until = None;
            row.wake_at = row.next_slot_at;
            if row.wake_at.is_none() {
                row.status = ReminderStatus::Fired;
            }
        }
        Patch::Set(until) if *until <= now => {
            return Err(Error::invalid("snoozed_until", "must be in the future"));
        }
        Patch::Set(until) => {
            if matches!(row.status, ReminderStatus::Completed | ReminderStatus::Cancelled) {
                let message = "The reminder was completed or cancelled. Send a `due_at` to schedule it anew.";
                return Err(Error::new(Code::InvalidState, message)
                    .param("snoozed_until")
                    .with("details", serde_json::json!({ "status": row.status })));
            }
            row.snoozed_until = Some(*until);
            row.wake_at = Some(*until);
            row.status = ReminderStatus::Scheduled;
        }
    }
    Ok(())
}

/// Locks the live contact of a body, or its survivor, and returns its id. The lock makes a concurrent merge or deletion of the
/// contact wait, so that it finds the reminder.
fn live_contact(tx: &mut Tx, caller: &Caller, shapes: &Shapes, contact: ContactId) -> Result<ContactId> {
    let shape = sets::for_write(tx, shapes, caller.workspace_id(), &CONTACTS)?;
    let row = ContactRef::from(contact).locked(tx, &shape).map_err(|error| error.param("contact_id"))?;
    Ok(row.id.into())
}

fn check_assignee(read: &mut Read, caller: &Caller, assignee: Option<ReminderAssignee>) -> Result<()> {
    let Some(ReminderAssignee { id, .. }) = assignee else { return Ok(()) };
    if TeamDirectory.among(read, caller.workspace_id(), &[id])?.is_empty() {
        return Err(Error::not_found("team member").param("assignee.id"));
    }
    Ok(())
}

fn check_action(read: &mut Read, caller: &Caller, actions: &Actions, action: &ReminderAction) -> Result<()> {
    check_fields(action)?;
    let config = &action.config;
    match action.kind {
        ReminderActionType::Notify => Ok(()),
        ReminderActionType::RunAgent => {
            caller.key.expect_scope(Scope::RunsExecute)?;
            actions.agents.expect_active(read, caller.workspace_id(), config.agent_id).map_err(|error| {
                if error.code() == Code::NotFound { error.param("action.config.agent_id") } else { error }
            })
        }
        ReminderActionType::SendMessage => message::expect_complete(caller, config),
        ReminderActionType::StartFlow => flow::check(read, caller, &actions.flows, config),
    }
}

/// Checks that the settings of an action are those of its type.
fn check_fields(action: &ReminderAction) -> Result<()> {
    use ReminderActionType::{RunAgent, SendMessage, StartFlow};
    let ReminderActionConfig { agent_id, input, flow_id, text, template, channel_id } = &action.config;
    let fields: [(&str, bool, &[ReminderActionType]); 6] = [
        ("agent_id", agent_id.is_some(), &[RunAgent]),
        ("input", input.is_some(), &[RunAgent, StartFlow]),
        ("flow_id", flow_id.is_some(), &[StartFlow]),
        ("text", text.is_some(), &[SendMessage]),
        ("template", template.is_some(), &[SendMessage]),
        ("channel_id", channel_id.is_some(), &[SendMessage]),
    ];
    let misplaced = fields.iter().find(|(_, is_set, kinds)| *is_set && !kinds.contains(&action.kind));
    if let Some((field, _, kinds)) = misplaced {
        let kinds: Vec<String> = kinds.iter().map(|kind| format!("`{}`", kind.as_str())).collect();
        let rule = format!("is for {}", kinds.join(" and "));
        return Err(Error::invalid(format!("action.config.{field}"), rule));
    }
    let rule = match (action.kind, input) {
        (RunAgent, Some(ReminderInput::Values(_))) => "must be a text for `run_agent`",
        (StartFlow, Some(ReminderInput::Text(_))) => "must be an object for `start_flow`",
        _ => return Ok(()),
    };
    Err(Error::invalid("action.config.input", rule))
}
