//! Operations on automations: list, create, read, update, delete, switch on and off.

use super::check;
use crate::firings::row::{FiringReason, discard_open};
use crate::matching::marks;
use crate::rules::model::{Automation, AutomationPatch, AutomationQuery, NewAutomation, SwitchOff, SwitchOn};
use crate::rules::row::{AutomationRow, AutomationStatus};
use crate::rules::set;
use crate::schema::automations;
use crate::surroundings::Surroundings;
use crate::triggers::compiled::Settings;
use crate::{timer_rows, timers};
use diesel::prelude::*;
use model::{AutomationId, Caller, JsonText, Result, WorkspaceId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, Resource, State,
    Update, With, operation,
};
use serde_json::Value;
use store::{OptInPage, Read, Tx};

/// List automations
///
/// Lists the workspace's automations, newest first. Send `status` or `trigger_type` for some of them.
#[operation(get "/automations", scope = "automations:read", ceiling = 1000)]
pub fn list_automations(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<AutomationQuery>,
    page: OptIn,
) -> Result<OptInList<Automation>> {
    let rows = list(read, caller.workspace_id(), &query, page.page())?;
    let all = rows.into_iter().map(AutomationRow::automation).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(all, |automation| automation.id.to_string()))
}

fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    query: &AutomationQuery,
    page: &OptInPage,
) -> Result<Vec<AutomationRow>> {
    let mut rows = automations::table
        .filter(automations::workspace_id.eq(workspace))
        .order(automations::id.desc())
        .limit(page.fetch())
        .select(AutomationRow::as_select())
        .into_boxed();
    if let Some(status) = query.status {
        rows = rows.filter(automations::status.eq(status));
    }
    if let Some(kind) = query.trigger_type {
        rows = rows.filter(automations::trigger_type.eq(kind));
    }
    if let Some(after) = page.after::<AutomationId>()? {
        rows = rows.filter(automations::id.lt(after));
    }
    Ok(rows.load(read.connection())?)
}

/// Create an automation
///
/// The automation is switched off unless `enable` is sent. It acts for your key, which needs the scope of what it starts:
/// `automations:execute` for a flow, `runs:execute` for an agent, `functions:write` for a function. A name that another automation
/// has is a 409 `duplicate_value`.
#[operation(post "/automations", scope = "automations:write")]
pub fn create_automation(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewAutomation>,
    around: State<Surroundings>,
) -> Result<Created<Automation>> {
    let workspace = caller.workspace_id();
    let around = &around.0;
    let settings = Settings::of_request(new.trigger.kind, &new.trigger.config)?;
    check::trigger(tx, around, workspace, &settings)?;
    let conditions = new.conditions.as_ref().filter(|json| !json.is_null());
    if let Some(json) = conditions {
        check::conditions(tx, around, workspace, json)?;
    }
    check::target(tx, around, caller, &new.target)?;
    check::policy(&new.policy)?;
    check::period(new.active_from, new.active_until)?;
    let now = tx.now();
    let mut row = AutomationRow {
        id: AutomationId(0),
        workspace_id: workspace,
        name: new.name,
        description: new.description,
        status: AutomationStatus::Off,
        suspended_reason: None,
        trigger_type: new.trigger.kind,
        trigger_config: JsonText::of(&new.trigger.config),
        conditions: conditions.map(JsonText::of),
        target_type: new.target.kind,
        target_id: new.target.id,
        target_input: JsonText::of(&new.target.input),
        policy: JsonText::of(&new.policy),
        active_from: new.active_from,
        active_until: new.active_until,
        key_id: caller.key.id.clone(),
        lineage_id: caller.key.lineage.clone(),
        env: caller.key.env,
        enabled_at: None,
        next_fire_at: None,
        last_fired_at: None,
        metadata: JsonText::of(&new.metadata.unwrap_or_default()),
        version: 1,
        created_at: now,
        updated_at: now,
    };
    if new.enable {
        switch_on(tx, around, &mut row)?;
    }
    let row = row.create(tx)?;
    set::changed(tx, workspace)?;
    Ok(Created(row.automation()?))
}

fn switch_on(tx: &mut Tx, around: &Surroundings, row: &mut AutomationRow) -> Result<()> {
    check::startable(tx, around, row)?;
    row.status = AutomationStatus::On;
    row.suspended_reason = None;
    row.enabled_at = Some(tx.now());
    row.next_fire_at = timers::next_fire_at(tx, around, row)?;
    Ok(())
}

/// Automation detail
///
/// The `ETag` header is the version. Send it as `If-Match` with a change to prevent overwriting changes by others.
#[operation(get "/automations/{automationId}", scope = "automations:read")]
pub fn get_automation(
    read: &mut Read,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
) -> Result<With<Json<Automation>>> {
    let row = AutomationRow::find(read, caller.workspace_id(), &automation_id)?;
    Ok(With::etag(row.version, Json(row.automation()?)))
}

/// Change an automation
///
/// Fields that are not sent stay unchanged. The change applies at once, also to an automation that is on. From now on it acts for
/// your key, which needs the scope of what it starts. With `version` or `If-Match`, the request is rejected with 409
/// `version_conflict` if the automation was changed in the meantime.
#[operation(patch "/automations/{automationId}", scope = "automations:write")]
pub fn update_automation(
    tx: &mut Tx,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
    Body(patch): Body<AutomationPatch>,
    if_match: IfMatch,
    around: State<Surroundings>,
) -> Result<With<Json<Automation>>> {
    let workspace = caller.workspace_id();
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let mut update = Update::<AutomationRow>::begin(tx, workspace, &automation_id, expected)?;
    change(tx, &around.0, caller, &mut update.row, patch)?;
    if !update.is_change() {
        return Ok(With::etag(update.row.version, Json(update.row.automation()?)));
    }
    let is_on = update.row.status == AutomationStatus::On;
    take_over(&mut update.row, caller);
    check::target(tx, &around.0, caller, &update.row.target()?)?;
    if is_on {
        check::startable(tx, &around.0, &update.row)?;
        update.row.next_fire_at = timers::next_fire_at(tx, &around.0, &update.row)?;
    }
    let row = update.store(tx)?;
    set::changed(tx, workspace)?;
    Ok(With::etag(row.version, Json(row.automation()?)))
}

/// From now on it acts for the caller's key.
fn take_over(row: &mut AutomationRow, caller: &Caller) {
    row.key_id = caller.key.id.clone();
    row.lineage_id = caller.key.lineage.clone();
    row.env = caller.key.env;
}

fn change(
    read: &mut Read,
    around: &Surroundings,
    caller: &Caller,
    row: &mut AutomationRow,
    patch: AutomationPatch,
) -> Result<()> {
    let workspace = caller.workspace_id();
    if let Some(trigger) = patch.trigger {
        let settings = Settings::of_request(trigger.kind, &trigger.config)?;
        check::trigger(read, around, workspace, &settings)?;
        row.trigger_type = trigger.kind;
        row.trigger_config = JsonText::of(&trigger.config);
    }
    let mut conditions: Option<Value> = row.conditions.as_ref().map(JsonText::parse).transpose()?;
    if let model::Patch::Set(json) = &patch.conditions {
        check::conditions(read, around, workspace, json)?;
    }
    patch.conditions.apply(&mut conditions);
    row.conditions = conditions.as_ref().map(JsonText::of);
    if let Some(target) = patch.target {
        check::target(read, around, caller, &target)?;
        row.target_type = target.kind;
        row.target_id = target.id;
        row.target_input = JsonText::of(&target.input);
    }
    if let Some(policy) = patch.policy {
        check::policy(&policy)?;
        row.policy = JsonText::of(&policy);
    }
    patch.active_from.apply(&mut row.active_from);
    patch.active_until.apply(&mut row.active_until);
    check::period(row.active_from, row.active_until)?;
    patch.description.apply(&mut row.description);
    if let Some(name) = patch.name {
        row.name = name;
    }
    if let Some(metadata) = patch.metadata {
        row.metadata = JsonText::of(&metadata);
    }
    Ok(())
}

/// Delete an automation
///
/// Firings that wait are discarded at once. Runs that it has started are not affected.
#[operation(delete "/automations/{automationId}", scope = "automations:write")]
pub fn delete_automation(
    tx: &mut Tx,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
    if_match: IfMatch,
) -> Result<Deleted<Automation>> {
    let workspace = caller.workspace_id();
    AutomationRow::remove(tx, workspace, &automation_id, if_match)?;
    discard_open(tx, automation_id, FiringReason::SwitchedOff)?;
    marks::forget(tx, automation_id)?;
    timer_rows::forget(tx, automation_id)?;
    set::changed(tx, workspace)?;
    Ok(Deleted::of("automation", automation_id))
}

/// Switch it on
///
/// It acts for your key from now on. What it starts must be active: otherwise the request is a 409 `invalid_state` with
/// `details.reason` `target_inactive`. An automation that the service suspended is on again.
#[operation(post "/automations/{automationId}/enable", scope = "automations:write")]
pub fn enable_automation(
    tx: &mut Tx,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
    Body(enable): Body<SwitchOn>,
    if_match: IfMatch,
    around: State<Surroundings>,
) -> Result<With<Json<Automation>>> {
    let workspace = caller.workspace_id();
    let expected = ExpectedVersion::new(if_match, enable.version)?;
    let mut update = Update::<AutomationRow>::begin(tx, workspace, &automation_id, expected)?;
    check::target(tx, &around.0, caller, &update.row.target()?)?;
    take_over(&mut update.row, caller);
    if update.row.status == AutomationStatus::On {
        check::startable(tx, &around.0, &update.row)?;
    } else {
        switch_on(tx, &around.0, &mut update.row)?;
    }
    let row = if update.is_change() { update.store(tx)? } else { update.row };
    set::changed(tx, workspace)?;
    Ok(With::etag(row.version, Json(row.automation()?)))
}

/// Switch it off
///
/// Firings that wait or are held are discarded at once. Runs that it has started are not affected, unless you send `cancel_runs`, which
/// cancels its runs of flows.
#[operation(post "/automations/{automationId}/disable", scope = "automations:write")]
pub fn disable_automation(
    tx: &mut Tx,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
    Body(disable): Body<SwitchOff>,
    if_match: IfMatch,
    around: State<Surroundings>,
) -> Result<With<Json<Automation>>> {
    let workspace = caller.workspace_id();
    let expected = ExpectedVersion::new(if_match, disable.version)?;
    let mut update = Update::<AutomationRow>::begin(tx, workspace, &automation_id, expected)?;
    update.row.status = AutomationStatus::Off;
    update.row.suspended_reason = None;
    update.row.next_fire_at = None;
    let row = if update.is_change() { update.store(tx)? } else { update.row };
    set::changed(tx, workspace)?;
    discard_open(tx, automation_id, FiringReason::SwitchedOff)?;
    if disable.cancel_runs {
        around.0.flows.get()?.cancel_started_by(tx, workspace, automation_id)?;
    }
    Ok(With::etag(row.version, Json(row.automation()?)))
}
