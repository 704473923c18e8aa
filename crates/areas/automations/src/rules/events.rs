//! Events of automations.

use super::row::SuspendedReason;
use model::{AutomationId, JsonText};
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
