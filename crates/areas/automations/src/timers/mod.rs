//! Timers: what fires automations by a clock.

mod dates;
mod schedule;
