//! The service through its front door, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong must fail"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod callback_retention;
mod causes;
mod channel_replicas;
mod commands;
mod demo_key;
mod gate;
mod idempotency;
mod kills;
mod limits;
mod members;
mod monitoring;
mod object_store;
mod operation_features;
mod operations;
mod pages;
mod redis;
mod retention;
mod runs;
mod shop;
mod storage_full;
#[cfg(feature = "otlp")]
mod traces;
mod transport;
