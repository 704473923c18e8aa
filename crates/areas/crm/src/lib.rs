//! Customer relations: the people whom a business knows, and the work that they cause.

pub mod business;
pub mod contact_fields;
pub mod contacts;
mod group;
pub mod reminders;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
pub mod tasks;
pub mod team;

pub use business::{Calendar, Retention};
pub use contacts::people;
pub use group::{CONTACTS_GROUP, TASKS_GROUP};
pub use team::TeamDirectory;
