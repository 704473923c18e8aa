//! Fires reminders, exactly once for each date.

use super::actions::Actions;
use super::events::{AboutContact, ReminderFired};
use super::flow;
use super::message;
use super::model::{ReminderError, ReminderRow, ReminderStatus};
use super::queries;
use super::series::{Advanced, Series};
use super::start;
use jobs::{Job, JobError};
use model::{Cause, Chain, Error, Result, Timestamp};
use std::time::Duration;
use store::Tx;

/// Poll interval for due reminders.
const EVERY: Duration = Duration::from_secs(5);
/// The most reminders to fire in one transaction.
const BATCH: i64 = 50;

/// Builds the jobs of reminders.
pub(crate) fn jobs(actions: &Actions) -> [Job; 4] {
    let (starting, sending, flows) = (actions.clone(), actions.messenger.clone(), actions.flows.clone());
    let fire = Job::every("reminders.fire", EVERY, "fires reminders that are due", |job| async move {
        loop {
            let fired = job.db.write(|tx| fire_due(tx, BATCH)).await?;
            if i64::try_from(fired).unwrap_or(0) < BATCH {
                return Ok(());
            }
            if job.soft.is_cancelled() {
                return Err(JobError::hand_back());
            }
        }
    });
    let start = Job::after(start::JOB, "a reminder with `run_agent` fires", "starts the run", move |job| {
        start::start(starting.clone(), job)
    });
    let send =
        Job::after(message::JOB, "a reminder with `send_message` fires", "sends the message", move |job| {
            message::send(sending.clone(), job)
        });
    let start_flow = Job::after(
        flow::JOB,
        "a reminder with `start_flow` fires",
        "starts the run of the flow",
        move |job| flow::start(flows.clone(), job),
    );
    [fire, start, send, start_flow]
}

/// Fires at most `most` due reminders, and returns their number.
///
/// # Errors
/// `internal_error`.
pub fn fire_due(tx: &mut Tx, most: i64) -> Result<usize> {
    let due = queries::due(tx, most)?;
    let fired = due.len();
    for row in due {
        fire(tx, row)?;
    }
    Ok(fired)
}

fn fire(tx: &mut Tx, mut row: ReminderRow) -> Result<()> {
    let now = tx.now();
    let Some(slot) = row.wake_at else { return Ok(()) };
    let over = match over(&row, now) {
        Ok(over) => over,
        // A damaged reminder must not block the others.
        Err(error) => {
            tracing::error!(reminder = row.id.0, ?error, "a reminder could not be fired");
            row.wake_at = None;
            row.status = ReminderStatus::Failed;
            row.last_error = Some(ReminderError::of(&error, now));
            return queries::store(tx, &mut row);
        }
    };
    let done = over.map_or(row.slots_done, |over| over.done);
    let missed = done - row.slots_done - i64::from(row.snoozed_until.is_none());
    let scheduled_for = row.snoozed_until.or(over.map(|over| over.last)).unwrap_or(slot);
    if let Some(over) = over {
        row.slots_done = over.done;
        row.next_slot_at = over.next;
    }
    row.snoozed_until = None;
    row.wake_at = row.next_slot_at;
    row.status = if row.wake_at.is_some() { ReminderStatus::Scheduled } else { ReminderStatus::Fired };
    row.last_fired_at = Some(now);
    row.fire_count += 1;
    queries::store(tx, &mut row)?;
    let fired = ReminderFired {
        reminder: &row.reminder()?,
        scheduled_for,
        missed: missed.max(0),
        contact_id: AboutContact(row.contact_id),
    };
    let chain = Chain::stored(row.chain.as_ref()).map(|chain| chain.next());
    let cause = Cause::system("reminders.fire").at(chain.clone());
    let event = tx.emit(row.workspace_id, &cause, row.livemode, &fired)?;
    tx.at_chain(Some(Chain::after(&event, chain.as_ref())), |tx| {
        start::enqueue(tx, &row, slot)?;
        message::enqueue(tx, &row, slot)?;
        flow::enqueue(tx, &row, slot, &fired)
    })
}

/// Advances the series over all dates up to now. Returns `None` if the reminder wakes from a snooze before its next
/// date.
fn over(row: &ReminderRow, now: Timestamp) -> Result<Option<Advanced>> {
    let Some(slot) = row.next_slot_at.filter(|slot| *slot <= now) else { return Ok(None) };
    let Some(recurrence) = row.recurrence()? else {
        return Ok(Some(Advanced { last: slot, done: row.slots_done + 1, next: None }));
    };
    let series = Series::stored(&recurrence, row.zone()?, row.due_at).map_err(Error::internal)?;
    Ok(Some(series.advance(&recurrence, slot, row.slots_done, now)))
}
