//! Queries over a small kind of records, on both databases: they find the same with indexes and without.
#![expect(
    clippy::unwrap_used,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]

// The kind of the tests of `records`.
#[path = "../../../records/tests/it/library.rs"]
#[expect(dead_code, reason = "the tests of `records` use more of it")]
mod library;
mod queries;
