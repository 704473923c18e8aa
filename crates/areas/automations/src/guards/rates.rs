//! Guards against loops and floods.

use crate::firings::row::{FiringReason, FiringRow, FiringStatus};
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::rules::row::SuspendedReason;
use crate::rules::suspend::suspend;
use crate::schema::automation_firings as table;
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use model::{AutomationId, JsonText, Result, Timestamp};
use serde_json::{Value, json};
use store::{Read, Tx};

/// The longest chain of causes that leads to a firing.
const DEEPEST: u32 = 5;
/// The most firings of an automation for one contact within [`LOOP_SECONDS`].
const LOOP_FIRINGS: i64 = 20;
const LOOP_SECONDS: i64 = 60;
/// So many firings in a minute are no flood, however seldom the automation fires.
const FLOOD_FIRINGS: i64 = 100;
const FLOOD_SECONDS: i64 = 60;
/// A flood is more than this times the usual rate.
const FLOOD_FACTOR: i64 = 10;
/// The usual rate is the mean of so many seconds before the last minute.
const USUAL_SECONDS: i64 = 24 * 3_600;
/// The firings that guards count, as the partial index has them.
const COUNTED: &str = "automation_firings.status IN ('pending', 'dispatched', 'held')";

/// Why a guard does not let an occurrence fire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Halt {
    pub(crate) reason: FiringReason,
    /// What it saw.
    pub(crate) details: Option<Value>,
}

/// Judges an occurrence before its conditions: the chain of causes that led to it, and how often the automation has just fired
/// for the contact.
pub(crate) fn before(read: &mut Read, rule: &Rule, occurrence: &Occurrence) -> Result<Option<Halt>> {
    let details = match &occurrence.chain {
        Some(chain) if chain.depth > DEEPEST => {
            json!({ "guard": "depth", "most": DEEPEST, "depth": chain.depth, "chain": chain })
        }
        Some(chain) if !rule.policy.allow_self_trigger && chain.automations.contains(&rule.row.id) => {
            json!({ "guard": "self_trigger", "depth": chain.depth, "chain": chain })
        }
        _ => match seen_for_contact(read, rule, occurrence)? {
            Some(details) => details,
            None => return Ok(None),
        },
    };
    Ok(Some(Halt { reason: FiringReason::LoopDetected, details: Some(details) }))
}

fn seen_for_contact(read: &mut Read, rule: &Rule, occurrence: &Occurrence) -> Result<Option<Value>> {
    let Some(contact) = occurrence.contact else { return Ok(None) };
    let since = since(read, LOOP_SECONDS, rule.row.enabled_at);
    let twentieth: Option<Timestamp> = counted(rule.row.id, since)
        .filter(table::contact_id.eq(contact))
        .order(table::created_at.desc())
        .offset(LOOP_FIRINGS - 1)
        .select(table::created_at)
        .first(read.connection())
        .optional()?;
    Ok(twentieth.map(|_| {
        json!({
            "guard": "loop", "contact_id": contact, "firings": LOOP_FIRINGS, "seconds": LOOP_SECONDS,
            "chain": occurrence.chain,
        })
    }))
}

/// Suspends an automation whose firing [`before`] has stopped because it fires again and again for one contact.
pub(crate) fn stop_loop(tx: &mut Tx, rule: &Rule, firing: &FiringRow) -> Result<()> {
    let details: Option<Value> = firing.details.as_ref().map(JsonText::parse).transpose()?;
    let is_loop = details.is_some_and(|details| details.get("guard") == Some(&json!("loop")));
    if is_loop && firing.status == FiringStatus::Skipped {
        let row = &rule.row;
        suspend(tx, row.workspace_id, row.id, SuspendedReason::Loop, firing.details.as_ref())?;
    }
    Ok(())
}

/// Judges an occurrence that would fire: whether the automation fires much more often than usual.
pub(crate) fn flood(read: &mut Read, rule: &Rule) -> Result<Option<Halt>> {
    let id = rule.row.id;
    let minute = since(read, FLOOD_SECONDS, None);
    let beyond = |read: &mut Read, most: i64| -> Result<bool> {
        let first: Option<Timestamp> = counted(id, minute)
            .order(table::created_at.desc())
            .offset(most - 1)
            .select(table::created_at)
            .first(read.connection())
            .optional()?;
        Ok(first.is_some())
    };
    if !beyond(read, FLOOD_FIRINGS)? {
        return Ok(None);
    }
    let begin = since(read, USUAL_SECONDS, rule.row.enabled_at);
    let seconds = (minute.seconds() - begin.seconds()).max(FLOOD_SECONDS);
    let before: i64 =
        counted(id, begin).filter(table::created_at.le(minute)).count().get_result(read.connection())?;
    let most = (before.saturating_mul(FLOOD_SECONDS * FLOOD_FACTOR) / seconds).max(FLOOD_FIRINGS);
    if !beyond(read, most)? {
        return Ok(None);
    }
    let usual = before.saturating_mul(FLOOD_SECONDS) / seconds;
    let details = json!({
        "guard": "flood", "most_per_minute": most, "usual_per_minute": usual, "seconds": FLOOD_SECONDS,
    });
    Ok(Some(Halt { reason: FiringReason::Flood, details: Some(details) }))
}

/// The moment so many seconds ago, but not before `earliest`.
fn since(read: &Read, seconds: i64, earliest: Option<Timestamp>) -> Timestamp {
    let since = read.now().plus_seconds(-seconds);
    earliest.map_or(since, |earliest| since.max(earliest))
}

/// The firings that count, after a moment.
#[diesel::dsl::auto_type]
fn counted(automation: AutomationId, since: Timestamp) -> _ {
    let counts: SqlLiteral<Bool> = sql(COUNTED);
    table::table
        .filter(table::automation_id.eq(automation))
        .filter(table::created_at.gt(since))
        .filter(counts)
}
