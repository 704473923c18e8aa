//! Events of automations.

use super::row::SuspendedReason;
use model::{AutomationId, JsonText, Timestamp};
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of an automation.
#[derive(Event)]
#[event(scope = "automations:read", subject = "automation", id = "automation_id")]
pub(crate) enum AutomationEvent<'a> {
    /// The service suspended an automation.
    #[event(name = "automation.suspended")]
    Suspended(AutomationSuspended<'a>),
    /// Nearly all runs that an automation started failed. It is suspended at `suspends_at` if this does not change.
    #[event(name = "automation.warning")]
    Warning(AutomationWarning<'a>),
}

/// An automation was suspended.
#[derive(Serialize, ToSchema)]
pub(crate) struct AutomationSuspended<'a> {
    /// The id of the automation.
    pub(crate) automation_id: AutomationId,
    /// Its name.
    pub(crate) name: String,
    /// Why.
    pub(crate) reason: SuspendedReason,
    /// What was seen, or `null`.
    #[schema(value_type = Option<Object>)]
    pub(crate) details: Option<&'a JsonText>,
}

/// An automation will be suspended.
#[derive(Serialize, ToSchema)]
pub(crate) struct AutomationWarning<'a> {
    /// The id of the automation.
    pub(crate) automation_id: AutomationId,
    /// Its name.
    pub(crate) name: String,
    /// Why.
    pub(crate) reason: SuspendedReason,
    /// When it will be suspended.
    pub(crate) suspends_at: Timestamp,
    /// What was seen.
    #[schema(value_type = Object)]
    pub(crate) details: &'a JsonText,
}
