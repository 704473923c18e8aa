//! The record engine, with imports and exports, and a kind of records that no group has, on both databases.
//!
//! They are not in `records`, whose unit tests would otherwise wait for `transfer` to compile.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]

mod kinds;
mod leads;
