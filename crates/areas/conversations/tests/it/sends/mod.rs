//! Sends: what is refused, retries, files, quick replies and reminders.

mod checks;
mod files;
mod quick_replies;
mod reminders;
mod retries;
