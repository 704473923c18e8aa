//! The event of reminders.

use super::model::Reminder;
use model::{ContactId, Timestamp};
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// A reminder fired. Each of its dates is announced once; of several that passed while the service was down, the last.
#[derive(Serialize, ToSchema, Event)]
#[event(
    name = "reminder.fired",
    scope = "reminders:read",
    subject = "reminder",
    id = "reminder.id",
    contact = "contact_id"
)]
pub(super) struct ReminderFired<'a> {
    /// The reminder as it then is.
    #[schema(inline)]
    pub(super) reminder: &'a Reminder,
    /// The date for which it fired.
    pub(super) scheduled_for: Timestamp,
    /// The number of dates that were missed before.
    pub(super) missed: i64,
    /// The contact that the reminder is about.
    #[schema(value_type = Option<ContactId>, required = true)]
    pub(super) contact_id: AboutContact,
}

/// The contact of an event, if any.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub(super) struct AboutContact(pub(super) Option<ContactId>);

impl From<AboutContact> for Option<i64> {
    fn from(about: AboutContact) -> Self {
        about.0.map(|contact| contact.0)
    }
}
