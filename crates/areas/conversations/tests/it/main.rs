//! Conversations through the front door.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod agents;
mod assignment;
mod batches;
mod conversations;
mod enclosed;
mod erasure;
mod merges;
mod numbers;
mod order_of_updates;
mod outbox;
mod purge;
mod retention;
mod storm;
mod support;
mod takers;
mod viewers;
mod voice_notes;
