//! Rows of `automation_timers`: what automations wait for by the clock.

use crate::rules::row::AutomationRow;
use crate::schema::automation_timers as table;
use diesel::prelude::*;
use model::{AutomationId, ContactId, Error, JsonText, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use store::{OnConflict, Read, Rows, Tx, each, for_update_skip_locked};

/// The last moment that RFC 3339 can represent: a row that is due then is found through its automation.
const NEVER: i64 = 253_402_300_799_999;
/// The key of the row with the place of a clock.
const CLOCK: &str = "clock";

/// A row.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable)]
#[diesel(table_name = table)]
pub(crate) struct TimerRow {
    pub(crate) automation_id: AutomationId,
    /// What it waits for: `reply:` and a contact, `idle:` and a conversation, `errors`, or `clock`.
    pub(crate) key: String,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) contact_id: Option<ContactId>,
    /// When the wait began.
    pub(crate) since: Timestamp,
    pub(crate) due_at: Timestamp,
    /// JSON.
    pub(crate) details: JsonText,
    /// JSON of [`model::Chain`]: the place of what the row leads to.
    pub(crate) chain: Option<JsonText>,
}

impl TimerRow {
    /// Inserts rows, or puts them in the place of those with the same keys.
    pub(crate) fn put(tx: &mut Tx, rows: &[Self]) -> Result<()> {
        let change = OnConflict::Update {
            key: &["automation_id", "key"],
            set: "contact_id = excluded.contact_id, since = excluded.since, due_at = excluded.due_at, \
                  details = excluded.details, chain = excluded.chain",
        };
        Rows::of(rows)
            .big_int("automation_id", |row| row.automation_id)
            .text("key", |row| &row.key)
            .big_int("workspace_id", |row| row.workspace_id)
            .big_int("contact_id", |row| row.contact_id)
            .time("since", |row| row.since)
            .time("due_at", |row| row.due_at)
            .text("details", |row| &row.details)
            .text("chain", |row| row.chain.as_ref())
            .insert_or(tx, "automation_timers AS t", change)?;
        Ok(())
    }

    /// Inserts the row unless there is one with its key.
    pub(crate) fn add(&self, tx: &mut Tx) -> Result<bool> {
        let added = each!(tx.connection(), |connection| diesel::insert_into(table::table)
            .values(self)
            .on_conflict_do_nothing()
            .execute(connection))?;
        Ok(added == 1)
    }

    /// Returns and locks rows that are due, the longest overdue first. Skips rows that another transaction has locked.
    pub(crate) fn due(tx: &mut Tx, most: i64) -> Result<Vec<Self>> {
        let now = tx.now();
        let due = table::table.filter(table::due_at.le(now)).order((
            table::due_at,
            table::automation_id,
            table::key,
        ));
        let due = due.limit(most).select(Self::as_select());
        Ok(for_update_skip_locked(due).load(tx.connection())?)
    }

    /// Returns whether a row is due.
    pub(crate) fn is_any_due(read: &mut Read) -> Result<bool> {
        let due = table::table.filter(table::due_at.le(read.now()));
        Ok(diesel::select(diesel::dsl::exists(due)).get_result(read.connection())?)
    }

    /// Deletes a row and returns it.
    pub(crate) fn take(tx: &mut Tx, automation: AutomationId, key: &str) -> Result<Option<Self>> {
        let row = table::table.find((automation, key));
        let row = row.select(Self::as_select()).get_result(tx.connection()).optional()?;
        if row.is_some() {
            delete(tx, automation, &[key])?;
        }
        Ok(row)
    }

    /// Deletes the row.
    pub(crate) fn delete(&self, tx: &mut Tx) -> Result<()> {
        delete(tx, self.automation_id, &[&self.key])
    }

    /// Makes the row due later.
    pub(crate) fn postpone(&self, tx: &mut Tx, until: Timestamp) -> Result<()> {
        diesel::update(table::table.find((self.automation_id, &self.key)))
            .set(table::due_at.eq(until))
            .execute(tx.connection())?;
        Ok(())
    }
}

/// Deletes rows of an automation.
pub(crate) fn delete(tx: &mut Tx, automation: AutomationId, keys: &[&str]) -> Result<()> {
    diesel::delete(table::table.filter(table::automation_id.eq(automation)))
        .filter(table::key.eq_any(keys))
        .execute(tx.connection())?;
    Ok(())
}

/// Deletes all rows of an automation.
pub(crate) fn forget(tx: &mut Tx, automation: AutomationId) -> Result<()> {
    diesel::delete(table::table.filter(table::automation_id.eq(automation))).execute(tx.connection())?;
    Ok(())
}

/// Makes the rows of an automation due so many minutes after they began, because its rule has changed.
pub(crate) fn rebase(tx: &mut Tx, automation: AutomationId, minutes: i64) -> Result<()> {
    const MOST: i64 = 1_000;
    let mut after = String::new();
    loop {
        let rows: Vec<TimerRow> = table::table
            .filter(table::automation_id.eq(automation))
            .filter(table::key.gt(&after))
            .order(table::key)
            .limit(MOST)
            .select(TimerRow::as_select())
            .load(tx.connection())?;
        let Some(last) = rows.last() else { return Ok(()) };
        after.clone_from(&last.key);
        let waiting = |row: &&TimerRow| row.key.starts_with("reply:") || row.key.starts_with("idle:");
        let moved: Vec<TimerRow> = rows
            .iter()
            .filter(waiting)
            .map(|row| TimerRow { due_at: row.since.plus_seconds(minutes.saturating_mul(60)), ..row.clone() })
            .collect();
        TimerRow::put(tx, &moved)?;
    }
}

/// The place of a clock: what the next moment of an automation does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// The rule to which it belongs. If the automation has another one, the place means nothing.
    pub(crate) rule: String,
    /// A slot that waits for the end of an earlier run, or could not be fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<Timestamp>,
    /// All dates up to here have fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// The end of a window of which a part has fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    /// The place behind which that window goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
}

impl Clock {
    /// Finds the place that belongs to the present rule of an automation; an empty one if there is none.
    pub(crate) fn of(read: &mut Read, row: &AutomationRow) -> Result<Self> {
        let stored: Option<JsonText> = table::table
            .find((row.id, CLOCK))
            .select(table::details)
            .get_result(read.connection())
            .optional()?;
        let stored: Option<Self> = stored.and_then(|stored| stored.parse().ok());
        let fresh = Self::fresh(row);
        Ok(stored.filter(|clock| clock.rule == fresh.rule).unwrap_or(fresh))
    }

    /// An empty place.
    pub(crate) fn fresh(row: &AutomationRow) -> Self {
        Self { rule: rule_of(row), ..Self::default() }
    }

    /// Stores the place.
    pub(crate) fn store(&self, tx: &mut Tx, row: &AutomationRow) -> Result<()> {
        if *self == Self::fresh(row) {
            return delete(tx, row.id, &[CLOCK]);
        }
        let timer = TimerRow {
            automation_id: row.id,
            key: CLOCK.to_owned(),
            workspace_id: row.workspace_id,
            contact_id: None,
            since: tx.now(),
            due_at: Timestamp::from_millis(NEVER),
            details: JsonText::of(self),
            chain: None,
        };
        TimerRow::put(tx, &[timer])
    }
}

/// Describes the parts of an automation on which its clock depends.
fn rule_of(row: &AutomationRow) -> String {
    let moment = |at: Option<Timestamp>| at.map_or_else(String::new, Timestamp::rfc3339);
    let [from, until, enabled] = [row.active_from, row.active_until, row.enabled_at].map(moment);
    format!("{} {} {from} {until} {enabled}", row.trigger_type.as_str(), row.trigger_config.as_str())
}

/// The error of settings that do not fit their trigger.
pub(crate) fn damaged() -> Error {
    Error::internal("the settings of a timer are damaged")
}

/// Returns a moment at which the automation still fires.
pub(crate) fn within(row: &AutomationRow, next: Option<Timestamp>) -> Option<Timestamp> {
    next.filter(|next| row.active_until.is_none_or(|until| *next < until))
}
