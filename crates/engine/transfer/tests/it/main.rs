//! Tests of the record engine with imports and exports, by a kind of records of their own, on both databases.
//!
//! They are in this crate, because unit tests of `records` would otherwise have to wait for `transfer` to compile.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]

mod kinds;
mod leads;
