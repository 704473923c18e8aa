//! Calendars and clocks: rules of RFC 5545, cron expressions of five fields, opening hours, quiet hours, and time zones.
//!
//! Rules are evaluated in local time ([`Rule::times`]) and then converted to moments ([`moments`]). A local time that
//! the clocks skip is moved forward by the gap; one that occurs twice counts once. This crate has no database and
//! reads no clock.

mod clock;
mod cron;
mod days;
mod hours;
mod parse;
mod rule;
mod series;
mod times;

pub use clock::{Moments, instant, local, moments};
pub use cron::Cron;
pub use hours::{DayHours, MINUTES_OF_DAY, Opening, OpeningHours, QuietHours};
pub use rule::{ByDay, Frequency, Rule, Until};
pub use series::Series;
pub use times::Times;
