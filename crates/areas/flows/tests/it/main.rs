//! Flows through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod drafts;
mod loops;
mod nodes;
mod reports;
mod runs;
mod starts;
mod support;
mod waits;
