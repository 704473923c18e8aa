//! The record engine over a small kind of records, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]

mod activity;
mod library;
mod printing;
mod rows;
