//! Automations: when something happens, and conditions hold, something is started.
//!
//! An occurrence (an event, a message, a slot of a timer, a request) that fits the trigger of an automation becomes a firing in
//! the transaction of its cause ([`matching`]). A firing that is pending is dispatched by a job ([`dispatch`]).

mod conditions;
mod dispatch;
mod firings;
mod group;
mod guards;
mod matching;
mod messages;
mod occurrence;
mod operations;
mod references;
mod rules;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod surroundings;
mod timer_rows;
mod timers;
mod triggers;

pub use group::GROUP;
pub use timers::Sweep;
