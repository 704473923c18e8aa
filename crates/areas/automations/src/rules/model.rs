//! Automations as requests and responses have them.

use super::policy::Policy;
use super::row::{AutomationRow, AutomationStatus, SuspendedReason, TargetType};
use crate::triggers::TriggerType;
use model::{AutomationId, Env, JsonText, KeyId, Metadata, Patch, Result, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// What fires an automation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationTrigger, example = json!({ "type": "contact.updated", "config": { "fields": ["$stage"], "to": "won" } }))]
pub struct Trigger {
    /// The type.
    #[serde(rename = "type")]
    pub kind: TriggerType,
    /// The settings of the type. `GET /automations/trigger-types` returns their schema.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub config: Map<String, Value>,
}

/// What an automation starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AutomationTarget, example = json!({ "type": "flow", "id": 1, "input": { "name": "{{ $contact.name }}" } }))]
pub struct Target {
    /// The type.
    #[serde(rename = "type")]
    pub kind: TargetType,
    /// The id of the flow, agent or function.
    #[schema(minimum = 1)]
    pub id: i64,
    /// The input. Texts in it are templates, which can read `$trigger`, `$contact`, `$vars` and `$now`. The data of the occurrence
    /// if not given. An agent is given the text in `text`, or all of it as JSON.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub input: Option<Map<String, Value>>,
}

/// An automation: a trigger with conditions, and what it starts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Congratulate", "description": null, "status": "on", "suspended_reason": null,
    "conditions": { "left": "$contact.country", "op": "eq", "right": "BR" }, "livemode": true, "version": 1,
}))]
pub struct Automation {
    /// The id of the automation.
    pub id: AutomationId,
    /// Always `automation`.
    pub object: &'static str,
    /// The name, unique in the workspace.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The state.
    pub status: AutomationStatus,
    /// Why the service suspended it.
    pub suspended_reason: Option<SuspendedReason>,
    /// What fires it.
    pub trigger: Trigger,
    /// Conditions that must hold. `null` always holds.
    #[schema(value_type = Option<Value>)]
    pub conditions: Option<JsonText>,
    /// What it starts.
    pub target: Target,
    /// How often it fires, and for whom.
    pub policy: Policy,
    /// From when on it fires.
    pub active_from: Option<Timestamp>,
    /// Until when it fires.
    pub active_until: Option<Timestamp>,
    /// The key for which it acts: the one that changed it last.
    pub key_id: KeyId,
    /// Whether what it starts is real. An automation that a test key changed last runs in test mode only.
    pub livemode: bool,
    /// When it was switched on last.
    pub enabled_at: Option<Timestamp>,
    /// When its timer is due, if its trigger is one.
    pub next_fire_at: Option<Timestamp>,
    /// When it last started what it starts.
    pub last_fired_at: Option<Timestamp>,
    /// Your own key-value data.
    pub metadata: Metadata,
    /// The number of changes. Send it as `version` or `If-Match` with a change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// An automation to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Congratulate", "trigger": { "type": "contact.updated", "config": { "fields": ["$stage"], "to": "won" } },
    "target": { "type": "agent", "id": 1, "input": { "text": "Congratulate {{ $contact.name }}." } },
}))]
pub struct NewAutomation {
    /// The name, unique in the workspace.
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) name: String,
    /// What it is for.
    #[schema(max_length = 2000)]
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// What fires it.
    pub(crate) trigger: Trigger,
    /// Conditions that must hold: `{"left": "$contact.country", "op": "eq", "right": "BR"}`, `{"and": […]}`, `{"or": […]}`,
    /// `{"not": …}`, or an expression. They can read `$trigger`, `$contact`, `$vars` and `$now`.
    #[schema(value_type = Option<Value>)]
    #[serde(default)]
    pub(crate) conditions: Option<Value>,
    /// What it starts.
    pub(crate) target: Target,
    /// How often it fires, and for whom.
    #[serde(default)]
    pub(crate) policy: Policy,
    /// From when on it fires.
    #[serde(default)]
    pub(crate) active_from: Option<Timestamp>,
    /// Until when it fires.
    #[serde(default)]
    pub(crate) active_until: Option<Timestamp>,
    /// Whether it is switched on at once.
    #[serde(default)]
    pub(crate) enable: bool,
    /// Your own key-value data.
    #[serde(default)]
    pub(crate) metadata: Option<Metadata>,
}

/// A change of an automation. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "description": "For all who bought." }))]
pub struct AutomationPatch {
    /// The name, unique in the workspace.
    #[schema(min_length = 1, max_length = 200)]
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// What it is for. `null` removes it.
    #[schema(value_type = Option<String>, max_length = 2000)]
    #[serde(default)]
    pub(crate) description: Patch<String>,
    /// What fires it.
    #[serde(default)]
    pub(crate) trigger: Option<Trigger>,
    /// Conditions that must hold. `null` removes them.
    #[schema(value_type = Option<Value>)]
    #[serde(default)]
    pub(crate) conditions: Patch<Value>,
    /// What it starts.
    #[serde(default)]
    pub(crate) target: Option<Target>,
    /// How often it fires, and for whom.
    #[serde(default)]
    pub(crate) policy: Option<Policy>,
    /// From when on it fires. `null` removes it.
    #[schema(value_type = Option<Timestamp>)]
    #[serde(default)]
    pub(crate) active_from: Patch<Timestamp>,
    /// Until when it fires. `null` removes it.
    #[schema(value_type = Option<Timestamp>)]
    #[serde(default)]
    pub(crate) active_until: Patch<Timestamp>,
    /// Your own key-value data, which replaces what is stored.
    #[serde(default)]
    pub(crate) metadata: Option<Metadata>,
    /// The expected version. If the automation has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(crate) version: Option<i64>,
}

/// How to switch an automation on.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EnableAutomation, example = json!({ "version": 2 }))]
pub struct SwitchOn {
    /// The expected version. If the automation has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(crate) version: Option<i64>,
}

/// How to switch an automation off.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DisableAutomation, example = json!({ "cancel_runs": true }))]
pub struct SwitchOff {
    /// Whether to cancel the runs of flows that it has started and that have not ended.
    #[serde(default)]
    pub(crate) cancel_runs: bool,
    /// The expected version. If the automation has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(crate) version: Option<i64>,
}

/// Which automations to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct AutomationQuery {
    /// Only automations in this state.
    #[serde(default)]
    pub(crate) status: Option<AutomationStatus>,
    /// Only automations with this type of trigger.
    #[serde(default)]
    pub(crate) trigger_type: Option<TriggerType>,
}

impl AutomationRow {
    /// Parses the target.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(crate) fn target(&self) -> Result<Target> {
        Ok(Target { kind: self.target_type, id: self.target_id, input: self.target_input.parse()? })
    }

    /// The response.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(crate) fn automation(self) -> Result<Automation> {
        Ok(Automation {
            id: self.id,
            object: "automation",
            trigger: Trigger { kind: self.trigger_type, config: self.trigger_config.parse()? },
            target: self.target()?,
            policy: self.policy()?,
            name: self.name,
            description: self.description,
            status: self.status,
            suspended_reason: self.suspended_reason,
            conditions: self.conditions,
            active_from: self.active_from,
            active_until: self.active_until,
            key_id: self.key_id,
            livemode: self.env == Env::Live,
            enabled_at: self.enabled_at,
            next_fire_at: self.next_fire_at,
            last_fired_at: self.last_fired_at,
            metadata: self.metadata.parse()?,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}
