//! Firing by a request, ending a flood, and asking whether given data would fire.

use crate::dispatch;
use crate::firings::model::FiringDetail;
use crate::firings::row::{FiringReason, FiringStatus, discard_held, held};
use crate::matching::{Matching, consider_rule, judge};
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::rules::row::{AutomationRow, AutomationStatus};
use crate::triggers::compiled::Settings;
use crate::triggers::fits::fit;
use crate::triggers::{Source, TriggerType};
use fields::json_schema::Schema;
use model::{AutomationId, Caller, Code, ContactId, Error, JsonText, Result, text_enum};
use operation::{Body, Json, Path, Resource, State, operation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{Read, Tx};
use utoipa::ToSchema;

text_enum! {
    /// What becomes of firings that are held.
    #[schema(as = AutomationHeldAction)]
    pub enum HeldAction {
        /// They start the target.
        Release = "release",
        /// They are discarded.
        Discard = "discard",
    }
}

/// How to fire an automation.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TriggerAutomation, example = json!({ "data": { "order": "4711" } }))]
pub struct FireAutomation {
    /// The data: `$trigger`. Of a `manual` trigger with an `input_schema` it must fit the schema.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    data: Option<Map<String, Value>>,
    /// The contact whom it is about.
    #[serde(default)]
    contact_id: Option<ContactId>,
    /// What becomes of the firings that are held, because there were many more of them than usual. Nothing else is fired.
    #[serde(default)]
    held: Option<HeldAction>,
}

/// What a request to fire an automation did.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "object": "automation_trigger", "released": 0, "discarded": 0 }))]
pub struct AutomationFired {
    /// Always `automation_trigger`.
    pub object: &'static str,
    /// The firing. `null` with `held`.
    pub execution: Option<FiringDetail>,
    /// The number of held firings that start the target now.
    pub released: i64,
    /// The number of held firings that were discarded.
    pub discarded: i64,
}

/// Fire it now with given data
///
/// Fires an automation that is on, whatever its trigger is, with your data. Its conditions and its policy decide as for any other
/// occurrence; the execution in the response says what became of it. Send an `Idempotency-Key` so that a repetition does not fire it
/// twice. With `held` it releases or discards the firings that a flood has held.
#[operation(post "/automations/{automationId}/trigger", scope = "automations:execute")]
pub fn trigger_automation(
    tx: &mut Tx,
    caller: &Caller,
    Path(automation_id): Path<AutomationId>,
    Body(fire): Body<FireAutomation>,
    matching: State<Matching>,
) -> Result<Json<AutomationFired>> {
    let row = AutomationRow::find(tx, caller.workspace_id(), &automation_id)?;
    if row.status != AutomationStatus::On {
        let message = "The automation is not on. Switch it on first.";
        return Err(Error::new(Code::InvalidState, message));
    }
    if let Some(action) = fire.held {
        if fire.data.is_some() || fire.contact_id.is_some() {
            return Err(Error::invalid("held", "must not be given together with `data` or `contact_id`"));
        }
        return end_flood(tx, &row, action);
    }
    let rule = Rule::of(&row)?;
    let data = fire.data.unwrap_or_default();
    expect_input(&rule, &data)?;
    if let Some(id) = fire.contact_id {
        expect_contact(tx, &matching.0, &row, id)?;
    }
    let occurrence = Occurrence {
        key: format!("request:{}", caller.request),
        event: None,
        kind: TriggerType::Manual.as_str().to_owned(),
        payload: Value::Object(data),
        contact: fire.contact_id,
        livemode: caller.livemode(),
        chain: caller.chain.clone(),
        missed: None,
    };
    let firing = consider_rule(tx, &matching.0, &rule, &occurrence)?;
    Ok(Json(AutomationFired {
        object: "automation_trigger",
        execution: Some(firing.detail()?),
        released: 0,
        discarded: 0,
    }))
}

fn expect_contact(read: &mut Read, matching: &Matching, row: &AutomationRow, id: ContactId) -> Result<()> {
    match matching.reading.contact(read, row.workspace_id, id)? {
        Some(_) => Ok(()),
        None => Err(Error::invalid("contact_id", "must be the id of a contact of the workspace")),
    }
}

/// Checks data against the schema of a `manual` trigger.
fn expect_input(rule: &Rule, data: &Map<String, Value>) -> Result<()> {
    let Settings::Manual(manual) = &rule.settings else { return Ok(()) };
    let Some(schema) = &manual.input_schema else { return Ok(()) };
    match Schema::new(schema.clone()).mismatch(&Value::Object(data.clone())) {
        Some(mismatch) => Err(Error::invalid("data", mismatch)),
        None => Ok(()),
    }
}

/// Starts or discards the firings that are held.
fn end_flood(tx: &mut Tx, row: &AutomationRow, action: HeldAction) -> Result<Json<AutomationFired>> {
    let (mut released, mut discarded) = (0, 0);
    match action {
        HeldAction::Discard => discarded = discard_held(tx, row.id)?,
        HeldAction::Release => {
            let now = tx.now();
            for before in held(tx, row.id)? {
                let mut firing = before.clone();
                firing.status = FiringStatus::Pending;
                firing.reason = None::<FiringReason>;
                firing.due_at = Some(now);
                firing.store(&before, tx)?;
                dispatch::enqueue(tx, &firing, now)?;
                released += 1;
            }
        }
    }
    Ok(Json(AutomationFired { object: "automation_trigger", execution: None, released, discarded }))
}

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
    if let Some(id) = test.contact_id {
        expect_contact(read, &matching.0, &row, id)?;
    }
    let data = Value::Object(test.data.unwrap_or_default());
    let entry = row.trigger_type.entry();
    let (kind, fitting) = match entry.source {
        Source::Events(kinds) => {
            let first = match &rule.settings {
                Settings::Custom(custom) => custom.name.as_str(),
                _ => kinds.last().copied().unwrap_or_default(),
            };
            let kind = test.event_type.unwrap_or_else(|| first.to_owned());
            let fitting = fit(row.trigger_type, &rule.settings, &kind, &data);
            (kind, fitting.map(|fit| (fit.payload, fit.contact)))
        }
        Source::Messages => {
            let contact = data.get("contact_id").and_then(Value::as_i64).map(ContactId);
            (
                row.trigger_type.as_str().to_owned(),
                message_fits(&rule, &data).then(|| (data.clone(), contact)),
            )
        }
        Source::Timer | Source::Requests => {
            let contact = data.get("contact_id").and_then(Value::as_i64).map(ContactId);
            (row.trigger_type.as_str().to_owned(), Some((data.clone(), contact)))
        }
    };
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
        contact: test.contact_id.or(contact),
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
        let input = dispatch::input(read, &matching.0.reading, &row, judged.contact, &occurrence.payload)?;
        match input {
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

/// Whether the text in the data fits a trigger by messages.
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
