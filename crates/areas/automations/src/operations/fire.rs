//! Firing by a request, and ending a flood.

use crate::dispatch;
use crate::firings::model::FiringDetail;
use crate::firings::row::{FiringReason, FiringStatus, discard_held, held};
use crate::matching::{Matching, consider_rule};
use crate::occurrence::Occurrence;
use crate::rules::compiled::Rule;
use crate::rules::row::{AutomationRow, AutomationStatus};
use crate::triggers::TriggerType;
use crate::triggers::compiled::Settings;
use fields::json_schema::Schema;
use model::{AutomationId, Caller, Code, ContactId, Error, Result, text_enum};
use operation::{Body, Json, Path, Resource, State, operation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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
    let contact = named_contact(tx, &matching.0, &row, fire.contact_id)?;
    let occurrence = Occurrence {
        key: format!("request:{}", caller.request),
        event: None,
        kind: TriggerType::Manual.as_str().to_owned(),
        payload: Value::Object(data),
        contact,
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

/// Finds the contact that a request names, or the one into which it was merged.
///
/// # Errors
/// `validation_error` about `contact_id`.
pub(super) fn named_contact(
    read: &mut Read,
    matching: &Matching,
    row: &AutomationRow,
    id: Option<ContactId>,
) -> Result<Option<ContactId>> {
    let Some(id) = id else { return Ok(None) };
    let found = matching.reading.contact(read, row.workspace_id, id)?;
    let missing = || Error::invalid("contact_id", "must be the id of a contact of the workspace");
    Ok(Some(found.ok_or_else(missing)?.id))
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
