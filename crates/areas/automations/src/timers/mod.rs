//! Timers: what fires automations by a clock.

mod dates;
mod next;
mod schedule;

pub(crate) use next::{check, next_fire_at};
