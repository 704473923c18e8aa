//! Reminders: what the team, or an agent, is to think of at a moment, once or again and again.
//!
//! A reminder that waits has a moment at which it fires (`wake_at`). Firing is one transaction: it locks the row, moves it
//! on to its next moment and emits the event, so that no moment is used twice, whichever replica comes to it and
//! whenever a server dies. What a firing starts is a job of the same transaction.

mod actions;
mod add;
mod events;
mod fire;
mod message;
mod model;
mod operations;
mod queries;
mod references;
mod series;
mod start;
mod task_reminders;

pub use actions::Actions;
pub use add::{Owner, add};
pub use fire::fire_due;
pub(crate) use fire::jobs;
pub use model::NewReminder;
pub use queries::move_to_contact;
pub(crate) use references::{ReminderFiles, ReminderReferences};
pub(crate) use task_reminders::{TaskReminders, delete_of_task, follow};

use operation::{Domain, EventType, Operations};

/// Reminders.
pub struct Reminders;

impl Domain for Reminders {
    const AREA: &'static str = "Reminders";
    const ORDER: u16 = 130;
    const DESCRIPTION: &'static str = "Reminders fire at a date, or at all dates of a recurrence in a time zone: they publish an event, and \
         can run an agent or send a message. They can be snoozed and completed.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::ListReminders),
            Box::new(operations::CreateReminder),
            Box::new(operations::UpdateReminder),
            Box::new(operations::DeleteReminder),
        ]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<events::ReminderFired<'_>>()
    }
}
