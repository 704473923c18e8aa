//! Asking whether given data would fire an automation, and why.

use super::fire::named_contact;
use crate::dispatch;
use crate::firings::row::{FiringReason, FiringStatus};
use crate::matching::{Matching, judge};
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::rules::row::AutomationRow;
use crate::triggers::Source;
use crate::triggers::compiled::Settings;
use crate::triggers::fits::fit;
use model::{AutomationId, Caller, ContactId, JsonText, Result};
use operation::{Body, Json, Path, Resource, State, operation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::Read;
use utoipa::ToSchema;

/// Data with which to test an automation.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TestAutomation, example = json!({ "data": { "contact_id": 1, "changed": { "$stage": { "old": "new", "new": "won" } } } }))]
pub struct TryAutomation {
    /// The data of the occurrence: `$trigger`. `GET /automations/trigger-types` returns a sample for each type.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    data: Option<Map<String, Value>>,
    /// The type of the event, if events of several types can fire it.
    #[schema(max_length = 100)]
    #[serde(default)]
    event_type: Option<String>,
    /// The contact whom it is about. That of the data if not given.
    #[serde(default)]
    contact_id: Option<ContactId>,
}

/// Whether data would fire an automation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = AutomationTest, example = json!({
    "object": "automation_test", "trigger_fits": true, "would_fire": false, "reason": "condition_false", "is_on": true,
    "evaluation": { "left": "$contact.country", "op": "eq", "right": "BR", "left_value": "ES", "holds": false },
}))]
pub struct Tried {
    /// Always `automation_test`.
    pub object: &'static str,
    /// Whether the data fits the trigger.
    pub trigger_fits: bool,
    /// Whether it would fire.
    pub would_fire: bool,
    /// Why it would not.
    pub reason: Option<FiringReason>,
    /// Whether the automation is on, and its period covers this moment. It is tested all the same.
    pub is_on: bool,
    /// The conditions with the values of their parts.
    #[schema(value_type = Option<Object>)]
    pub evaluation: Option<JsonText>,
    /// What a guard or a template saw.
    #[schema(value_type = Option<Object>)]
    pub details: Option<JsonText>,
    /// When it would start the target, if it waits for more occurrences.
    pub due_at: Option<model::Timestamp>,
    /// What the target would be given. `null` where it would not fire.
    #[schema(value_type = Option<Value>)]
    pub input: Option<Value>,
}

/// Say whether given data would fire it and why, without acting
///
/// Evaluates the trigger, the conditions and the policy with your data, whether the automation is on or not. Nothing is written or
/// started.
#[operation(post "/automations/{automationId}/test", scope = "automations:read")]
pub fn test_automation(
    read: &mut Read,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
    Body(test): Body<TryAutomation>,
    matching: State<Matching>,
) -> Result<Json<Tried>> {
    let row = AutomationRow::find(read, caller.workspace_id(), &automation_id)?;
    let (rule, now) = (Rule::of(&row)?, read.now());
    let named = named_contact(read, &matching.0, &row, test.contact_id)?;
    let data = Value::Object(test.data.unwrap_or_default());
    let (kind, fitting) = fitting(&rule, test.event_type, &data);
    let mut tried = Tried {
        object: "automation_test",
        trigger_fits: fitting.is_some(),
        would_fire: false,
        reason: None,
        is_on: row.is_active(now),
        evaluation: None,
        details: None,
        due_at: None,
        input: None,
    };
    let Some((payload, contact)) = fitting else { return Ok(Json(tried)) };
    let occurrence = Occurrence {
        key: "test".to_owned(),
        event: None,
        kind,
        payload,
        contact: named.or(contact),
        livemode: caller.livemode(),
        chain: None,
        missed: None,
    };
    let judged = judge(read, &matching.0.reading, &rule, &occurrence)?;
    tried.would_fire = judged.status == FiringStatus::Pending;
    tried.reason = judged.reason;
    tried.evaluation = judged.evaluation.as_ref().map(JsonText::of);
    tried.details = judged.details.as_ref().map(JsonText::of);
    tried.due_at = judged.debounce.map(|debounce| debounce.due_at);
    if tried.would_fire {
        match dispatch::input(read, &matching.0.reading, &row, judged.contact, &occurrence.payload)? {
            Ok(input) => tried.input = Some(input),
            Err(message) => {
                tried.would_fire = false;
                tried.reason = Some(FiringReason::TemplateError);
                tried.details = Some(JsonText::of(&json!({ "param": "target.input", "error": message })));
            }
        }
    }
    Ok(Json(tried))
}

/// Returns `$trigger` for the data, and the type of the event. `None` if the data does not fit the trigger.
fn fitting(
    rule: &Rule,
    event_type: Option<String>,
    data: &Value,
) -> (String, Option<(Value, Option<ContactId>)>) {
    let kind = rule.row.trigger_type;
    let contact = data.get("contact_id").and_then(Value::as_i64).map(ContactId);
    let fits = match kind.entry().source {
        Source::Events(kinds) => {
            let usual = match &rule.settings {
                Settings::Custom(custom) => custom.name.as_str(),
                _ => kinds.last().copied().unwrap_or_default(),
            };
            let event = event_type.unwrap_or_else(|| usual.to_owned());
            let fitting = fit(kind, &rule.settings, &event, data);
            return (event, fitting.map(|fit| (fit.payload, fit.contact)));
        }
        Source::Messages => message_fits(rule, data),
        Source::Timer | Source::Requests => true,
    };
    (kind.as_str().to_owned(), fits.then(|| (data.clone(), contact)))
}

/// Returns whether the text in the data fits a trigger by messages.
fn message_fits(rule: &Rule, data: &Value) -> bool {
    let text = data.get("text").and_then(Value::as_str).unwrap_or_default();
    match &rule.settings {
        Settings::Keyword(_, words) => words.longest(text).is_some(),
        Settings::Message(settings) => {
            !settings.first_only || data.get("is_first").and_then(Value::as_bool) == Some(true)
        }
        _ => false,
    }
}
