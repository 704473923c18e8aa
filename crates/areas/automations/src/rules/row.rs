//! The row of an automation.

use super::policy::Policy;
use crate::schema::automations;
use crate::triggers::TriggerType;
use diesel::prelude::*;
use model::{AutomationId, Env, JsonText, KeyId, Result, Scope, Timestamp, WorkspaceId, text_enum};
use store::{Read, Tx};

text_enum! {
    /// Whether an automation fires.
    pub enum AutomationStatus {
        /// It is switched off.
        Off = "off",
        /// It is switched on.
        On = "on",
        /// The service switched it off, for the reason in `suspended_reason`.
        Suspended = "suspended",
    }
}

text_enum! {
    /// Why the service suspended an automation.
    pub enum SuspendedReason {
        /// It kept causing what fires it.
        Loop = "loop",
        /// It fired much more often than usual.
        Flood = "flood",
        /// What it started nearly always failed.
        Errors = "errors",
        /// What it starts was deleted or switched off.
        TargetInactive = "target_inactive",
        /// The key that changed it last was revoked, or lacks a scope that the automation needs.
        KeyLost = "key_lost",
    }
}

text_enum! {
    /// What an automation starts.
    pub enum TargetType {
        /// A run of a flow.
        Flow = "flow",
        /// A run of an agent.
        Agent = "agent",
        /// A call of a function.
        Function = "function",
    }
}

impl TargetType {
    /// The scope that starting it needs.
    pub(crate) fn scope(self) -> Scope {
        match self {
            Self::Flow => Scope::AutomationsExecute,
            Self::Agent => Scope::RunsExecute,
            Self::Function => Scope::FunctionsWrite,
        }
    }
}

/// A row of `automations`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = automations, treat_none_as_null = true)]
pub(crate) struct AutomationRow {
    #[diesel(skip_insertion)]
    pub(crate) id: AutomationId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) status: AutomationStatus,
    pub(crate) suspended_reason: Option<SuspendedReason>,
    pub(crate) trigger_type: TriggerType,
    /// JSON of the settings of the trigger.
    pub(crate) trigger_config: JsonText,
    /// JSON of a condition. `None` always holds.
    pub(crate) conditions: Option<JsonText>,
    pub(crate) target_type: TargetType,
    pub(crate) target_id: i64,
    /// JSON of an object of templates.
    pub(crate) target_input: JsonText,
    /// JSON of [`Policy`].
    pub(crate) policy: JsonText,
    pub(crate) active_from: Option<Timestamp>,
    pub(crate) active_until: Option<Timestamp>,
    /// The key for which it acts: the one that changed it last.
    pub(crate) key_id: KeyId,
    pub(crate) lineage_id: KeyId,
    pub(crate) env: Env,
    /// When it was switched on last.
    pub(crate) enabled_at: Option<Timestamp>,
    /// When its timer is due, if its trigger is a timer and it is on.
    pub(crate) next_fire_at: Option<Timestamp>,
    #[diesel(skip_update)]
    pub(crate) last_fired_at: Option<Timestamp>,
    pub(crate) metadata: JsonText,
    pub(crate) version: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

operation::resource! {
    AutomationRow, automations, AutomationId, "automation";
    unique "name": name;
    at most 1000 "automations per workspace";
}

impl AutomationRow {
    /// Returns whether it can fire at a moment.
    pub(crate) fn is_active(&self, now: Timestamp) -> bool {
        self.status == AutomationStatus::On
            && self.active_from.is_none_or(|from| from <= now)
            && self.active_until.is_none_or(|until| now < until)
    }

    /// Its policy.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub(crate) fn policy(&self) -> Result<Policy> {
        self.policy.parse()
    }

    /// Loads the automations of a workspace that are switched on, in the order of their ids.
    pub(crate) fn switched_on(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<Self>> {
        Ok(automations::table
            .filter(automations::workspace_id.eq(workspace))
            .filter(automations::status.eq(AutomationStatus::On))
            .order(automations::id)
            .select(Self::as_select())
            .load(read.connection())?)
    }

    /// Notes when it fired last.
    pub(crate) fn note_fired(tx: &mut Tx, id: AutomationId) -> Result<()> {
        let now = tx.now();
        diesel::update(automations::table.find(id))
            .set(automations::last_fired_at.eq(now))
            .execute(tx.connection())?;
        Ok(())
    }
}
