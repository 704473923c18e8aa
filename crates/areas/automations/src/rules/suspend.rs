//! Suspending: the service switches an automation off, and says why in an event.

use super::events::{AutomationEvent, AutomationSuspended};
use super::row::{AutomationStatus, SuspendedReason};
use super::set;
use crate::firings::row::{FiringReason, discard_open};
use crate::schema::automations;
use diesel::prelude::*;
use model::{AutomationId, Cause, Env, JsonText, Result, Timestamp, WorkspaceId};
use store::Tx;

/// Suspends an automation that is on, ends its firings that wait, and publishes `automation.suspended`. `details` is what was seen.
/// Returns whether it was on.
pub(crate) fn suspend(
    tx: &mut Tx,
    workspace: WorkspaceId,
    id: AutomationId,
    reason: SuspendedReason,
    details: Option<&JsonText>,
) -> Result<bool> {
    let now = tx.now();
    let on = automations::table
        .find(id)
        .filter(automations::workspace_id.eq(workspace))
        .filter(automations::status.eq(AutomationStatus::On));
    let suspended: Option<(String, Env)> = diesel::update(on)
        .set((
            automations::status.eq(AutomationStatus::Suspended),
            automations::suspended_reason.eq(reason),
            automations::next_fire_at.eq(None::<Timestamp>),
            automations::version.eq(automations::version + 1),
            automations::updated_at.eq(now),
        ))
        .returning((automations::name, automations::env))
        .get_result(tx.connection())
        .optional()?;
    let Some((name, env)) = suspended else { return Ok(false) };
    set::changed(tx, workspace)?;
    discard_open(tx, id, FiringReason::SwitchedOff)?;
    let event = AutomationEvent::Suspended(AutomationSuspended { automation_id: id, name, reason, details });
    tx.emit(workspace, &Cause::system("automations"), env == Env::Live, &event)?;
    Ok(true)
}
