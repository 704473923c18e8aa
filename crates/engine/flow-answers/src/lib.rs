//! What answers flows that wait: replies of contacts, decisions of people, and events. No database.

mod decisions;
mod events;
mod replies;

pub use decisions::{ApprovalDetails, FlowDecision, decided_page, question_page};
pub use events::{EventDetails, Filter, keys};
pub use replies::{Fitting, Locale, Reply, answer};
