//! Broadcasts through the whole service, on both databases.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod audiences;
mod callbacks;
mod clocks;
mod counts;
mod deleted;
mod drafts;
mod files;
mod merged_ids;
mod merges;
mod outbox;
mod pauses;
mod previews;
mod sending;
mod support;
