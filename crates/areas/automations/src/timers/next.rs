//! The settings of timers that a request states, and when a timer is due first.

use super::schedule::Slots;
use crate::rules::row::AutomationRow;
use crate::surroundings::Surroundings;
use crate::triggers::compiled::Settings;
use model::{Result, Timestamp, WorkspaceId};
use store::Read;

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
        _ => Ok(()),
    }
}

/// When the timer of an automation that is switched on, or changed, is due first. `None` if it has none.
///
/// # Errors
/// When what is stored is damaged.
pub(crate) fn next_fire_at(
    read: &mut Read,
    around: &Surroundings,
    row: &AutomationRow,
) -> Result<Option<Timestamp>> {
    match Settings::read(row.trigger_type, &row.trigger_config.parse()?)? {
        Settings::Schedule(schedule) => {
            let (zone, now) = (around.business.time_zone(read, row.workspace_id)?, read.now());
            let slots = Slots::of(&schedule, zone, row.active_from.unwrap_or(row.created_at))?;
            Ok(slots.next(now))
        }
        _ => Ok(None),
    }
}
