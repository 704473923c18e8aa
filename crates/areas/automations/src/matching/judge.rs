//! Whether an occurrence fires an automation, and why not. Nothing is written here: `POST …/test` asks the same.

use super::judgement::{JudgedKeys, Judgement};
use super::marks;
use crate::conditions::{Reading, Values};
use crate::firings::row::{FiringReason, FiringStatus};
use crate::guards;
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use expressions::Template;
use model::Result;
use serde_json::{Value, json};
use store::Read;

/// Judges an occurrence that fits the trigger.
///
/// # Errors
/// When the database fails.
pub(crate) fn judge(
    read: &mut Read,
    reading: &Reading,
    rule: &Rule,
    occurrence: &Occurrence,
) -> Result<Judgement> {
    let mut judgement = Judgement::fires();
    if let Some(reason) = occurrence.missed {
        return Ok(judgement.skip(reason));
    }
    if let Some(halt) = guards::before(read, rule, occurrence)? {
        judgement.details = halt.details;
        return Ok(judgement.skip(halt.reason));
    }
    let workspace = rule.row.workspace_id;
    let contact = match occurrence.contact {
        None => None,
        Some(id) => match reading.contact(read, workspace, id)? {
            Some(card) if !card.is_blocked => Some(card),
            _ => return Ok(judgement.skip(FiringReason::ContactUnavailable)),
        },
    };
    judgement.contact = contact.as_ref().map(|card| card.id);
    if let Some(card) = &contact {
        if !card.autopilot && rule.yields_to_people() {
            return Ok(judgement.skip(FiringReason::HumanActive));
        }
        if card.is_opted_out && rule.policy.skip_opted_out {
            return Ok(judgement.skip(FiringReason::OptedOut));
        }
    }
    let of = (workspace, rule.row.env);
    let values = reading.values(read, of, &occurrence.payload, contact.as_ref(), &rule.references())?;
    if let Some(conditions) = &rule.conditions {
        let verdict = conditions.evaluate(&values.context());
        judgement.evaluation = Some(verdict.tree);
        match verdict.holds {
            Ok(true) => {}
            Ok(false) => return Ok(judgement.skip(FiringReason::ConditionFalse)),
            Err(error) => {
                return Ok(judgement.skip(FiringReason::ConditionError).because(json!({ "error": error })));
            }
        }
    }
    judgement.day_ends_at = Some(values.day_ends_at());
    match keys_of(rule, &values) {
        Ok(keys) => judgement.keys = keys,
        Err(details) => return Ok(judgement.skip(FiringReason::TemplateError).because(details)),
    }
    by_policy(read, rule, judgement)
}

/// Judges an occurrence whose conditions hold by the policy and the flood guard.
fn by_policy(read: &mut Read, rule: &Rule, mut judgement: Judgement) -> Result<Judgement> {
    if let Some(debounce) = &rule.policy.debounce {
        let of_contact =
            || judgement.contact.map_or_else(String::new, |contact| format!("contact:{contact}"));
        let key = judgement.keys.debounce.clone().map_or_else(of_contact, |key| format!("key:{key}"));
        judgement.debounce = Some(marks::debounced(read, rule, debounce, key)?);
    }
    // What takes the place of a firing that waits is let in as that one was.
    let is_new = judgement.debounce.as_ref().is_none_or(|debounce| debounce.replaces.is_none());
    if is_new && let Some(reason) = marks::refusal(read, rule, &judgement)? {
        judgement.debounce = None;
        return Ok(judgement.skip(reason));
    }
    if let Some(halt) = guards::flood(read, rule)? {
        judgement.status = FiringStatus::Held;
        judgement.reason = Some(halt.reason);
        judgement.details = halt.details;
    }
    Ok(judgement)
}

/// Evaluates the keys of a policy.
fn keys_of(rule: &Rule, values: &Values) -> std::result::Result<JudgedKeys, Value> {
    let context = values.context();
    let text = |name: &str, template: Option<&Template>| {
        let text = template.map(|template| template.text(&context)).transpose();
        text.map_err(|failure| json!({ "param": format!("policy.{name}.key"), "error": failure.to_string() }))
    };
    Ok(JudgedKeys {
        dedupe: text("dedupe", rule.keys.dedupe.as_ref())?,
        throttle: text("throttle", rule.keys.throttle.as_ref())?,
        debounce: text("debounce", rule.keys.debounce.as_ref())?,
    })
}
