//! Creates reminders, and computes their first date.

use super::model::{NewReminder, Recurrence, Reminder, ReminderRow, ReminderStatus};
use super::series::Series;
use crate::schema::reminders;
use business::Calendar;
use chrono_tz::Tz;
use diesel::prelude::*;
use model::{Error, JsonText, KeyId, Result, TaskId, Timestamp, WorkspaceId};
use ports::BusinessCalendar;
use store::Tx;

/// The tolerance for due dates in the past, in seconds, for slow requests and clocks that differ.
const LATE_SECONDS: i64 = 60;

/// The owner of a new reminder.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The key that its action uses.
    pub key: &'a KeyId,
    /// Whether it is a live key.
    pub livemode: bool,
    /// The creator, as JSON of an [`Actor`](model::Actor).
    pub actor: &'a JsonText,
}

/// Creates a reminder without checking its references.
///
/// # Errors
/// `validation_error` if the dates are invalid.
pub fn add(tx: &mut Tx, owner: &Owner<'_>, new: NewReminder) -> Result<Reminder> {
    insert(tx, owner, new, None)
}

/// Creates a reminder as [`add`] does, and optionally for a task.
pub(super) fn insert(
    tx: &mut Tx,
    owner: &Owner<'_>,
    new: NewReminder,
    task: Option<TaskId>,
) -> Result<Reminder> {
    let now = tx.now();
    let timezone = match &new.timezone {
        Some(name) => zone(name)?,
        None => Calendar.time_zone(tx, owner.workspace)?,
    };
    let due_at = match (new.due_at, &new.recurrence) {
        (Some(due_at), _) => not_past(due_at, now)?,
        (None, Some(_)) => now,
        (None, None) => return Err(Error::invalid("due_at", "is required, or `recurrence`")),
    };
    let from = if new.due_at.is_some() { whole_second(due_at) } else { now };
    let next = first(new.recurrence.as_ref(), timezone, due_at, from)?;
    let chain = tx.chain().map(JsonText::of);
    let row: ReminderRow = diesel::insert_into(reminders::table)
        .values((
            (
                reminders::workspace_id.eq(owner.workspace),
                reminders::livemode.eq(owner.livemode),
                reminders::title.eq(new.title.trim()),
                reminders::note.eq(&new.note),
                reminders::status.eq(ReminderStatus::Scheduled),
                reminders::due_at.eq(due_at),
                reminders::timezone.eq(timezone.name()),
                reminders::recurrence.eq(new.recurrence.as_ref().map(JsonText::of)),
                reminders::contact_id.eq(new.contact_id),
                reminders::assignee_id.eq(new.assignee.map(|assignee| assignee.id)),
                reminders::action.eq(JsonText::of(&new.action.unwrap_or_default())),
                reminders::cancel_on_reply.eq(new.cancel_on_reply),
            ),
            (
                reminders::next_slot_at.eq(next),
                reminders::slots_done.eq(0),
                reminders::wake_at.eq(next),
                reminders::fire_count.eq(0),
                reminders::key_id.eq(owner.key),
                reminders::metadata.eq(JsonText::of(&new.metadata.unwrap_or_default())),
                reminders::version.eq(1),
                reminders::created_by.eq(owner.actor),
                reminders::created_at.eq(now),
                reminders::updated_at.eq(now),
                reminders::task_id.eq(task),
                reminders::chain.eq(chain),
            ),
        ))
        .returning(reminders::all_columns)
        .get_result(tx.connection())?;
    row.reminder()
}

/// Returns the first moment at which a reminder fires: `due_at`, or with a recurrence its first date from `from` on.
pub(super) fn first(
    recurrence: Option<&Recurrence>,
    zone: Tz,
    due_at: Timestamp,
    from: Timestamp,
) -> Result<Timestamp> {
    let Some(recurrence) = recurrence else { return Ok(due_at) };
    let wrong = |rule: String| Error::invalid("recurrence.rule", rule);
    let series = Series::new(recurrence, zone, due_at).map_err(wrong)?;
    series.refuse_dense(due_at).map_err(wrong)?;
    let first = series.first(recurrence, from);
    first.ok_or_else(|| wrong("has no date after `due_at` and before `until`".to_owned()))
}

/// Rounds a moment down to whole seconds, because dates of rules have no fractions. Otherwise a rule would skip its
/// first date if `due_at` is `09:00:00.123Z`.
pub(super) fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.millis().div_euclid(1_000) * 1_000)
}

pub(super) fn zone(name: &str) -> Result<Tz> {
    name.parse().map_err(|_| Error::invalid("timezone", "must be a time zone such as `Europe/Madrid`"))
}

pub(super) fn not_past(due_at: Timestamp, now: Timestamp) -> Result<Timestamp> {
    if due_at < now.plus_seconds(-LATE_SECONDS) {
        return Err(Error::invalid("due_at", "must not be in the past"));
    }
    Ok(due_at)
}
