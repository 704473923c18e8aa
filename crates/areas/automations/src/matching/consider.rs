//! The one way in which an occurrence becomes a firing.

use super::judge::judge;
use super::judgement::Judgement;
use super::marks;
use super::rule_sets::RuleSets;
use crate::conditions::Reading;
use crate::dispatch;
use crate::firings::row::{FiringRow, FiringStatus};
use crate::guards;
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::rules::row::AutomationRow;
use model::{AutomationId, Chain, Env, EventId, FiringId, JsonText, Result};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::Tx;

/// The most bytes of the data that a firing keeps.
const LARGEST_PAYLOAD: usize = 256 * 1024;

/// Services of matching. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Matching {
    pub(crate) reading: Reading,
    pub(crate) rules: RuleSets,
}

/// Makes an occurrence a firing: pending, held, or skipped with the reason. The automation must be active. An occurrence that
/// was considered before returns the firing that it has.
///
/// # Errors
/// When the database fails, or what is stored is damaged.
pub(crate) fn consider(
    tx: &mut Tx,
    matching: &Matching,
    automation: &AutomationRow,
    occurrence: &Occurrence,
) -> Result<FiringRow> {
    consider_rule(tx, matching, &Rule::of(automation)?, occurrence)
}

/// The same for an automation that is compiled.
pub(crate) fn consider_rule(
    tx: &mut Tx,
    matching: &Matching,
    rule: &Rule,
    occurrence: &Occurrence,
) -> Result<FiringRow> {
    lock(tx, [rule])?;
    consider_locked(tx, matching, rule, occurrence)
}

/// Locks the automations whose firings depend on earlier ones, in the order of their ids.
///
/// A transaction that considers several automations locks all of them here first. In the order of priorities or words, two
/// transactions could wait for each other.
pub(crate) fn lock<'a>(tx: &mut Tx, rules: impl IntoIterator<Item = &'a Rule>) -> Result<()> {
    let remembering = rules.into_iter().filter(|rule| rule.policy.remembers());
    let ids: BTreeSet<AutomationId> = remembering.map(|rule| rule.row.id).collect();
    for id in ids {
        tx.lock(&lock_name(id))?;
    }
    Ok(())
}

fn lock_name(automation: AutomationId) -> String {
    format!("firings of automation {automation}")
}

/// The same for an automation that [`lock`] has locked.
pub(crate) fn consider_locked(
    tx: &mut Tx,
    matching: &Matching,
    rule: &Rule,
    occurrence: &Occurrence,
) -> Result<FiringRow> {
    let automation = rule.row.id;
    if let Some(known) = FiringRow::of_occurrence(tx, automation, &occurrence.key)? {
        return Ok(known);
    }
    let judgement = judge(tx, &matching.reading, rule, occurrence)?;
    let row = firing(tx, rule, occurrence, &judgement);
    if !row.insert(tx)? {
        // Another transaction was faster.
        let known = FiringRow::of_occurrence(tx, automation, &occurrence.key)?;
        return known.ok_or_else(|| model::Error::internal("a firing that exists is gone"));
    }
    if row.status.is_open() {
        marks::note(tx, rule, occurrence, &judgement)?;
    }
    guards::stop_loop(tx, rule, &row)?;
    if let Some(due) = row.due_at {
        dispatch::enqueue(tx, &row, due)?;
    }
    Ok(row)
}

fn firing(tx: &mut Tx, rule: &Rule, occurrence: &Occurrence, judgement: &Judgement) -> FiringRow {
    let (now, random) = (tx.now(), tx.random());
    let chain = occurrence.chain.clone();
    let chain = chain.unwrap_or_else(|| Chain::starting(EventId::new(now, &*random))).through(rule.row.id);
    let due = judgement.debounce.as_ref().map_or(now, |debounce| debounce.due_at);
    let status = judgement.status;
    FiringRow {
        number: 0,
        id: FiringId::new(now, &*random),
        workspace_id: rule.row.workspace_id,
        automation_id: rule.row.id,
        occurrence: occurrence.key.clone(),
        event_id: occurrence.event.clone(),
        kind: occurrence.kind.clone(),
        contact_id: judgement.contact.or(occurrence.contact),
        livemode: occurrence.livemode && rule.row.env == Env::Live,
        status,
        reason: judgement.reason,
        details: judgement.details.as_ref().map(JsonText::of),
        evaluation: judgement.evaluation.as_ref().map(JsonText::of),
        payload: kept(&occurrence.payload),
        chain: Some(JsonText::of(&chain)),
        debounce_key: judgement.debounce.as_ref().map(|debounce| debounce.key.clone()),
        waiting_since: judgement.debounce.as_ref().map(|debounce| debounce.since),
        due_at: (status == FiringStatus::Pending).then_some(due),
        flow_run_id: None,
        run_id: None,
        invocation_id: None,
        outcome: None,
        error: None,
        created_at: now,
        ended_at: (!status.is_open()).then_some(now),
    }
}

/// The data as the firing keeps it: without its largest members if it is too large.
fn kept(payload: &Value) -> JsonText {
    let whole = JsonText::of(payload);
    let Some(members) = payload.as_object().filter(|_| whole.as_str().len() > LARGEST_PAYLOAD) else {
        return whole;
    };
    let small = members.iter().filter(|(_, value)| value.to_string().len() < 4096).take(100);
    let mut kept: serde_json::Map<String, Value> =
        small.map(|(name, value)| (name.clone(), value.clone())).collect();
    kept.insert("truncated".to_owned(), json!(true));
    JsonText::of(&kept)
}
