//! Dates of records: which fire between two moments.
//!
//! Records are found by a window over the order of their dates. A window begins where the one before ended, so a date fires
//! once; the firing of an occurrence is unique too, also if a window is read twice.

use super::dates::{DateRule, DateValue};
use crate::matching::{Matching, consider};
use crate::occurrence::Occurrence;
use crate::rules::row::{AutomationRow, AutomationStatus};
use crate::schema::automations;
use crate::surroundings::Surroundings;
use crate::timer_rows::{Clock, damaged, within};
use crate::triggers::compiled::Settings;
use crate::triggers::timers::{DateField, DateObject};
use chrono_tz::Tz;
use diesel::prelude::*;
use fields::FieldType;
use model::{AutomationId, Env, Error, Result, Timestamp, WorkspaceId};
use ports::{DateWindow, DatedRecord, DatedRecords, DatedSet};
use serde_json::json;
use std::sync::Arc;
use store::{Read, Tx, for_update_skip_locked};

/// The most records to fire in one transaction.
const MOST: usize = 100;

/// What an automation looks for.
#[derive(Debug, Clone)]
pub(super) struct Window {
    set: DatedSet,
    field: String,
    rule: DateRule,
}

/// What was found for an automation.
pub(super) struct Found {
    row: AutomationRow,
    window: Window,
    zone: Tz,
    since: Timestamp,
    until: Timestamp,
    records: Vec<DatedRecord>,
}

impl Window {
    /// The window of `date_field` and `task.due`; `None` for other triggers.
    pub(super) fn of(settings: &Settings) -> Result<Option<Self>> {
        match settings {
            Settings::DateField(config) => Self::of_field(config).map(Some),
            Settings::TaskDue(config) => Ok(Some(Self {
                set: DatedSet::Tasks,
                field: "due_at".to_owned(),
                rule: DateRule::shifted(&config.offset),
            })),
            _ => Ok(None),
        }
    }

    /// The window of `date_field`.
    pub(super) fn of_field(config: &DateField) -> Result<Self> {
        let set = match (config.object, config.collection_id) {
            (DateObject::Contact, _) => DatedSet::Contacts,
            (DateObject::Item, Some(id)) => DatedSet::Items(id),
            (DateObject::Item, None) => return Err(damaged()),
        };
        Ok(Self { set, field: config.field.clone(), rule: DateRule::of(config)? })
    }

    fn keeper(&self, around: &Surroundings) -> Result<Arc<dyn DatedRecords>> {
        let keeper = around.dated.iter().find(|records| records.keeps(self.set));
        keeper.cloned().ok_or_else(|| Error::internal("nobody keeps these records"))
    }

    /// The type of the field.
    pub(super) fn field_type(
        &self,
        read: &mut Read,
        around: &Surroundings,
        workspace: WorkspaceId,
    ) -> Result<Option<FieldType>> {
        self.keeper(around)?.field_type(read, workspace, self.set, &self.field)
    }

    /// Returns when to look next after a moment.
    pub(super) fn next_look(
        &self,
        read: &mut Read,
        around: &Surroundings,
        workspace: WorkspaceId,
        after: Timestamp,
    ) -> Result<Timestamp> {
        let of_days = self.field_type(read, around, workspace)? == Some(FieldType::Date);
        let zone = around.business.time_zone(read, workspace)?;
        Ok(self.rule.next_look(of_days, zone, after))
    }

    fn occurrence(&self, row: &AutomationRow, found: &DatedRecord) -> Occurrence {
        let DatedRecord { id, value, record, .. } = found;
        let payload = match self.set {
            DatedSet::Contacts => {
                json!({ "field": self.field, "value": value, "contact_id": id, "contact": record })
            }
            DatedSet::Items(collection) => json!({
                "field": self.field, "value": value, "item_id": id, "collection_id": collection, "item": record,
            }),
            DatedSet::Tasks => json!({ "due_at": value, "task_id": id, "task": record }),
        };
        Occurrence {
            key: format!("date:{id}:{value}"),
            event: None,
            kind: row.trigger_type.as_str().to_owned(),
            payload,
            contact: found.contact,
            livemode: row.env == Env::Live,
            chain: None,
            missed: None,
        }
    }
}

/// Looks for what an automation fires now. `None` if it is not due.
pub(super) fn look(read: &mut Read, around: &Surroundings, id: AutomationId) -> Result<Option<Found>> {
    let now = read.now();
    let due = automations::table.find(id).filter(automations::next_fire_at.le(now));
    let row: Option<AutomationRow> =
        due.select(AutomationRow::as_select()).get_result(read.connection()).optional()?;
    let Some(row) = row.filter(|row| row.status == AutomationStatus::On) else { return Ok(None) };
    let Some(window) = Window::of(&Settings::read(row.trigger_type, &row.trigger_config.parse()?)?)? else {
        return Ok(None);
    };
    let clock = Clock::of(read, &row)?;
    let began = row.active_from.into_iter().chain(row.enabled_at).max().unwrap_or(row.created_at);
    let (since, until) = (clock.since.unwrap_or(began), clock.until.unwrap_or(now));
    let (first, last) = window.rule.candidates(since, until);
    let days = DateWindow { field: &window.field, first, last };
    let (set, after) = (window.set, clock.place.as_deref());
    let records = window.keeper(around)?.within(read, row.workspace_id, set, days, after, MOST)?;
    let zone = around.business.time_zone(read, row.workspace_id)?;
    Ok(Some(Found { row, window, zone, since, until, records }))
}

impl Found {
    /// Fires what was found, unless another process has done so or the automation has changed.
    pub(super) fn fire(&self, tx: &mut Tx, around: &Surroundings, matching: &Matching) -> Result<()> {
        let same = automations::table
            .find(self.row.id)
            .filter(automations::next_fire_at.eq(self.row.next_fire_at))
            .filter(automations::version.eq(self.row.version));
        let row: Option<AutomationRow> = for_update_skip_locked(same.select(AutomationRow::as_select()))
            .load(tx.connection())?
            .into_iter()
            .next();
        let Some(row) = row.filter(|row| row.status == AutomationStatus::On) else { return Ok(()) };
        let mut clock = Clock::of(tx, &row)?;
        // A window that another process has fired in the meantime begins elsewhere.
        if clock.since.is_some_and(|since| since != self.since) {
            return Ok(());
        }
        for found in self.records.iter().filter(|found| self.fires(found)) {
            consider(tx, matching, &row, &self.window.occurrence(&row, found))?;
        }
        let now = tx.now();
        let next = if self.records.len() < MOST {
            (clock.since, clock.until, clock.place) = (Some(self.until), None, None);
            within(&row, Some(self.window.next_look(tx, around, row.workspace_id, self.until)?))
        } else {
            let place = self.records.last().map(|last| last.place.clone());
            (clock.since, clock.until, clock.place) = (Some(self.since), Some(self.until), place);
            Some(now)
        };
        clock.store(tx, &row)?;
        set_next(tx, row.id, next)
    }

    fn fires(&self, found: &DatedRecord) -> bool {
        let zone = found.time_zone.as_deref().and_then(|name| name.parse().ok());
        let zone = zone.filter(|_| self.window.rule.is_by_contact()).unwrap_or(self.zone);
        DateValue::parse(&found.value).is_some_and(|value| {
            let at = self.window.rule.moment(value, zone);
            self.since < at && at <= self.until
        })
    }
}

/// Sets when the timer of an automation is due next.
pub(super) fn set_next(tx: &mut Tx, id: AutomationId, next: Option<Timestamp>) -> Result<()> {
    diesel::update(automations::table.find(id))
        .set(automations::next_fire_at.eq(next))
        .execute(tx.connection())?;
    Ok(())
}
