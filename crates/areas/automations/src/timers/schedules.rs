//! Schedules: which slots fire now.

use super::next::slots;
use super::schedule::MOST_MISSED;
use super::windows::set_next;
use crate::firings::row::{FiringReason, FiringStatus};
use crate::guards::outcomes::has_open_run;
use crate::matching::{Matching, consider};
use crate::occurrence::Occurrence;
use crate::rules::row::{AutomationRow, AutomationStatus};
use crate::schema::automations;
use crate::surroundings::Surroundings;
use crate::timer_rows::{Clock, within};
use crate::triggers::compiled::Settings;
use crate::triggers::timers::{CatchUp, Overlap, Schedule};
use diesel::prelude::*;
use model::{AutomationId, Env, Result, Timestamp};
use serde_json::json;
use store::{Tx, for_update_skip_locked};

/// How often a slot that waits looks for the end of an earlier run, in seconds.
const QUEUE_SECONDS: i64 = 5;
/// A slot that is later than this was missed, as far as its firing shows.
const LATE_SECONDS: i64 = 60;

/// Fires the slots of these automations that are due. Automations that another process fires are left out.
pub(super) fn fire_due(
    tx: &mut Tx,
    around: &Surroundings,
    matching: &Matching,
    ids: &[AutomationId],
) -> Result<()> {
    let now = tx.now();
    let due = automations::table
        .filter(automations::id.eq_any(ids))
        .filter(automations::next_fire_at.le(now))
        .filter(automations::status.eq(AutomationStatus::On))
        .order(automations::id)
        .select(AutomationRow::as_select());
    let rows: Vec<AutomationRow> = for_update_skip_locked(due).load(tx.connection())?;
    rows.iter().try_for_each(|row| fire(tx, around, matching, row))
}

fn fire(tx: &mut Tx, around: &Surroundings, matching: &Matching, row: &AutomationRow) -> Result<()> {
    let Settings::Schedule(config) = Settings::read(row.trigger_type, &row.trigger_config.parse()?)? else {
        return set_next(tx, row.id, None);
    };
    let Some(at) = row.next_fire_at else { return Ok(()) };
    let now = tx.now();
    let slots = slots(tx, around, row, &config)?;
    let mut clock = Clock::of(tx, row)?;
    let waited = clock.slot.take();
    let slot = waited.unwrap_or(at);
    let mut due = match waited {
        // It was on time when it began to wait.
        Some(_) => slots.last(slot, now, if config.catch_up == CatchUp::All { MOST_MISSED } else { 1 }),
        None => slots.due(slot, now, config.catch_up),
    };
    if due.is_empty() {
        // Nothing makes up for what was missed, but it can be seen.
        for missed in slots.last(slot, now, 1) {
            consider(tx, matching, row, &occurrence(row, missed, now, Some(FiringReason::Missed)))?;
        }
    }
    let next = within(row, slots.next(now));
    let waiting = fire_slots(tx, matching, row, &config, &mut due)?;
    clock.slot = waiting;
    clock.store(tx, row)?;
    set_next(tx, row.id, if waiting.is_some() { Some(now.plus_seconds(QUEUE_SECONDS)) } else { next })
}

/// Fires slots in order, as far as earlier runs let them. Returns the slot that waits.
fn fire_slots(
    tx: &mut Tx,
    matching: &Matching,
    row: &AutomationRow,
    config: &Schedule,
    due: &mut Vec<Timestamp>,
) -> Result<Option<Timestamp>> {
    let now = tx.now();
    let mut is_busy = config.overlap != Overlap::Allow && has_open_run(tx, row.id)?;
    for slot in due.drain(..) {
        if is_busy && config.overlap == Overlap::Queue {
            return Ok(Some(slot));
        }
        let reason = is_busy.then_some(FiringReason::Overlap);
        let firing = consider(tx, matching, row, &occurrence(row, slot, now, reason))?;
        is_busy |= config.overlap != Overlap::Allow && firing.status == FiringStatus::Pending;
    }
    Ok(None)
}

fn occurrence(
    row: &AutomationRow,
    slot: Timestamp,
    now: Timestamp,
    missed: Option<FiringReason>,
) -> Occurrence {
    let is_missed = slot.plus_seconds(LATE_SECONDS) < now;
    Occurrence {
        key: format!("slot:{}", slot.millis()),
        event: None,
        kind: row.trigger_type.as_str().to_owned(),
        payload: json!({ "slot": slot, "is_missed": is_missed }),
        contact: None,
        livemode: row.env == Env::Live,
        chain: None,
        missed,
    }
}

/// Puts a schedule aside that could not be fired, so that others go on. Its slot is not lost.
pub(super) fn put_aside(tx: &mut Tx, id: AutomationId, until: Timestamp) -> Result<()> {
    let row: Option<AutomationRow> = automations::table
        .find(id)
        .select(AutomationRow::as_select())
        .get_result(tx.connection())
        .optional()?;
    let Some(row) = row else { return Ok(()) };
    let mut clock = Clock::of(tx, &row)?;
    clock.slot = clock.slot.or(row.next_fire_at);
    clock.store(tx, &row)?;
    set_next(tx, id, Some(until))
}
