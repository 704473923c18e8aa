//! Accounts, sessions, links and members, on both databases.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails must say where")]

mod audit;
mod bed;
mod first_operator;
mod guessing;
mod links;
mod members;
mod passwords;
mod sessions;
