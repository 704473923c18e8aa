//! Runs that wait, and what wakes them.

mod agents;
mod approvals;
mod chat;
mod events;
mod people;
mod shop;
mod times;
