//! The record engine with a kind of records that no group has, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here `on_both!` and helpers make them"
)]

// The name that every other crate calls it by.
extern crate svc_records as records;

mod kinds;
mod leads;
