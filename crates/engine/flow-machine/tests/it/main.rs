//! Runs of flows in memory.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod conformance;
mod model;
mod nodes;
mod simulation;
mod support;
