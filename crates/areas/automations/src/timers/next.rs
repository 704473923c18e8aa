//! The settings of timers that a request states, and when a timer is due first.

use super::dates::DateRule;
use super::schedule::Slots;
use super::windows::Window;
use crate::rules::row::AutomationRow;
use crate::surroundings::Surroundings;
use crate::timer_rows::{self as row, Clock, within};
use crate::triggers::compiled::Settings;
use crate::triggers::timers::{DateField, DateObject};
use chrono::Duration;
use fields::FieldType;
use model::{Error, Result, Timestamp, WorkspaceId};
use store::{Read, Tx};

/// Checks the settings of a timer.
///
/// # Errors
/// `validation_error` about `trigger.config`.
pub(crate) fn check(
    read: &mut Read,
    around: &Surroundings,
    workspace: WorkspaceId,
    settings: &Settings,
) -> Result<()> {
    match settings {
        Settings::Schedule(schedule) => {
            let (zone, now) = (around.business.time_zone(read, workspace)?, read.now());
            Slots::of(schedule, zone, now)?.refuse_empty(now)
        }
        Settings::DateField(config) => date_field(read, around, workspace, config),
        _ => Ok(()),
    }
}

fn date_field(
    read: &mut Read,
    around: &Surroundings,
    workspace: WorkspaceId,
    config: &DateField,
) -> Result<()> {
    const COLLECTION: &str = "trigger.config.collection_id";
    DateRule::of(config)?;
    match (config.object, config.collection_id) {
        (DateObject::Item, None) => return Err(Error::invalid(COLLECTION, "must be given for items")),
        (DateObject::Contact, Some(_)) => {
            return Err(Error::invalid(COLLECTION, "must be left out for contacts"));
        }
        (DateObject::Item, Some(id))
            if id.0 < 1 || around.collections.name(read, workspace, id)?.is_none() =>
        {
            return Err(Error::invalid(COLLECTION, "must be the id of a collection of the workspace"));
        }
        _ => {}
    }
    match Window::of_field(config)?.field_type(read, around, workspace)? {
        Some(FieldType::Date | FieldType::Datetime) => Ok(()),
        _ => Err(Error::invalid(
            "trigger.config.field",
            "must be the key of a field of type `date` or `datetime`",
        )),
    }
}

/// Returns when the timer of an automation that is switched on, or changed, is due first. `None` if it has none. Waits for a
/// silence that have begun follow the rule.
///
/// # Errors
/// When what is stored is damaged.
pub(crate) fn next_fire_at(
    tx: &mut Tx,
    around: &Surroundings,
    row: &AutomationRow,
) -> Result<Option<Timestamp>> {
    let now = tx.now();
    let clock = Clock::of(tx, row)?;
    let is_same_rule = clock != Clock::fresh(row);
    // What is due, or waits, under the same rule stays: a new name of an automation does not skip its slot.
    if let Some(next) = row.next_fire_at.filter(|_| is_same_rule) {
        return Ok(Some(next));
    }
    let after = row.active_from.map_or(now, |from| now.max(from.plus(Duration::milliseconds(-1))));
    let next = match Settings::read(row.trigger_type, &row.trigger_config.parse()?)? {
        Settings::Schedule(schedule) => {
            let slots = slots(tx, around, row, &schedule)?;
            let due = row.next_fire_at.filter(|at| *at <= now && slots.has(*at));
            due.or_else(|| slots.next(after))
        }
        Settings::NoReply(settings) => {
            row::rebase(tx, row.id, settings.minutes)?;
            None
        }
        Settings::Idle(settings) => {
            row::rebase(tx, row.id, settings.minutes)?;
            None
        }
        settings => match Window::of(&settings)? {
            Some(window) => {
                // Dates that the new rule would have fired before now are not made up for.
                if row.id.0 > 0 {
                    Clock { since: Some(after), ..clock }.store(tx, row)?;
                }
                Some(window.next_look(tx, around, row.workspace_id, after)?)
            }
            None => None,
        },
    };
    Ok(within(row, next))
}

/// Returns the slots of a schedule.
pub(super) fn slots(
    read: &mut Read,
    around: &Surroundings,
    row: &AutomationRow,
    schedule: &crate::triggers::timers::Schedule,
) -> Result<Slots> {
    let zone = around.business.time_zone(read, row.workspace_id)?;
    Slots::of(schedule, zone, row.active_from.unwrap_or(row.created_at))
}
