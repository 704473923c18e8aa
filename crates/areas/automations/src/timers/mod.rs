//! Timers: what fires automations by a clock.
//!
//! A schedule and the dates of records have their next moment in the row of the automation. Silences are rows of
//! `automation_timers`, which the events of messages keep. A job looks each second for what is due. What it fires and the next
//! moment are one transaction, which holds the row: two processes never fire the same.

mod dates;
mod next;
mod schedule;
mod schedules;
mod silences;
mod sweep;
mod windows;

pub(crate) use next::{check, next_fire_at};
pub(crate) use silences::{SilenceReferences, Silences};
pub use sweep::Sweep;
