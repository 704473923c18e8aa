//! Tests of grants, codes, families and tokens, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails must say where"
)]

mod bed;
mod flows;
mod lives;
mod random;
mod reuse;
mod upkeep;
