//! What calendars and clocks say: rules of RFC 5545, cron expressions of five fields, and the clocks of time zones.
//!
//! Rules are evaluated in local time, as a calendar shows it, without a time zone ([`Rule::times`]). Moments come last
//! ([`moments`]): a time that clocks skip is as much later, and one that they show twice counts once. This crate has no
//! database and reads no clock.

mod clock;
mod cron;
mod days;
mod parse;
mod rule;
mod series;
mod times;

pub use clock::{Moments, instant, local, moments};
pub use cron::Cron;
pub use rule::{ByDay, Frequency, Rule, Until};
pub use series::Series;
pub use times::Times;
