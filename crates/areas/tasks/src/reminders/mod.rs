//! Reminders: at a date, or at each date of a recurrence, they publish an event and can run an agent, send a
//! message or start a flow.
//!
//! A scheduled reminder has the moment at which it fires next (`wake_at`). One transaction fires it: it locks the row, advances
//! it to the next date and emits the event. So each date fires exactly once, across all replicas and crashes. The action is a
//! job that the same transaction enqueues.

mod actions;
mod add;
mod events;
mod fire;
mod flow;
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
pub(crate) use flow::FlowReminders;
pub use model::NewReminder;
pub use queries::move_to_contact;
pub(crate) use references::{ReminderFiles, ReminderReferences};
pub(crate) use task_reminders::{TaskReminders, delete_of_task, update};

use operation::{Domain, EventType, Operations};

/// The area of reminders.
pub struct Reminders;

impl Domain for Reminders {
    const AREA: &'static str = "Reminders";
    const ORDER: u16 = 130;
    const DESCRIPTION: &'static str = "Reminders fire at a date, or at all dates of a recurrence in a time zone: they publish an event, and \
         can run an agent, send a message or start a flow. They can be snoozed and completed.";

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
